from datetime import timedelta
from typing import Any

from temporalio.client import WorkflowHandle
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.exceptions import ApplicationError

from citeloop.models.plan import MonitorPolicy, State
from citeloop.models.work import CorrectionKind, Receipt
from tests.workflows.conftest import Theatre
from tests.workflows.test_article import until
from tests.workflows.world import QUEUES, _route, broken, plan
from workflows.correction import CorrectionWorkflow
from workflows.orders import CorrectionOrder
from workflows.stages import Errand, PageRef


def errand(article: str = "a1", **changes: Any) -> Errand:
    made = Errand(
        page=PageRef(tenant_id="t1", article_id=article, site="blog"),
        correction_id="c1",
        kind=CorrectionKind.CORRECT,
        keyword="vector database",
        route=_route("blog"),
        weight=1.0,
        draft_id="d2",
        patience=timedelta(seconds=30),
    )
    return made.model_copy(update=changes)


def withdrawal(article: str = "a1") -> Errand:
    return errand(article, kind=CorrectionKind.WITHDRAW, draft_id=None)


async def start(theatre: Theatre, page: PageRef, signal: str | None = None) -> WorkflowHandle[Any, int]:
    return await theatre.client.start_workflow(
        CorrectionWorkflow.run,
        CorrectionOrder(page=page),
        id=f"correction/{id(theatre.world)}",
        task_queue=QUEUES[0],
        id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        start_signal=signal,
    )


async def test_a_correction_is_carried_out_and_the_page_looked_at(theatre: Theatre) -> None:
    theatre.world.errands = [errand()]
    assert await (await start(theatre, errand().page)).result() == 1
    assert theatre.world.calls["carry_out"] == 1
    (query,) = theatre.world.steps["page"]
    assert (query.step.draft_id, query.late) == ("d2", False)


async def test_two_corrections_of_one_page_are_carried_out_one_after_the_other(theatre: Theatre) -> None:
    theatre.world.errands = [errand(), errand(correction_id="c2", draft_id="d3")]
    assert await (await start(theatre, errand().page)).result() == 2
    assert [step.correction_id for step in theatre.world.steps["carry_out"]] == ["c1", "c2"]


async def test_what_is_asked_while_one_is_carried_out_is_done_by_the_same_run(theatre: Theatre) -> None:
    theatre.world.errands = [errand()]

    async def ask_again(_: Errand) -> None:
        if theatre.world.calls["carry_out"] == 1:
            theatre.world.errands.append(errand(correction_id="c2"))
            await start(theatre, errand().page, "asked")

    theatre.world.script["carry_out"] = ask_again
    handle = await start(theatre, errand().page)
    assert await handle.result() == 2


async def test_a_site_that_is_away_is_tried_again_until_it_answers(theatre: Theatre) -> None:
    def away(_: Errand) -> Receipt | None:
        if theatre.world.calls["carry_out"] < 3:
            raise ApplicationError("HTTP 503", type="unavailable", next_retry_delay=timedelta(milliseconds=50))
        return None

    theatre.world.errands = [errand()]
    theatre.world.script["carry_out"] = away
    assert await (await start(theatre, errand().page)).result() == 1
    assert theatre.world.calls["carry_out"] == 3
    assert theatre.world.calls["give_up"] == 0


async def test_what_no_repetition_can_mend_is_given_up_with_its_reason(theatre: Theatre) -> None:
    theatre.world.errands = [errand()]
    theatre.world.script["carry_out"] = broken
    await (await start(theatre, errand().page)).result()
    (given_up,) = theatre.world.steps["give_up"]
    assert (given_up.correction_id, given_up.problem) == ("c1", "broken: five faults")
    assert theatre.world.calls["page"] == 0


async def test_a_withdrawal_from_an_article_that_has_ended_succeeds(theatre: Theatre) -> None:
    theatre.world.errands = [withdrawal("gone")]
    assert await (await start(theatre, withdrawal("gone").page)).result() == 1
    assert theatre.world.calls["page"] == 0


async def test_a_withdrawal_tells_the_article_that_is_still_monitored(theatre: Theatre) -> None:
    article = f"a{id(theatre.world)}"
    monitored = plan(article, monitor=MonitorPolicy(offsets=(28,)))
    handle = await theatre.start(monitored, workflow_id=f"article/t1/{article}")
    await until(lambda: State.PUBLISHED in theatre.world.states())
    theatre.world.errands = [withdrawal(article)]
    await (await start(theatre, withdrawal(article).page)).result()
    ended = await handle.result()
    assert (ended.state, ended.urls) == (State.MEASURED, ())
