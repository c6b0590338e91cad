"""Publishing at the plan's own time, and what monitoring does when there is nothing left to measure."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from citeloop.models.plan import MonitorPolicy, ReviewMode, ReviewPolicy, Stage, State
from citeloop.models.work import Held, Outcome, PublicationState, Reading
from tests.workflows.conftest import Theatre
from tests.workflows.test_article import until
from tests.workflows.world import plan, receipt, soon, verdict
from workflows.article import ArticleWorkflow

PRODUCING = (Stage.GENERATE, Stage.REVIEW, Stage.PUBLISH)


def unreadable(_: object) -> Reading:
    return Reading(url="u", readable=False, problems=("robots.txt bars GPTBot",), checked_at=datetime.now(UTC))


async def test_an_approved_article_sleeps_until_its_time_and_is_published_then(years: Theatre) -> None:
    now = await years.env.get_current_time()
    when = now + timedelta(days=40)
    published: list[datetime] = []

    async def at(_: object) -> None:
        published.append(await years.env.get_current_time())

    years.world.script["publish"] = at
    handle = await years.start(plan(stages=PRODUCING, publish_at=when))
    ended = await handle.result()
    assert ended.state is State.DONE
    assert when <= published[0] < when + timedelta(minutes=1)
    reasons = [(note.progress.state, note.progress.stage, note.progress.reason) for note in years.world.notes]
    assert (State.SCHEDULED, Stage.PUBLISH, f"scheduled for {when:%Y-%m-%d %H:%M:%S} UTC") in reasons


async def test_a_time_that_is_past_is_no_wait(theatre: Theatre) -> None:
    handle = await theatre.start(plan(stages=PRODUCING, publish_at=soon(-60)))
    await handle.result()
    assert State.SCHEDULED not in theatre.world.states()


async def test_a_pause_while_scheduled_holds_past_the_time_and_is_shown(theatre: Theatre) -> None:
    handle = await theatre.start(plan(stages=PRODUCING, publish_at=soon(2)))
    await until(lambda: State.SCHEDULED in theatre.world.states())
    await handle.signal(ArticleWorkflow.pause)
    await until(lambda: theatre.world.states()[-1] is State.PAUSED)
    await asyncio.sleep(2.2)
    assert theatre.world.calls["publish"] == 0
    await handle.signal(ArticleWorkflow.resume)
    await handle.result()
    told = [(note.progress.state, note.progress.reason[:13]) for note in theatre.world.notes[:3]]
    assert told == [(State.SCHEDULED, "scheduled for"), (State.PAUSED, ""), (State.SCHEDULED, "scheduled for")]
    assert theatre.world.calls["publish"] == 1


async def test_a_cancel_while_scheduled_publishes_nothing(theatre: Theatre) -> None:
    handle = await theatre.start(plan(stages=PRODUCING, publish_at=soon(3600)))
    await until(lambda: State.SCHEDULED in theatre.world.states())
    await handle.signal(ArticleWorkflow.cancel)
    assert (await handle.result()).state is State.CANCELLED
    assert theatre.world.calls["publish"] == 0


async def test_a_page_that_was_withdrawn_is_measured_no_longer(theatre: Theatre) -> None:
    handle = await theatre.start(plan(monitor=MonitorPolicy(offsets=(0, 28))))
    await until(lambda: theatre.world.calls["sample"] == 4)
    await handle.signal(ArticleWorkflow.withdrawn, "blog")
    ended = await handle.result()
    assert (ended.state, ended.reason) == (State.MEASURED, "no longer monitored: withdrawn from blog")
    assert ended.urls == ()
    assert ended.measurement is not None
    assert theatre.world.calls["sample"] == 4


async def test_a_page_that_engines_cannot_read_is_measured_all_the_same(theatre: Theatre) -> None:
    theatre.world.script["page"] = unreadable
    handle = await theatre.start()
    assert (await handle.result()).reason == ""
    assert theatre.world.calls["sample"] == 2 + 2 * 2


async def test_a_page_that_engines_cannot_read_is_skipped_where_the_plan_says_so(theatre: Theatre) -> None:
    theatre.world.script["page"] = unreadable
    skipping = MonitorPolicy(offsets=(1, 2), day=timedelta(milliseconds=200), skip_unreadable=True)
    ended = await (await theatre.start(plan(monitor=skipping))).result()
    assert (ended.state, ended.reason) == (State.MEASURED, "no longer monitored: engines cannot read blog")
    assert theatre.world.calls["sample"] == 2


async def test_a_page_that_was_looked_at_as_it_was_published_is_not_looked_at_again(theatre: Theatre) -> None:
    theatre.world.script["publish"] = lambda step: receipt(step, PublicationState.PUBLISHED, readable=False)
    skipping = MonitorPolicy(offsets=(1,), day=timedelta(milliseconds=200), skip_unreadable=True)
    assert (await (await theatre.start(plan(monitor=skipping))).result()).reason.endswith("cannot read blog")
    assert theatre.world.calls["page"] == 0


async def test_a_page_that_could_not_be_looked_at_is_looked_at_before_the_first_measuring(theatre: Theatre) -> None:
    theatre.world.script["page"] = lambda query: (
        None if query.late else Reading(url="", readable=None, checked_at=datetime.now(UTC))
    )
    await (await theatre.start()).result()
    assert [query.late for query in theatre.world.steps["page"]] == [False, True]


@pytest.mark.parametrize("stage", [Stage.PUBLISH])
async def test_a_callback_to_a_parked_article_lets_it_go_on(theatre: Theatre, stage: Stage) -> None:
    theatre.world.script["publish"] = lambda step: receipt(step, PublicationState.PARKED, reason="cannot be asked")
    theatre.world.script["reconcile"] = lambda step: receipt(step, PublicationState.PUBLISHED)
    handle = await theatre.start(plan(stages=PRODUCING))
    await until(lambda: theatre.world.states() == [State.PARKED])
    await handle.signal(ArticleWorkflow.callback, "blog")
    assert (await handle.result()).state is State.DONE
    assert theatre.world.notes[-1].progress.retries == 0
    assert theatre.world.calls["publish"] == 1
    assert theatre.world.notes[0].progress.stage is stage


async def test_a_site_that_refused_is_sent_to_again_when_a_person_retries(theatre: Theatre) -> None:
    refusing = [True]
    theatre.world.script["publish"] = lambda step: (
        receipt(step, PublicationState.FAILED, reason="HTTP 401") if refusing.pop() else None
    )
    theatre.world.script["reconcile"] = lambda step: receipt(step, PublicationState.FAILED, reason="HTTP 401")
    handle = await theatre.start(plan(stages=PRODUCING))
    await until(lambda: theatre.world.states() == [State.PARKED])
    refusing.append(False)
    await handle.signal(ArticleWorkflow.retry)
    assert (await handle.result()).state is State.DONE
    assert theatre.world.calls["publish"] == 2


async def test_a_callback_of_another_site_wakes_no_parked_article(theatre: Theatre) -> None:
    theatre.world.script["publish"] = lambda step: receipt(step, PublicationState.PARKED, reason="cannot be asked")
    handle = await theatre.start(plan(stages=PRODUCING, park_for=timedelta(seconds=1)))
    await until(lambda: theatre.world.states() == [State.PARKED])
    await handle.signal(ArticleWorkflow.callback, "elsewhere")
    with pytest.raises(Exception, match="Workflow execution failed"):
        await handle.result()
    assert theatre.world.states() == [State.PARKED, State.FAILED]


async def test_a_pause_after_a_review_keeps_no_reason_of_the_review(theatre: Theatre) -> None:
    theatre.world.script["judge"] = lambda step: verdict(step, Outcome.FLAGGED)
    handle = await theatre.start(plan(stages=PRODUCING, review=ReviewPolicy(mode=ReviewMode.HUMAN)))
    await until(lambda: theatre.world.states() == [State.REVIEW])
    await handle.signal(ArticleWorkflow.pause)
    await handle.signal(ArticleWorkflow.approve)
    await until(lambda: theatre.world.states()[-1] is State.PAUSED)
    await handle.signal(ArticleWorkflow.resume)
    await handle.result()
    told = [(note.progress.state, note.progress.reason) for note in theatre.world.notes]
    assert told[:3] == [(State.REVIEW, "waits for a person"), (State.PAUSED, ""), (State.RUNNING, "")]


async def test_a_hold_of_a_week_is_looked_at_so_seldom_that_the_history_has_room_for_months(years: Theatre) -> None:
    """The server ends a workflow whose history reaches 51,200 events."""
    looks = 7 * 24 + 7
    held = [Held(by="tenant", reason="budget")] * looks
    years.world.script["generate"] = lambda _: held.pop() if held else None
    handle = await years.start(plan(stages=(Stage.GENERATE,)))
    await handle.result()
    events = [event async for event in handle.fetch_history_events()]
    lasted = events[-1].event_time.ToDatetime() - events[0].event_time.ToDatetime()
    assert lasted >= timedelta(days=7)
    assert len(events) < 20 * looks


async def test_an_article_that_a_person_has_paused_asks_once_a_day_and_goes_on_at_once(years: Theatre) -> None:
    years.world.script["generate"] = lambda _: Held(by="article", reason="paused")
    handle = await years.start(plan(stages=(Stage.GENERATE,)), paused=False)
    await handle.signal(ArticleWorkflow.pause)
    await years.env.sleep(timedelta(days=3))
    assert years.world.calls["generate"] <= 5
    years.world.script.clear()
    await handle.signal(ArticleWorkflow.resume)
    assert (await handle.result()).state is State.DONE
