"""Who may lift which hold, and how an article stands meanwhile and afterwards."""

import asyncio
from datetime import timedelta

from citeloop.models.plan import MonitorPolicy, ReviewMode, ReviewPolicy, Stage, State
from citeloop.models.work import Held, Outcome
from tests.workflows.conftest import Theatre
from tests.workflows.test_article import until
from tests.workflows.world import plan, verdict
from workflows.article import ArticleWorkflow
from workflows.life import AT_ONCE, together
from workflows.orders import CAMPAIGN, Word

ONCE = MonitorPolicy(offsets=(1,), day=timedelta(milliseconds=200))


async def test_a_campaigns_resume_does_not_lift_a_persons_hold(theatre: Theatre) -> None:
    theatre.world.script["generate"] = lambda _: Held(by="article", reason="legal") if held else None
    held = True
    handle = await theatre.start(plan(stages=(Stage.GENERATE,)), paused=True)
    await until(lambda: theatre.world.states() == [State.PAUSED])
    await handle.signal(ArticleWorkflow.resume, Word(by=CAMPAIGN))
    await until(lambda: theatre.world.notes[-1].progress.reason == "held by article: legal")
    assert not any(note.lifted for note in theatre.world.notes)
    held = False
    await handle.signal(ArticleWorkflow.resume, Word(by="ann"))
    assert (await handle.result()).state is State.DONE
    assert [note.lifted for note in theatre.world.notes].count(True) == 1


async def test_samples_that_are_held_side_by_side_leave_the_article_as_it_stood(theatre: Theatre) -> None:
    held = True
    theatre.world.script["sample"] = lambda step: (
        Held(by="campaign", reason="budget") if held and step.window == "after" else None
    )
    handle = await theatre.start(plan(monitor=ONCE))
    await until(lambda: theatre.world.calls["sample"] >= 4)
    await until(lambda: theatre.world.states()[-1] is State.PAUSED)
    held = False
    await handle.signal(ArticleWorkflow.resume, Word(by=CAMPAIGN))
    await handle.result()
    assert theatre.world.states()[-3:] == [State.PAUSED, State.PUBLISHED, State.MEASURED]
    assert theatre.world.notes[-2].progress.reason == ""


async def test_a_retry_after_the_last_round_has_the_draft_rewritten(theatre: Theatre) -> None:
    blocked = True
    theatre.world.script["judge"] = lambda step: verdict(step, Outcome.BLOCKED) if blocked else None
    review = ReviewPolicy(mode=ReviewMode.AUTO, max_rounds=1)
    handle = await theatre.start(plan(stages=(Stage.GENERATE, Stage.REWRITE, Stage.REVIEW), review=review))
    await until(lambda: State.PARKED in theatre.world.states())
    rewritten = theatre.world.calls["rewrite"]
    blocked = False
    await handle.signal(ArticleWorkflow.retry)
    assert (await handle.result()).state is State.DONE
    assert (rewritten, theatre.world.calls["rewrite"]) == (2, 3)
    assert theatre.world.steps["rewrite"][-1].round == 2


async def test_windows_that_a_long_pause_has_missed_are_left_out(years: Theatre) -> None:
    day = timedelta(days=1)
    handle = await years.start(plan(monitor=MonitorPolicy(offsets=(1, 2, 3, 28), day=day)))
    await until(lambda: State.PUBLISHED in years.world.states())
    await handle.signal(ArticleWorkflow.pause)
    await years.env.sleep(timedelta(days=5))
    await handle.signal(ArticleWorkflow.resume)
    await handle.result()
    asked = [step.window_start for step in years.world.steps["sample"] if step.window == "after"]
    assert len(set(asked)) == 2
    assert timedelta(days=20) < max(asked) - min(asked) < timedelta(days=24)


async def test_no_more_calls_are_open_at_once_than_the_server_allows() -> None:
    running = most = 0

    async def call() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1

    done = await together(call() for _ in range(AT_ONCE + 500))
    assert (len(done), most) == (AT_ONCE + 500, AT_ONCE)
