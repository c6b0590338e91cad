"""From the frozen plan to Temporal's options: the only place where a timeout meets an activity."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from temporalio import workflow
from temporalio.common import Priority, RetryPolicy

from citeloop.models.plan import MonitorPolicy, Plan, Route, Stage
from workflows.stages import CampaignBrief, Errand

WORKFLOWS = "citeloop.workflows"
BOOKKEEPING = "citeloop.bookkeeping"

PRODUCTION = 3
SAMPLES = 5

FINAL = ("refused", "invalid", "broken", "channel_gone", "PayloadsTooLarge")
"""Failures no retry on the same channel can mend."""

QUEUE_MARGIN = timedelta(seconds=15)
"""What an activity may spend besides its call: its turn at the channel, and the store."""


LONG_WAIT = timedelta(hours=1)
"""Before a longer wait for a measuring, an article's history starts anew."""

MISSED = timedelta(hours=1)
"""For so long a question may be late."""

INSPECTION = timedelta(seconds=20)
"""What a page check may take: page, robots.txt and ping."""


def priority(tenant_id: str, weight: float, stage_class: int) -> Priority:
    """Fair shares between tenants; the priority key belongs to the kind of work, never to a tenant."""
    return Priority(priority_key=stage_class, fairness_key=tenant_id, fairness_weight=weight)


def call(plan: Plan, stage: Stage, route: Route) -> workflow.ActivityConfig:
    """A paid call: retried as often as it takes, since the activity itself counts the faults that matter."""
    stage_class = SAMPLES if stage is Stage.MONITOR else PRODUCTION
    return _call(route, priority(plan.tenant_id, plan.weight, stage_class), f"{stage} · {plan.keyword} · {route.name}")


def sample(plan: Plan, engine: Route, window: str) -> workflow.ActivityConfig:
    """A baseline holds up publishing and ranks as production; later windows give way to it."""
    share = priority(plan.tenant_id, plan.weight, PRODUCTION if window == "baseline" else SAMPLES)
    return _call(engine, share, f"{window} · {plan.keyword} · {engine.name}")


def campaign_sample(brief: CampaignBrief, tenant_id: str, engine: Route, window: str) -> workflow.ActivityConfig:
    share = priority(tenant_id, brief.weight, PRODUCTION if window == "baseline" else SAMPLES)
    return _call(engine, share, f"{window} · campaign · {engine.name}")


def window_start(at: datetime, day: timedelta) -> datetime:
    """The measuring window `at` falls into: windows are one `day` long and aligned to the epoch, so that
    everybody who asks the same question in the same window shares one answer."""
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return epoch + ((at - epoch) // day) * day


def send(plan: Plan, route: Route) -> workflow.ActivityConfig:
    """One attempt: nothing may post a second time before somebody has looked."""
    config = call(plan, Stage.PUBLISH, route)
    config["retry_policy"] = RetryPolicy(maximum_attempts=1)
    the_calls = 2 * route.policy.total + INSPECTION  # the look-up, the send, and a look at the page
    config["start_to_close_timeout"] = the_calls + QUEUE_MARGIN
    return config


def inspection(plan: Plan, route: Route) -> workflow.ActivityConfig:
    """A look at a page that stands: soon over, tried three times, and in nobody's way."""
    return _inspection(route, priority(plan.tenant_id, plan.weight, SAMPLES), plan.keyword)


def errand_inspection(errand: Errand) -> workflow.ActivityConfig:
    return _inspection(errand.route, priority(errand.page.tenant_id, errand.weight, SAMPLES), errand.keyword)


def _inspection(route: Route, share: Priority, keyword: str) -> workflow.ActivityConfig:
    config = _call(route, share, f"page check · {keyword} · {route.name}")
    config["start_to_close_timeout"] = INSPECTION + QUEUE_MARGIN
    config["retry_policy"] = RetryPolicy(initial_interval=timedelta(seconds=2), maximum_attempts=3)
    return config


def errand(errand: Errand) -> workflow.ActivityConfig:
    """As often as it takes within the plan's patience: nothing is posted, so that repeating it is safe."""
    share = priority(errand.page.tenant_id, errand.weight, 1)
    config = _call(errand.route, share, f"{errand.kind} · {errand.keyword} · {errand.route.name}")
    config["start_to_close_timeout"] = 2 * errand.route.policy.total + QUEUE_MARGIN  # a look-up may come first
    config["schedule_to_close_timeout"] = errand.patience
    config["retry_policy"] = RetryPolicy(
        initial_interval=errand.route.policy.backoff,
        maximum_interval=timedelta(minutes=5),
        non_retryable_error_types=[*FINAL, "unauthorized"],
    )
    return config


def _call(route: Route, share: Priority, summary: str) -> workflow.ActivityConfig:
    policy = route.policy
    return workflow.ActivityConfig(
        task_queue=route.queue,
        start_to_close_timeout=policy.total + QUEUE_MARGIN,
        heartbeat_timeout=policy.heartbeat,
        retry_policy=RetryPolicy(
            initial_interval=policy.backoff,
            maximum_interval=max(policy.backoff, policy.backoff_max),
            maximum_attempts=0,
            non_retryable_error_types=FINAL,
        ),
        cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        priority=share,
        summary=summary,
    )


def desk(plan: Plan, summary: str) -> workflow.ActivityConfig:
    """Work of our own that calls no channel: judging, drawing a card, reading the inbox."""
    return workflow.ActivityConfig(
        task_queue=BOOKKEEPING,
        start_to_close_timeout=timedelta(seconds=30),
        heartbeat_timeout=timedelta(seconds=10),
        retry_policy=RetryPolicy(initial_interval=timedelta(seconds=1), maximum_interval=timedelta(seconds=30)),
        cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        priority=priority(plan.tenant_id, plan.weight, PRODUCTION),
        summary=summary,
    )


def campaign_desk(summary: str) -> workflow.ActivityConfig:
    """Admission and broadcasts: as long as the pages take, alive by heartbeat."""
    return workflow.ActivityConfig(
        task_queue=BOOKKEEPING,
        start_to_close_timeout=timedelta(hours=1),
        heartbeat_timeout=timedelta(seconds=15),
        retry_policy=RetryPolicy(initial_interval=timedelta(seconds=1), maximum_interval=timedelta(seconds=30)),
        priority=Priority(priority_key=1),
        summary=summary,
    )


def ledger() -> workflow.LocalActivityConfig:
    """Bookkeeping beside the workflow: no queue, no limit, a few milliseconds."""
    return workflow.LocalActivityConfig(
        start_to_close_timeout=timedelta(seconds=10),
        retry_policy=RetryPolicy(initial_interval=timedelta(milliseconds=200), maximum_interval=timedelta(seconds=10)),
        local_retry_threshold=timedelta(seconds=60),
    )


def windows(monitor: MonitorPolicy) -> tuple[timedelta, ...]:
    """When, after publishing, the engines are asked."""
    return tuple(monitor.day * offset for offset in monitor.offsets)


def is_missed(number: int, offsets: Sequence[timedelta], *, since: datetime) -> bool:
    """Whether a window is left out, since the one after it is long due: a pause or an outage lay between, and one
    answer of today would stand for two days of the past."""
    return number + 1 < len(offsets) and workflow.now() - (since + offsets[number + 1]) > MISSED


def asked_for(due: datetime, day: timedelta) -> datetime:
    """The moment whose window an answer belongs to: when it was due, or now where that is a day ago or more."""
    now = workflow.now()
    return now if now - due >= day + MISSED else due
