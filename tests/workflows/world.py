"""A whole world in memory: every promise of workflows/stages.py, kept as the test wishes."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError

from citeloop.models import ids
from citeloop.models.plan import CallPolicy, MonitorPolicy, Plan, ReviewPolicy, Route, Stage, State
from citeloop.models.work import (
    Decision,
    Draft,
    Held,
    Measurement,
    Outcome,
    Picture,
    PublicationState,
    Reading,
    Receipt,
    Sampled,
    SampleStatus,
    SampleStep,
    Step,
    Verdict,
    Waiting,
)
from workflows import options, stages
from workflows.stages import (
    CampaignBrief,
    CampaignChange,
    CampaignRef,
    Census,
    DecisionNote,
    Ending,
    Errand,
    GivenUp,
    Note,
    Page,
    PageQuery,
    PageRef,
    SamplePage,
    SampleQuery,
)

QUICK = CallPolicy(
    total=timedelta(seconds=20), heartbeat=timedelta(seconds=2), backoff=timedelta(seconds=1), max_faults=2
)


def _route(name: str) -> Route:
    return Route(name=name, queue="channel.test", policy=QUICK)


def plan(article: str = "a1", **changes: Any) -> Plan:
    """A plan with two writers, one picture channel, one site and two engines."""
    base = Plan(
        tenant_id="t1",
        article_id=article,
        campaign_id=None,
        brand_id="b1",
        manifest_id="m1",
        keyword="vector database",
        locale="en",
        routes={
            Stage.GENERATE: (_route("one"), _route("two")),
            Stage.REWRITE: (_route("one"), _route("two")),
            Stage.ILLUSTRATE: (_route("images"),),
            Stage.PUBLISH: (_route("blog"),),
            Stage.MONITOR: (_route("engine-a"), _route("engine-b")),
        },
        review=ReviewPolicy(),
        monitor=MonitorPolicy(offsets=(1, 2), day=timedelta(milliseconds=200)),
    )
    return base.model_copy(update=changes)


class World(
    stages.Writing,
    stages.Illustrating,
    stages.Reviewing,
    stages.Publishing,
    stages.Inspecting,
    stages.Correcting,
    stages.Monitoring,
    stages.Bookkeeping,
):
    """Answers at once and well, unless `script` says otherwise for an activity's name.

    script[name] is called with the step before the good answer; what it returns, if not None, is the answer.
    """

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.steps: defaultdict[str, list[Any]] = defaultdict(list)
        self.script: dict[str, Callable[[Any], Any]] = {}
        self.notes: list[Note] = []
        self.changes: list[CampaignChange] = []
        self.decisions: dict[str, Decision] = {}
        self.began = asyncio.Event()
        self.articles: list[str] = []
        self.baseline = True
        self.errands: list[Errand] = []

    async def _enter(self, name: str, step: Any) -> Any:
        self.calls[name] += 1
        self.steps[name].append(step)
        if name in self.script:
            answer = self.script[name](step)
            if asyncio.iscoroutine(answer):
                answer = await answer
            return answer
        return None

    def states(self) -> list[State]:
        return [note.progress.state for note in self.notes]

    @activity.defn(name="writing.generate")
    async def generate(self, step: Step) -> Draft | Held | Waiting:
        return await self._enter("generate", step) or draft(step)

    @activity.defn(name="writing.rewrite")
    async def rewrite(self, step: Step) -> Draft | Held | Waiting:
        return await self._enter("rewrite", step) or draft(step)

    @activity.defn(name="illustrating.illustrate")
    async def illustrate(self, step: Step) -> Picture | Held | Waiting:
        return await self._enter("illustrate", step) or Picture(digest="p1", source=step.route, alt="a picture")

    @activity.defn(name="illustrating.card")
    async def card(self, step: Step) -> Picture:
        return await self._enter("card", step) or Picture(digest="c1", source="card", alt="a card")

    @activity.defn(name="reviewing.judge")
    async def judge(self, step: Step) -> Verdict:
        return await self._enter("judge", step) or verdict(step, Outcome.CLEAN)

    @activity.defn(name="reviewing.decide")
    async def decide(self, note: DecisionNote) -> Decision:
        await self._enter("decide", note)
        return self.decisions.setdefault(note.decision.draft_id, note.decision)

    @activity.defn(name="publishing.publish")
    async def publish(self, step: Step) -> Receipt | Held | Waiting:
        return await self._enter("publish", step) or receipt(step, PublicationState.PUBLISHED)

    @activity.defn(name="publishing.reconcile")
    async def reconcile(self, step: Step) -> Receipt:
        return await self._enter("reconcile", step) or receipt(step, PublicationState.PUBLISHED)

    @activity.defn(name="publishing.inbox")
    async def inbox(self, step: Step) -> Receipt:
        return await self._enter("inbox", step) or receipt(step, PublicationState.PUBLISHED)

    @activity.defn(name="inspecting.page")
    async def page(self, query: PageQuery) -> Reading:
        return await self._enter("page", query) or Reading(url="", readable=True, checked_at=datetime.now(UTC))

    @activity.defn(name="correcting.next")
    async def next(self, page: PageRef) -> Errand | None:
        await self._enter("next", page)
        return self.errands.pop(0) if self.errands else None

    @activity.defn(name="correcting.carry_out")
    async def carry_out(self, errand: Errand) -> Receipt:
        state = PublicationState.WITHDRAWN if errand.draft_id is None else PublicationState.PUBLISHED
        return await self._enter("carry_out", errand) or Receipt(
            publication_id="pub", site=errand.page.site, state=state
        )

    @activity.defn(name="correcting.give_up")
    async def give_up(self, given_up: GivenUp) -> None:
        await self._enter("give_up", given_up)

    @activity.defn(name="monitoring.sample")
    async def sample(self, step: SampleStep) -> Sampled | Held | Waiting:
        return await self._enter("sample", step) or Sampled(status=SampleStatus.OK, named=True)

    @activity.defn(name="bookkeeping.note")
    async def note(self, note: Note) -> None:
        self.notes.append(note)

    @activity.defn(name="bookkeeping.baseline_ready")
    async def baseline_ready(self, campaign: CampaignRef) -> bool:
        await self._enter("baseline_ready", campaign)
        return self.baseline

    @activity.defn(name="bookkeeping.measure")
    async def measure(self, ending: Ending) -> Measurement:
        await self._enter("measure", ending)
        self.notes.append(
            Note(tenant_id=ending.plan.tenant_id, article_id=ending.plan.article_id, progress=ending.progress)
        )
        return Measurement(after_ok=self.calls["sample"])

    @activity.defn(name="bookkeeping.brief")
    async def brief(self, campaign: CampaignRef) -> CampaignBrief:
        return await self._enter("brief", campaign) or CampaignBrief(
            engines=plan().routes[Stage.MONITOR], monitor=MonitorPolicy(), weight=1.0, priority=3
        )

    @activity.defn(name="bookkeeping.census")
    async def census(self, campaign: CampaignRef) -> Census:
        return await self._enter("census", campaign) or Census(waiting=0, active=0, open=0)

    @activity.defn(name="bookkeeping.questions")
    async def questions(self, query: SampleQuery) -> SamplePage:
        return await self._enter("questions", query) or SamplePage(prompt_ids=("q1",), more=False, manifest_id="m1")

    @activity.defn(name="bookkeeping.admit")
    async def admit(self, page: Page) -> Census:
        return await self._enter("admit", page) or Census(waiting=0, active=0, open=0)

    @activity.defn(name="bookkeeping.change")
    async def change(self, change: CampaignChange) -> int:
        self.changes.append(change)
        await self._enter("change", change)
        return 0

    def activities(self) -> list[Callable[..., Any]]:
        return [
            getattr(self, name)
            for name in dir(type(self))
            if hasattr(getattr(type(self), name), "__temporal_activity_definition")
        ]


def draft(step: Step) -> Draft:
    name = f"{step.stage}-{step.round}-{step.retry}-{step.route}"
    return Draft(
        id=name,
        digest=ids.text_digest(name),
        stage=step.stage,
        round=step.round,
        channel=step.route,
        title="A title",
        chars=900,
    )


def verdict(step: Step, outcome: Outcome) -> Verdict:
    assert step.draft_id is not None
    return Verdict(draft_id=step.draft_id, draft_digest=ids.text_digest(step.draft_id), outcome=outcome)


def receipt(step: Step, state: PublicationState, **fields: Any) -> Receipt:
    return Receipt(publication_id="pub", site=step.route, state=state, url=f"https://{step.route}.example/a", **fields)


def refused(_: Any) -> None:
    raise ApplicationError("content policy", type="refused", non_retryable=True)


def broken(_: Any) -> None:
    raise ApplicationError("five faults", type="broken", non_retryable=True)


def soon(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


QUEUES = (options.WORKFLOWS, options.BOOKKEEPING, "channel.test")
