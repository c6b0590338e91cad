import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, cast

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client
from temporalio.service import RPCError

from activities.bookkeeping import PAGE, BookkeepingActivities
from citeloop.models import ids
from citeloop.models.plan import Plan, Stage, State
from citeloop.models.work import Measurement, Progress
from citeloop.store.repositories import articles, campaigns
from tests.activities.test_monitoring import WINDOW, question
from tests.activities.workshop import Workshop, environment
from workflows.client import start_article
from workflows.stages import CampaignBrief, CampaignChange, CampaignRef, Census, Ending, Note, Page, SampleQuery

MEASURED = Progress(stage=Stage.MONITOR, state=State.MEASURED)
LINES = (("late", 4), ("first", 1), ("second", 2), ("third", 2))


@pytest.fixture
async def keeper(workshop: Workshop, client: Client) -> AsyncIterator[BookkeepingActivities]:
    """No worker serves the workflows that it starts; they are ended with the test."""
    yield BookkeepingActivities(workshop.database, client)
    await end_all(client, workshop.tenant.id)


async def end_all(client: Client, tenant_id: str) -> None:
    async for execution in client.list_workflows(f"CiteLoopTenant = '{tenant_id}' AND ExecutionStatus = 'Running'"):
        with contextlib.suppress(RPCError):  # ended by the test itself a moment ago
            await client.get_workflow_handle(execution.id).terminate()


async def started(workshop: Workshop, campaign_id: str) -> list[str]:
    """Keywords of the started articles."""
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        views = await articles.list_(scope, campaign_id=campaign_id, state=None, after=None, limit=50)
    return sorted(view.keyword for view in views if view.started_at is not None)


def page(workshop: Workshop, campaign_id: str, window: int) -> Page:
    return Page(tenant_id=workshop.tenant.id, campaign_id=campaign_id, window=window)


def word(workshop: Workshop, campaign_id: str, change: Any, **fields: Any) -> CampaignChange:
    return CampaignChange(tenant_id=workshop.tenant.id, campaign_id=campaign_id, change=change, **fields)


async def heard(client: Client, plan: Plan) -> list[str]:
    """Names of the signals in an article's history."""
    return await signals(client, ids.workflow_id(plan.tenant_id, plan.article_id))


async def signals(client: Client, workflow_id: str) -> list[str]:
    handle = client.get_workflow_handle(workflow_id)
    return [
        event.workflow_execution_signaled_event_attributes.signal_name
        async for event in handle.fetch_history_events()
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED
    ]


async def test_articles_are_admitted_by_priority_then_in_order_as_the_window_allows(
    workshop: Workshop, keeper: BookkeepingActivities
) -> None:
    campaign_id, _ = await workshop.campaign(*LINES)
    census = await workshop.run(keeper.admit, page(workshop, campaign_id, 2))
    assert census == Census(waiting=2, active=2, open=4)
    assert await started(workshop, campaign_id) == ["first", "second"]
    assert await workshop.run(keeper.admit, page(workshop, campaign_id, 2)) == census
    assert await started(workshop, campaign_id) == ["first", "second"]
    await workshop.run(keeper.admit, page(workshop, campaign_id, 3))
    assert await started(workshop, campaign_id) == ["first", "second", "third"]


async def test_an_article_whose_start_was_not_recorded_is_started_once(
    workshop: Workshop, keeper: BookkeepingActivities, client: Client
) -> None:
    campaign_id, plans = await workshop.campaign(("only", 3))
    run_id = await start_article(client, plans["only"])
    await workshop.run(keeper.admit, page(workshop, campaign_id, 5))
    described = await client.get_workflow_handle(
        ids.workflow_id(workshop.tenant.id, plans["only"].article_id)
    ).describe()
    assert described.run_id == run_id
    assert await started(workshop, campaign_id) == ["only"]


async def test_two_admissions_at_once_start_each_article_once(
    workshop: Workshop, keeper: BookkeepingActivities, client: Client
) -> None:
    campaign_id, plans = await workshop.campaign(*LINES)
    await asyncio.gather(*(workshop.run(keeper.admit, page(workshop, campaign_id, 4)) for _ in range(2)))
    assert len(await started(workshop, campaign_id)) == 4
    for plan in plans.values():
        handle = client.get_workflow_handle(ids.workflow_id(plan.tenant_id, plan.article_id))
        described = await handle.describe()
        assert described.typed_search_attributes


async def test_a_held_campaign_admits_nothing(workshop: Workshop, keeper: BookkeepingActivities) -> None:
    campaign_id, _ = await workshop.campaign(*LINES)
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        await campaigns.hold(scope, campaign_id, "budget")
    assert (await workshop.run(keeper.admit, page(workshop, campaign_id, 4))).active == 0
    assert await started(workshop, campaign_id) == []


async def test_a_pause_is_written_first_and_then_told_to_every_open_article(
    workshop: Workshop, keeper: BookkeepingActivities, client: Client
) -> None:
    campaign_id, plans = await workshop.campaign(*LINES)
    await workshop.run(keeper.admit, page(workshop, campaign_id, 3))
    told = await workshop.run(keeper.change, word(workshop, campaign_id, "pause", reason="budget"))
    assert told == 3
    for keyword in ("first", "second", "third"):
        assert await heard(client, plans[keyword]) == ["pause"]
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        held = await campaigns.find_hold(scope, campaign_id)
    assert held is not None
    assert held.reason == "budget"
    assert await workshop.run(keeper.change, word(workshop, campaign_id, "resume")) == 3
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        assert await campaigns.find_hold(scope, campaign_id) is None


async def test_a_complete_baseline_is_told_to_those_on_the_eve_of_publishing(
    workshop: Workshop, keeper: BookkeepingActivities, client: Client
) -> None:
    campaign_id, plans = await workshop.campaign(*LINES)
    await workshop.run(keeper.admit, page(workshop, campaign_id, 3))
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        for keyword, stage in (("first", Stage.REVIEW), ("second", Stage.PUBLISH), ("third", Stage.ILLUSTRATE)):
            await articles.note(scope, plans[keyword].article_id, Progress(stage=stage, state=State.RUNNING))
    assert await workshop.run(keeper.change, word(workshop, campaign_id, "baseline")) == 2
    assert await heard(client, plans["first"]) == ["baseline"]
    assert await heard(client, plans["third"]) == []
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        assert await campaigns.baseline_ready(scope, campaign_id)


async def test_a_broadcast_goes_on_from_its_heartbeat(
    workshop: Workshop, keeper: BookkeepingActivities, client: Client
) -> None:
    campaign_id, plans = await workshop.campaign(*LINES)
    await workshop.run(keeper.admit, page(workshop, campaign_id, 4))
    beats: list[tuple[Any, ...]] = []
    first = environment()
    first.on_heartbeat = lambda *details: beats.append(details)
    change = word(workshop, campaign_id, "prioritise", priority=1)
    assert await first.run(keeper.change, change) == 4
    order = sorted(plan.article_id for plan in plans.values())
    assert beats == [(article_id, n) for n, article_id in enumerate(order, 1)]
    again = environment(attempt=2, details=(order[1], 2))
    assert await again.run(keeper.change, change) == 4
    by_id = {plan.article_id: plan for plan in plans.values()}
    assert [len(await heard(client, by_id[article_id])) for article_id in order] == [1, 1, 2, 2]


async def test_a_broadcast_goes_through_every_page(workshop: Workshop, keeper: BookkeepingActivities) -> None:
    """None of these articles has a run: a start that Temporal has forgotten is passed over."""
    campaign_id, plans = await workshop.campaign(*((f"keyword {number}", 3) for number in range(PAGE + 1)))
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        for plan in plans.values():
            await articles.started(scope, plan.article_id, "forgotten")
    beats: list[str] = []
    first = environment()
    first.on_heartbeat = lambda article_id, _: beats.append(article_id)
    assert await first.run(keeper.change, word(workshop, campaign_id, "pause")) == 0
    assert beats == sorted(plan.article_id for plan in plans.values())


async def test_an_article_that_has_no_run_any_more_is_passed_over(
    workshop: Workshop, keeper: BookkeepingActivities, client: Client
) -> None:
    campaign_id, plans = await workshop.campaign(*LINES)
    await workshop.run(keeper.admit, page(workshop, campaign_id, 4))
    await client.get_workflow_handle(ids.workflow_id(workshop.tenant.id, plans["first"].article_id)).terminate()
    assert await workshop.run(keeper.change, word(workshop, campaign_id, "pause")) == 3


async def test_a_cancel_ends_what_never_started_and_tells_the_rest(
    workshop: Workshop, keeper: BookkeepingActivities, client: Client
) -> None:
    campaign_id, plans = await workshop.campaign(*LINES)
    await workshop.run(keeper.admit, page(workshop, campaign_id, 1))
    assert await workshop.run(keeper.change, word(workshop, campaign_id, "cancel", reason="wrong brand")) == 1
    assert await heard(client, plans["first"]) == ["cancel"]
    ref = CampaignRef(tenant_id=workshop.tenant.id, campaign_id=campaign_id)
    assert await workshop.run(keeper.census, ref) == Census(waiting=0, active=1, open=1)
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        campaign = await campaigns.get(scope, campaign_id)
    assert campaign is not None
    assert (campaign.state, campaign.counts[State.CANCELLED]) == (State.CANCELLED, 3)


async def test_the_window_counts_neither_the_produced_nor_those_that_wait_for_a_person(
    workshop: Workshop, keeper: BookkeepingActivities
) -> None:
    campaign_id, plans = await workshop.campaign(*LINES)
    await workshop.run(keeper.admit, page(workshop, campaign_id, 4))
    for keyword, state in (("first", State.PUBLISHED), ("second", State.REVIEW), ("third", State.MEASURED)):
        progress = Progress(state=state, stage=Stage.MONITOR)
        note = Note(tenant_id=workshop.tenant.id, article_id=plans[keyword].article_id, progress=progress)
        await workshop.run(keeper.note, note)
    ref = CampaignRef(tenant_id=workshop.tenant.id, campaign_id=campaign_id)
    assert await workshop.run(keeper.census, ref) == Census(waiting=0, active=1, open=3, review=1)


async def test_the_baseline_opens_the_gate_and_done_closes_the_campaign(
    workshop: Workshop, keeper: BookkeepingActivities
) -> None:
    campaign_id, _ = await workshop.campaign(*LINES)
    ref = CampaignRef(tenant_id=workshop.tenant.id, campaign_id=campaign_id)
    assert not await workshop.run(keeper.baseline_ready, ref)
    for change in ("baseline", "baseline", "done"):
        assert await workshop.run(keeper.change, word(workshop, campaign_id, change)) == 0
    assert await workshop.run(keeper.baseline_ready, ref)
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        campaign = await campaigns.get(scope, campaign_id)
    assert campaign is not None
    assert campaign.state == State.DONE


async def test_the_whole_manifest_is_asked_before_and_only_the_controls_after(
    workshop: Workshop, keeper: BookkeepingActivities
) -> None:
    campaign_id, plans = await workshop.campaign(*LINES)

    async def asked(window: Any) -> list[str]:
        found: list[str] = []
        while True:
            query = SampleQuery(
                tenant_id=workshop.tenant.id, campaign_id=campaign_id, window=window, first=len(found), limit=2
            )
            part = await workshop.run(keeper.questions, query)
            found += part.prompt_ids
            if not part.more:
                return found

    before, after = await asked("baseline"), await asked("after")
    own = {ids.prompt_id(plan.keyword, plan.locale) for plan in plans.values()}
    assert (len(before), len(set(before)), own < set(before)) == (5, 5, True)
    assert set(after) == set(before) - own


async def test_the_brief_says_what_is_to_be_measured(workshop: Workshop, keeper: BookkeepingActivities) -> None:
    campaign_id, plans = await workshop.campaign(*LINES)
    plan = plans["late"]
    brief = await workshop.run(keeper.brief, CampaignRef(tenant_id=workshop.tenant.id, campaign_id=campaign_id))
    assert brief.engines == plan.routes[Stage.MONITOR]
    assert (brief.monitor, brief.weight) == (plan.monitor, plan.weight)
    short, _ = await workshop.campaign(("unmeasured", 3), stages=(Stage.GENERATE,))
    unmeasured: CampaignBrief = await workshop.run(
        keeper.brief, CampaignRef(tenant_id=workshop.tenant.id, campaign_id=short)
    )
    assert unmeasured.engines == ()


async def test_an_article_never_measured_has_nothing_to_count(
    workshop: Workshop, keeper: BookkeepingActivities
) -> None:
    plan = await workshop.article()
    found: Measurement = await workshop.run(keeper.measure, Ending(plan=plan, progress=MEASURED))
    assert (found.after_ok, found.after_planned, found.first_cited_days) == (0, len(plan.monitor.offsets), None)
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        view = await articles.find(scope, plan.article_id)
    assert view is not None
    assert (view.measurement, view.state) == (found, State.MEASURED)


async def test_a_measured_article_counts_its_own_answers_before_and_after(
    workshop: Workshop, keeper: BookkeepingActivities
) -> None:
    plan = await workshop.article()
    baseline = question(workshop, plan)
    after = question(workshop, plan, window="after", window_start=WINDOW + plan.monitor.day)
    for step in (baseline, after):
        await workshop.run(workshop.monitoring().sample, step)
    found: Measurement = await workshop.run(keeper.measure, Ending(plan=plan, progress=MEASURED))
    assert (found.baseline_ok, found.after_ok, found.after_named) == (1, 1, 0)


async def test_a_note_of_a_resume_lifts_the_hold(workshop: Workshop, keeper: BookkeepingActivities) -> None:
    plan = await workshop.article()
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        await articles.hold(scope, plan.article_id, "wait")
    note = Note(tenant_id=plan.tenant_id, article_id=plan.article_id, progress=Progress(state=State.RUNNING))
    for lifted, held in ((False, True), (True, False)):
        await workshop.run(keeper.note, note.model_copy(update={"lifted": lifted}))
        async with workshop.database.tenant(workshop.tenant.id) as scope:
            assert (await articles.find_hold(scope, plan.article_id) is not None) is held


class Meanwhile:
    """A client; something else happens just as it starts its first workflow."""

    def __init__(self, client: Client, happens: Callable[[], Awaitable[None]]) -> None:
        self._client = client
        self._happens = [happens]

    async def start_workflow(self, *order: Any, **options: Any) -> Any:
        while self._happens:
            await self._happens.pop()()
        return await self._client.start_workflow(*order, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


def meanwhile(client: Client, happens: Callable[[], Awaitable[None]]) -> Client:
    return cast(Client, Meanwhile(client, happens))


async def test_what_is_cancelled_while_it_is_being_started_hears_it_and_nothing_else_is_started(
    workshop: Workshop, keeper: BookkeepingActivities, client: Client
) -> None:
    campaign_id, plans = await workshop.campaign(*LINES)

    async def cancel() -> None:
        async with workshop.database.tenant(workshop.tenant.id) as scope:
            await campaigns.note(scope, campaign_id, State.CANCELLED)
            await articles.cancel_unstarted(scope, campaign_id, "wrong brand")

    hasty = BookkeepingActivities(workshop.database, meanwhile(client, cancel))
    assert await workshop.run(hasty.admit, page(workshop, campaign_id, 4)) == Census(waiting=0, active=0, open=0)
    assert await started(workshop, campaign_id) == ["first"]
    assert await heard(client, plans["first"]) == ["cancel"]
    for keyword in ("second", "third", "late"):
        with pytest.raises(RPCError, match="not found"):
            await heard(client, plans[keyword])


async def test_a_run_that_notes_progress_of_a_cancelled_article_hears_that_it_is_over(
    workshop: Workshop, keeper: BookkeepingActivities, client: Client
) -> None:
    """Whoever started it may have died before it could tell."""
    campaign_id, plans = await workshop.campaign(("only", 3))
    await start_article(client, plans["only"])
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        await articles.cancel_unstarted(scope, campaign_id, "wrong brand")
    for state in (State.PAUSED, State.CANCELLED):
        progress = Progress(state=state, reason="wrong brand")
        note = Note(tenant_id=workshop.tenant.id, article_id=plans["only"].article_id, progress=progress)
        await workshop.run(keeper.note, note)
        assert await heard(client, plans["only"]) == ["cancel"]
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        view = await articles.find(scope, plans["only"].article_id)
    assert view is not None
    assert (view.state, view.reason) == (State.CANCELLED, "wrong brand")


async def test_a_cancel_holds_the_campaign_and_ends_what_has_lost_its_run(
    workshop: Workshop, keeper: BookkeepingActivities, client: Client
) -> None:
    campaign_id, plans = await workshop.campaign(*LINES)
    await workshop.run(keeper.admit, page(workshop, campaign_id, 4))
    await client.get_workflow_handle(ids.workflow_id(workshop.tenant.id, plans["first"].article_id)).terminate()
    assert await workshop.run(keeper.change, word(workshop, campaign_id, "cancel", reason="wrong brand")) == 3
    ref = CampaignRef(tenant_id=workshop.tenant.id, campaign_id=campaign_id)
    assert await workshop.run(keeper.census, ref) == Census(waiting=0, active=3, open=3)
    assert await workshop.run(keeper.change, word(workshop, campaign_id, "resume")) == 3
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        lost = await articles.find(scope, plans["first"].article_id)
        held = await campaigns.find_hold(scope, campaign_id)
    assert lost is not None
    assert (lost.state, lost.reason) == (State.CANCELLED, "wrong brand")
    assert held is not None
    assert held.reason == "wrong brand"
