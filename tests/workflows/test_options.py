from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from temporalio.common import Priority
from temporalio.workflow import ActivityCancellationType

from citeloop.models.plan import CallPolicy, MonitorPolicy, Plan, Route, Stage
from tests.workflows.world import plan
from workflows import options
from workflows.stages import CampaignBrief

PATIENT = CallPolicy(
    total=timedelta(minutes=7),
    heartbeat=timedelta(seconds=9),
    backoff=timedelta(seconds=3),
    backoff_max=timedelta(seconds=40),
)
HASTY = CallPolicy(
    total=timedelta(seconds=20),
    heartbeat=timedelta(seconds=4),
    backoff=timedelta(seconds=1),
    backoff_max=timedelta(seconds=2),
)
SLOW = Route(name="slow", queue="channel.slow", policy=PATIENT)
FAST = Route(name="fast", queue="channel.fast", policy=HASTY)
SITE = Route(name="blog", queue="publisher.wordpress", policy=PATIENT)


def of_tenant(**changes: Any) -> Plan:
    return plan(tenant_id="tenant", weight=2.5, **changes)


@pytest.mark.parametrize("route", [SLOW, FAST], ids=lambda route: route.name)
@pytest.mark.parametrize("stage", [Stage.GENERATE, Stage.REWRITE, Stage.ILLUSTRATE, Stage.PUBLISH])
def test_timeouts_heartbeat_backoff_and_queue_are_those_of_the_plans_route(stage: Stage, route: Route) -> None:
    config = options.call(of_tenant(), stage, route)
    assert config["task_queue"] == route.queue
    assert config["start_to_close_timeout"] == route.policy.total + options.QUEUE_MARGIN
    assert config["heartbeat_timeout"] == route.policy.heartbeat
    retry = config["retry_policy"]
    assert retry is not None
    assert (retry.initial_interval, retry.maximum_interval) == (route.policy.backoff, route.policy.backoff_max)


def test_a_channel_call_is_bounded_by_the_activitys_own_count_of_faults_and_by_no_clock_of_the_queue() -> None:
    config = options.call(of_tenant(), Stage.GENERATE, SLOW)
    retry = config["retry_policy"]
    assert retry is not None
    assert retry.maximum_attempts == 0
    assert not {"schedule_to_close_timeout", "schedule_to_start_timeout"} & set(config)


def test_what_no_retry_mends_is_not_retried() -> None:
    retry = options.call(of_tenant(), Stage.GENERATE, SLOW)["retry_policy"]
    assert retry is not None
    assert {"refused", "invalid", "broken", "channel_gone", "PayloadsTooLarge"} <= set(
        retry.non_retryable_error_types or ()
    )


def test_a_post_has_one_attempt_and_is_waited_for_when_cancelled() -> None:
    config = options.send(of_tenant(), SITE)
    retry = config["retry_policy"]
    assert retry is not None
    assert retry.maximum_attempts == 1
    assert config["cancellation_type"] is ActivityCancellationType.WAIT_CANCELLATION_COMPLETED
    assert config["start_to_close_timeout"] is not None
    assert config["start_to_close_timeout"] > SITE.policy.total


def test_a_backoff_longer_than_its_own_maximum_stands() -> None:
    policy = CallPolicy(backoff=timedelta(minutes=2), backoff_max=timedelta(seconds=30))
    retry = options.call(of_tenant(), Stage.GENERATE, Route(name="r", queue="q", policy=policy))["retry_policy"]
    assert retry is not None
    assert retry.maximum_interval == timedelta(minutes=2)


def test_fair_shares_are_between_tenants_and_the_priority_key_belongs_to_the_kind_of_work() -> None:
    for priority in (1, 5):
        own = of_tenant(priority=priority)
        share = Priority(priority_key=options.PRODUCTION, fairness_key="tenant", fairness_weight=2.5)
        assert options.call(own, Stage.GENERATE, SLOW)["priority"] == share
        assert options.desk(own, "judge")["priority"] == share


def test_a_baseline_ranks_as_production_and_later_windows_give_way() -> None:
    def key(window: str) -> tuple[int | None, int | None]:
        brief = CampaignBrief(engines=(SLOW,), monitor=MonitorPolicy(), weight=2.5, priority=3)
        own = options.sample(of_tenant(), SLOW, window)["priority"]
        campaigns = options.campaign_sample(brief, "tenant", SLOW, window)["priority"]
        assert (own.fairness_key, campaigns.fairness_weight) == ("tenant", 2.5)
        return own.priority_key, campaigns.priority_key

    assert key("baseline") == (options.PRODUCTION, options.PRODUCTION)
    assert key("after") == (options.SAMPLES, options.SAMPLES)
    assert options.SAMPLES > options.PRODUCTION


def test_a_summary_names_stage_keyword_and_channel_for_the_temporal_ui() -> None:
    assert options.call(of_tenant(), Stage.REWRITE, SLOW)["summary"] == "rewrite · vector database · slow"


def test_bookkeeping_is_retried_for_as_long_as_a_store_may_be_away() -> None:
    retry = options.ledger()["retry_policy"]
    assert retry is not None
    assert retry.maximum_attempts == 0


def test_channels_and_workflows_never_share_a_queue() -> None:
    queues = {route.queue for routes in of_tenant().routes.values() for route in routes}
    assert not queues & {options.WORKFLOWS, options.BOOKKEEPING}


def test_windows_are_days_long_aligned_and_shared_by_everybody() -> None:
    day = timedelta(days=1)
    morning, evening = datetime(2026, 11, 3, 6, tzinfo=UTC), datetime(2026, 11, 3, 23, tzinfo=UTC)
    assert options.window_start(morning, day) == options.window_start(evening, day) == datetime(2026, 11, 3, tzinfo=UTC)
    short = timedelta(seconds=2)
    assert options.window_start(morning + timedelta(seconds=3), short) == morning + short


def test_offsets_are_counted_in_the_plans_days() -> None:
    assert options.windows(MonitorPolicy(offsets=(1, 28), day=timedelta(seconds=2))) == (
        timedelta(seconds=2),
        timedelta(seconds=56),
    )
