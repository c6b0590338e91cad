"""Renews the histories under tests/replay/histories: `python -m tests.replay.record`.

They stand for the runs that are open in production while a new version is deployed. Renew them only when

- the changed path is new, and stands behind `workflow.patched` (then also record what the new path does), or
- no run of the old kind can be open any more, or there is no release yet.

A replay that fails is not a reason to renew: it says that open articles would be stuck.
"""

import asyncio
import json
import logging
import os
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowHandle
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import WorkflowEnvironment

from citeloop.models.plan import MonitorPolicy, ReviewMode, ReviewPolicy, State
from citeloop.models.work import PublicationState, Receipt, Step
from tests.workflows.conftest import SCRIPTS, Theatre, _theatre
from tests.workflows.test_article import until
from tests.workflows.test_campaign import Book, start
from tests.workflows.world import broken, plan, receipt
from workflows.article import ArticleWorkflow
from workflows.orders import Word
from workflows.steering import CAMPAIGN, CHANNEL, PRIORITY, STAGE, STATE, TENANT

FOLDER = Path(__file__).parent / "histories"
HUMAN = ReviewPolicy(mode=ReviewMode.HUMAN)
SERVER = ("limit.historyCount.suggestContinueAsNew=60", 'history.timerProcessorMaxTimeShift="10ms"')
"""A campaign is asked early to go on in a new run."""

Handle = WorkflowHandle[Any, Any]


async def straight(theatre: Theatre) -> Handle:
    handle = await theatre.start()
    await handle.result()
    return handle


async def in_a_campaign(theatre: Theatre) -> Handle:
    """Waits for the campaign's baseline; its first writer refuses."""
    theatre.world.baseline = False
    theatre.world.script["generate"] = lambda step: broken(step) if step.route == "one" else None
    handle = await theatre.start(plan(campaign_id="c1"))
    await until(lambda: theatre.world.calls["baseline_ready"] >= 1)
    theatre.world.baseline = True
    await handle.signal("baseline", {"by": "campaign"})
    await handle.result()
    return handle


async def sent_back(theatre: Theatre) -> Handle:
    handle = await theatre.start(plan(review=HUMAN))
    await until(lambda: theatre.world.states().count(State.REVIEW) == 1)
    await handle.signal(ArticleWorkflow.send_back, Word(by="ann", notes="shorter"))
    await until(lambda: theatre.world.states().count(State.REVIEW) == 2)
    await handle.signal(ArticleWorkflow.approve, Word(by="ann"))
    await handle.result()
    return handle


async def parked_and_retried(theatre: Theatre) -> Handle:
    theatre.world.script["rewrite"] = broken
    handle = await theatre.start()
    await until(lambda: State.PARKED in theatre.world.states())
    del theatre.world.script["rewrite"]
    await handle.signal(ArticleWorkflow.retry)
    await handle.result()
    return handle


async def paused_and_resumed(theatre: Theatre) -> Handle:
    async def pause(_: Step) -> None:
        await theatre.client.get_workflow_handle(theatre.last_id).signal("pause", {})

    theatre.world.script["generate"] = pause
    handle = await theatre.start()
    await until(lambda: State.PAUSED in theatre.world.states())
    await handle.signal(ArticleWorkflow.resume)
    await handle.result()
    return handle


async def cancelled(theatre: Theatre) -> Handle:
    handle = await theatre.start(plan(review=HUMAN))
    await until(lambda: State.REVIEW in theatre.world.states())
    await handle.signal(ArticleWorkflow.cancel, Word(by="ann", reason="wrong brand"))
    await handle.result()
    return handle


async def monitored_for_days(theatre: Theatre) -> Handle:
    """Goes on in a new run before the long wait, and is cancelled there."""
    handle = await theatre.start(plan(monitor=MonitorPolicy(offsets=(0, 7), day=timedelta(days=1))))
    await until(lambda: theatre.world.calls["sample"] >= 4)  # two engines, before and at once after
    await until(lambda: State.PUBLISHED in theatre.world.states())
    await asyncio.sleep(1)
    await theatre.client.get_workflow_handle(handle.id).signal(ArticleWorkflow.cancel, Word(by="ann", reason="enough"))
    await handle.result()
    return handle


async def reply_lost_and_called_back(theatre: Theatre) -> Handle:
    async def accepted(step: Step) -> Receipt:
        await theatre.client.get_workflow_handle(theatre.last_id).signal("callback", step.route)
        return receipt(step, PublicationState.SENT)

    theatre.world.script["publish"] = broken
    theatre.world.script["reconcile"] = accepted
    return await straight(theatre)


async def campaign(theatre: Theatre) -> Handle:
    """Baseline, window, pause, resume, controls, end."""
    monitor = MonitorPolicy(offsets=(1, 2), day=timedelta(milliseconds=300))
    book = Book(theatre.world, 3, prompts=2, monitor=monitor)
    handle = await start(theatre, window=2)
    await until(lambda: book.admitted == [2])
    await handle.signal("pause", {"reason": "budget"})
    await until(lambda: "pause" in book.changes())
    await handle.signal("resume")
    book.produce(2)
    await until(lambda: book.admitted == [2, 1])
    book.produce(1)
    book.end(3)
    await handle.result()
    return handle


async def campaign_cancelled(theatre: Theatre) -> Handle:
    book = Book(theatre.world, 3)
    handle = await start(theatre, window=2)
    await until(lambda: book.admitted == [2])
    await handle.signal("cancel", {"reason": "wrong brand"})
    await handle.result()
    return handle


SCENARIOS: tuple[Callable[[Theatre], Awaitable[Handle]], ...] = (
    straight,
    in_a_campaign,
    sent_back,
    parked_and_retried,
    paused_and_resumed,
    monitored_for_days,
    cancelled,
    reply_lost_and_called_back,
    campaign,
    campaign_cancelled,
)


async def record() -> None:
    for old in FOLDER.glob("*.json"):
        old.unlink()
    async with await WorkflowEnvironment.start_local(
        identity="recorder",
        data_converter=pydantic_data_converter,
        dev_server_existing_path=str(SCRIPTS / "temporal"),
        dev_server_extra_args=[part for value in SERVER for part in ("--dynamic-config-value", value)],
        search_attributes=[TENANT, CAMPAIGN, STAGE, STATE, CHANNEL, PRIORITY],
        dev_server_log_level="error",
    ) as env:
        for scenario in SCENARIOS:
            async with _theatre(env) as theatre:
                handle = await scenario(theatre)
                await _write(theatre, scenario.__name__, handle)


async def _write(theatre: Theatre, name: str, handle: Handle) -> None:
    """One file for each run of the chain: `straight-1.json` ends where `straight-2.json` begins."""
    run_id, number = handle.first_execution_run_id, 0
    while run_id:
        history = await theatre.client.get_workflow_handle(handle.id, run_id=run_id).fetch_history()
        number += 1
        told = _without_traces(json.loads(history.to_json()))
        (FOLDER / f"{name}-{number}.json").write_text(json.dumps(told, indent=1, sort_keys=True) + "\n")
        last = history.events[-1].workflow_execution_continued_as_new_event_attributes
        run_id = last.new_execution_run_id


def _without_traces(told: Any) -> Any:
    """Stack traces name the files of the machine that recorded; replay does not read them."""
    if isinstance(told, dict):
        return {key: _without_traces(value) for key, value in told.items() if key != "stackTrace"}
    return [_without_traces(value) for value in told] if isinstance(told, list) else told


if __name__ == "__main__":
    logging.disable(logging.WARNING)  # the scenarios' faults are on purpose
    FOLDER.mkdir(exist_ok=True)
    asyncio.run(record())
    os._exit(0)  # the native runtime's teardown at interpreter exit may abort
