import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest
from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError

from citeloop.models.plan import MonitorPolicy, ReviewMode, ReviewPolicy, Route, Stage, State
from citeloop.models.work import Action, Held, Outcome, PublicationState, Receipt, Step, Waiting
from tests.workflows.conftest import Theatre
from tests.workflows.world import QUICK, broken, plan, receipt, refused, soon, verdict
from workflows.article import ArticleWorkflow
from workflows.orders import Rank, Word

HUMAN = ReviewPolicy(mode=ReviewMode.HUMAN)


async def until(condition: Callable[[], bool], patience: float = 15) -> None:
    async with asyncio.timeout(patience):
        while not condition():
            await asyncio.sleep(0.02)


async def test_a_keyword_goes_through_six_stages_to_a_measured_answer(theatre: Theatre) -> None:
    ended = await (await theatre.start()).result()
    calls = theatre.world.calls
    assert ended.state is State.MEASURED
    assert ended.urls == ("https://blog.example/a",)
    assert [calls[name] for name in ("generate", "rewrite", "illustrate", "judge", "publish")] == [1, 1, 1, 1, 1]
    assert calls["sample"] == 2 + 2 * 2
    assert theatre.world.states() == [State.PUBLISHED, State.MEASURED]


async def test_the_monitor_waits_twenty_eight_days(years: Theatre) -> None:
    handle = await years.start(plan(monitor=MonitorPolicy()))
    await handle.result()
    windows = sorted({step.window_start for step in years.world.steps["sample"] if step.window == "after"})
    assert [(when - windows[0]).days for when in windows] == [0, 2, 6, 13, 27]


async def test_the_baseline_is_asked_before_anything_is_published(theatre: Theatre) -> None:
    asked_before: list[int] = []
    theatre.world.script["publish"] = lambda _: asked_before.append(theatre.world.calls["sample"])
    await (await theatre.start()).result()
    assert asked_before == [2]


async def test_an_article_is_told_by_its_campaign_that_publishing_may_begin(theatre: Theatre) -> None:
    theatre.world.baseline = False
    handle = await theatre.start(plan(campaign_id="c1"))
    await until(lambda: theatre.world.calls["baseline_ready"] == 1)
    await handle.signal("baseline", Word(by="campaign"))
    async with asyncio.timeout(10):  # the store would be asked again after 15 s
        await handle.result()
    assert theatre.world.calls["baseline_ready"] == 1


async def test_an_article_of_a_campaign_waits_for_the_campaigns_baseline(theatre: Theatre) -> None:
    theatre.world.baseline = False
    handle = await theatre.start(plan(campaign_id="c1"))
    await until(lambda: theatre.world.calls["baseline_ready"] >= 1)
    assert theatre.world.calls["publish"] == 0
    theatre.world.baseline = True
    await handle.result()
    assert [step for step in theatre.world.steps["sample"] if step.window == "baseline"] == []


async def test_the_next_channel_takes_over_from_one_that_refuses_and_the_article_says_why(theatre: Theatre) -> None:
    theatre.world.script["generate"] = lambda step: refused(step) if step.route == "one" else None
    handle = await theatre.start(plan(stages=(Stage.GENERATE,)))
    assert (await handle.result()).state is State.DONE
    progress = await handle.query(ArticleWorkflow.progress)
    assert progress.draft is not None
    assert progress.draft.channel == "two"
    assert progress.moves == ("one: refused: content policy",)


async def test_without_a_picture_channel_the_title_card_is_drawn(theatre: Theatre) -> None:
    theatre.world.script["illustrate"] = broken
    handle = await theatre.start(plan(stages=(Stage.GENERATE, Stage.REWRITE, Stage.ILLUSTRATE)))
    await handle.result()
    picture = (await handle.query(ArticleWorkflow.progress)).picture
    assert picture is not None
    assert picture.source == "card"


async def test_an_article_survives_without_any_picture(theatre: Theatre) -> None:
    theatre.world.script |= {"illustrate": broken, "card": broken}
    assert (await (await theatre.start()).result()).state is State.MEASURED


async def test_pause_holds_before_the_next_stage_and_lets_the_running_call_finish(theatre: Theatre) -> None:
    running, finish = asyncio.Event(), asyncio.Event()

    async def slow(_: Step) -> None:
        running.set()
        await finish.wait()

    theatre.world.script["generate"] = slow
    handle = await theatre.start()
    await running.wait()
    await handle.signal(ArticleWorkflow.pause)
    finish.set()
    await until(lambda: State.PAUSED in theatre.world.states())
    assert theatre.world.calls["rewrite"] == 0
    assert (await handle.query(ArticleWorkflow.progress)).state is State.PAUSED
    await handle.signal(ArticleWorkflow.resume)
    assert (await handle.result()).state is State.MEASURED


async def test_a_hold_found_in_the_store_costs_nothing_and_ends_with_resume(theatre: Theatre) -> None:
    held = [Held(by="campaign", reason="budget")]
    theatre.world.script["generate"] = lambda _: held.pop() if held else None
    handle = await theatre.start()
    await until(lambda: State.PAUSED in theatre.world.states())
    assert theatre.world.notes[0].progress.reason == "held by campaign: budget"
    await handle.signal(ArticleWorkflow.resume)
    assert (await handle.result()).state is State.MEASURED
    assert theatre.world.calls["generate"] == 2


async def test_a_long_wait_is_slept_by_the_workflow_and_asked_again(years: Theatre) -> None:
    waits = [Waiting(until=soon(3600), reason="quota")]
    years.world.script["generate"] = lambda _: waits.pop() if waits else None
    assert (await (await years.start()).result()).state is State.MEASURED
    assert years.world.calls["generate"] == 2


async def test_a_cancel_signal_ends_cleanly_with_its_reason(theatre: Theatre) -> None:
    theatre.world.script["judge"] = lambda step: verdict(step, Outcome.CLEAN)
    handle = await theatre.start(plan(review=HUMAN))
    await until(lambda: State.REVIEW in theatre.world.states())
    await handle.signal(ArticleWorkflow.cancel, Word(by="ann", reason="wrong brand"))
    ended = await handle.result()
    assert (ended.state, ended.reason) == (State.CANCELLED, "wrong brand")
    assert theatre.world.calls["publish"] == 0


async def test_a_native_cancel_closes_as_cancelled_and_is_recorded(theatre: Theatre) -> None:
    handle = await theatre.start(plan(review=HUMAN))
    await until(lambda: State.REVIEW in theatre.world.states())
    await handle.cancel()
    with pytest.raises(WorkflowFailureError):
        await handle.result()
    assert (await handle.describe()).status is WorkflowExecutionStatus.CANCELED
    assert theatre.world.states()[-1] is State.CANCELLED


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("stage", ["generate", "rewrite", "illustrate", "judge"])
async def test_a_cancel_that_arrives_as_an_activity_finishes_never_publishes(
    theatre: Theatre, stage: str, native: bool
) -> None:
    async def cancel_and_finish(_: Step) -> None:
        handle = theatre.client.get_workflow_handle(theatre.last_id)
        if native:
            await handle.cancel()
        else:
            await handle.signal("cancel", {"reason": "too late?"})

    theatre.world.script[stage] = cancel_and_finish
    handle = await theatre.start()
    try:
        await handle.result()
    except WorkflowFailureError:
        assert native
    assert theatre.world.calls["publish"] == 0
    assert theatre.world.states() == [State.CANCELLED]


async def test_a_failed_stage_parks_and_a_retry_goes_on_from_there(theatre: Theatre) -> None:
    theatre.world.script["rewrite"] = broken
    handle = await theatre.start()
    await until(lambda: State.PARKED in theatre.world.states())
    del theatre.world.script["rewrite"]
    await handle.signal(ArticleWorkflow.retry)
    assert (await handle.result()).state is State.MEASURED
    assert theatre.world.calls["generate"] == 1
    assert theatre.world.steps["rewrite"][-1].retry == 1


async def test_a_parked_article_fails_after_seven_days_and_a_new_run_resumes_it(years: Theatre) -> None:
    years.world.script["rewrite"] = broken
    handle = await years.start()
    with pytest.raises(WorkflowFailureError):
        await handle.result()
    assert years.world.states() == [State.PARKED, State.FAILED]
    del years.world.script["rewrite"]
    saved = years.world.notes[-1].progress
    again = await years.start(progress=saved)
    assert (await again.result()).state is State.MEASURED
    assert years.world.calls["generate"] == 1


async def test_a_person_approves(theatre: Theatre) -> None:
    handle = await theatre.start(plan(review=HUMAN))
    await until(lambda: State.REVIEW in theatre.world.states())
    await handle.signal(ArticleWorkflow.approve, Word(by="ann"))
    assert (await handle.result()).state is State.MEASURED
    [decision] = theatre.world.decisions.values()
    assert (decision.action, decision.by) == (Action.APPROVE, "ann")


async def test_a_person_sends_back_and_the_next_draft_is_reviewed_anew(theatre: Theatre) -> None:
    handle = await theatre.start(plan(review=HUMAN))
    await until(lambda: theatre.world.states().count(State.REVIEW) == 1)
    await handle.signal(ArticleWorkflow.send_back, Word(by="ann", notes="shorter"))
    await until(lambda: theatre.world.states().count(State.REVIEW) == 2)
    assert theatre.world.steps["rewrite"][-1].round == 1
    assert theatre.world.steps["rewrite"][-1].draft_id == "rewrite-0-0-one"
    await handle.signal(ArticleWorkflow.approve, Word(by="ann"))
    await handle.result()
    assert [d.action for d in theatre.world.decisions.values()] == [Action.SEND_BACK, Action.APPROVE]


async def test_a_person_rejects_and_nothing_is_published(theatre: Theatre) -> None:
    handle = await theatre.start(plan(review=HUMAN))
    await until(lambda: State.REVIEW in theatre.world.states())
    await handle.signal("reject", {"by": "ann", "notes": "off topic"})
    ended = await handle.result()
    assert (ended.state, ended.reason, theatre.world.calls["publish"]) == (State.REJECTED, "off topic", 0)


async def test_a_decision_on_another_text_changes_nothing(theatre: Theatre) -> None:
    handle = await theatre.start(plan(review=HUMAN))
    await until(lambda: State.REVIEW in theatre.world.states())
    await handle.signal(ArticleWorkflow.approve, Word(draft_digest="0" * 64))
    await handle.signal(ArticleWorkflow.reject, Word(notes="no"))
    assert (await handle.result()).state is State.REJECTED


async def test_nobody_decides_so_it_escalates_and_then_parks(years: Theatre) -> None:
    handle = await years.start(plan(review=HUMAN))
    with pytest.raises(WorkflowFailureError):
        await handle.result()
    assert years.world.states() == [State.REVIEW, State.REVIEW, State.PARKED, State.FAILED]
    assert years.world.notes[1].progress.reason == "overdue"


async def test_a_blocked_draft_is_sent_back_by_the_rules_and_parks_after_the_last_round(theatre: Theatre) -> None:
    theatre.world.script["judge"] = lambda step: verdict(step, Outcome.BLOCKED)
    handle = await theatre.start(plan(review=ReviewPolicy(mode=ReviewMode.AUTO, max_rounds=2)))
    await until(lambda: State.PARKED in theatre.world.states())
    assert theatre.world.calls["rewrite"] == 3
    await handle.signal(ArticleWorkflow.cancel, Word())
    await handle.result()


async def test_a_flagged_draft_waits_for_a_person_where_the_plan_says_so(theatre: Theatre) -> None:
    theatre.world.script["judge"] = lambda step: verdict(step, Outcome.FLAGGED)
    handle = await theatre.start()
    await until(lambda: State.REVIEW in theatre.world.states())
    await handle.signal(ArticleWorkflow.approve, Word())
    assert (await handle.result()).state is State.MEASURED


async def test_a_lost_reply_is_reconciled_and_never_sent_again(theatre: Theatre) -> None:
    theatre.world.script["publish"] = broken
    looks = [PublicationState.UNKNOWN, PublicationState.PUBLISHED]
    theatre.world.script["reconcile"] = lambda step: receipt(step, looks.pop(0))
    assert (await (await theatre.start()).result()).state is State.MEASURED
    assert (theatre.world.calls["publish"], theatre.world.calls["reconcile"]) == (1, 2)


async def test_a_post_that_is_provably_absent_is_sent_again(theatre: Theatre) -> None:
    replies = [PublicationState.UNKNOWN, PublicationState.PUBLISHED]
    theatre.world.script["publish"] = lambda step: receipt(step, replies.pop(0))
    theatre.world.script["reconcile"] = lambda step: receipt(step, PublicationState.RESERVED)
    assert (await (await theatre.start()).result()).state is State.MEASURED
    assert theatre.world.calls["publish"] == 2


async def test_an_undecidable_post_parks_the_article(theatre: Theatre) -> None:
    theatre.world.script["publish"] = lambda step: receipt(step, PublicationState.PARKED, reason="cannot be asked")
    handle = await theatre.start()
    await until(lambda: State.PARKED in theatre.world.states())
    assert "cannot be asked" in theatre.world.notes[-1].progress.reason
    await handle.signal(ArticleWorkflow.cancel, Word())
    await handle.result()


async def test_one_site_is_enough_to_go_on_and_the_other_is_named(theatre: Theatre) -> None:
    two = plan()
    routes = two.routes | {Stage.PUBLISH: tuple(Route(name=n, queue="channel.test", policy=QUICK) for n in ("a", "b"))}
    theatre.world.script["publish"] = lambda step: (
        receipt(step, PublicationState.FAILED, reason="401") if step.route == "b" else None
    )
    handle = await theatre.start(two.model_copy(update={"routes": routes}))
    ended = await handle.result()
    assert (ended.state, ended.reason) == (State.MEASURED, "b: failed: 401")
    assert theatre.world.notes[0].progress.reason == "b: failed: 401"


async def test_a_retry_while_monitoring_publishes_where_a_page_is_missing(theatre: Theatre) -> None:
    refusing = True
    theatre.world.script["publish"] = lambda step: (
        receipt(step, PublicationState.FAILED, reason="401") if refusing and step.route == "b" else None
    )
    theatre.world.script["reconcile"] = lambda step: receipt(step, PublicationState.FAILED, reason="401")
    both = tuple(Route(name=name, queue="channel.test", policy=QUICK) for name in ("a", "b"))
    routes = plan().routes | {Stage.PUBLISH: both}
    slow = MonitorPolicy(offsets=(1,), day=timedelta(seconds=8))
    handle = await theatre.start(plan(routes=routes, monitor=slow))
    await until(lambda: State.PUBLISHED in theatre.world.states())
    assert theatre.world.notes[-1].progress.reason == "b: failed: 401"
    refusing = False
    await handle.signal("retry")
    await until(lambda: theatre.world.notes[-1].progress.reason == "")
    ended = await handle.result()
    assert (ended.state, ended.reason) == (State.MEASURED, "")
    assert sorted(step.route for step in theatre.world.steps["publish"]) == ["a", "b", "b"]


@pytest.mark.parametrize("early", [True, False])
async def test_a_callback_confirms_whether_it_comes_before_or_after_the_send_returned(
    theatre: Theatre, early: bool
) -> None:
    async def accepted(step: Step) -> Receipt:
        if early:
            await theatre.client.get_workflow_handle(theatre.last_id).signal("callback", step.route)
        return receipt(step, PublicationState.SENT, look_again=soon(3600))

    theatre.world.script["publish"] = accepted
    handle = await theatre.start()
    if not early:
        await until(lambda: theatre.world.calls["publish"] == 1)
        await handle.signal(ArticleWorkflow.callback, "blog")
        await handle.signal(ArticleWorkflow.callback, "blog")
    assert (await handle.result()).state is State.MEASURED
    assert theatre.world.calls["inbox"] == 1


async def test_a_missing_callback_is_looked_for_at_the_deadline(years: Theatre) -> None:
    years.world.script["publish"] = lambda step: receipt(step, PublicationState.SENT, look_again=soon(600))
    years.world.script["inbox"] = lambda step: receipt(step, PublicationState.UNKNOWN)
    assert (await (await years.start()).result()).state is State.MEASURED
    assert (years.world.calls["inbox"], years.world.calls["reconcile"]) == (1, 1)


async def test_priority_is_kept_and_shown(theatre: Theatre) -> None:
    handle = await theatre.start(plan(review=HUMAN))
    await until(lambda: State.REVIEW in theatre.world.states())
    await handle.signal(ArticleWorkflow.prioritise, Rank(priority=1))
    assert (await handle.query(ArticleWorkflow.progress)).priority == 1
    await handle.signal(ArticleWorkflow.approve, Word())
    await handle.result()


async def test_a_dead_engine_lowers_the_coverage_and_fails_nothing(theatre: Theatre) -> None:
    theatre.world.script["sample"] = lambda step: broken(step) if step.engine == "engine-b" else None
    assert (await (await theatre.start()).result()).state is State.MEASURED


async def test_a_pause_survives_the_change_to_monitoring(theatre: Theatre) -> None:
    async def pause(_: Step) -> None:
        await theatre.client.get_workflow_handle(theatre.last_id).signal("pause", {})

    theatre.world.script["publish"] = pause
    monitor = MonitorPolicy(offsets=(1,), day=timedelta(seconds=1))
    handle = await theatre.start(plan(monitor=monitor))
    await until(lambda: State.PAUSED in theatre.world.states())
    assert [step for step in theatre.world.steps["sample"] if step.window == "after"] == []
    await theatre.client.get_workflow_handle(theatre.last_id).signal("resume")
    assert (await handle.result()).state is State.MEASURED
