"""Every word from every door, said to a running article; judged by the store and by the sandbox's ledger."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC

import pytest

from citeloop.models.plan import ReviewMode, Stage, State
from tests.installation import WRITERS, Installation, eventually
from tests.starter.doors import CommandLine, Door, Script, Signal, Word

WRITING = (Stage.GENERATE, Stage.REWRITE)
MADE = (*WRITING, Stage.ILLUSTRATE, Stage.REVIEW)
HEARTBEAT = 5.0
"""Seconds, as channels.sandbox.toml has it."""

DOORS: dict[str, Callable[[Installation], Door]] = {"cli": CommandLine, "script": Script, "signal": Signal}


@pytest.fixture(params=DOORS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def door(name: str, installation: Installation) -> AsyncIterator[Door]:
    """The sandbox is as quick and as willing afterwards as it was before."""
    yield DOORS[name](installation)
    await writers(installation)


async def writers(installation: Installation, *, a_chunk_takes: float = 0.0, refuse: tuple[str, ...] = ()) -> None:
    """An answer has some twenty chunks."""
    fields = {"per_chunk": (a_chunk_takes, a_chunk_takes), "refuse": refuse}
    await installation.sandbox.configure(**dict.fromkeys(WRITERS, fields))


async def mid_call(installation: Installation, keyword: str, *, a_chunk_takes: float) -> str:
    """An article whose first call is running."""
    before = await installation.calls()
    await writers(installation, a_chunk_takes=a_chunk_takes)
    article_id = await installation.submit(keyword, mode=ReviewMode.AUTO, stages=MADE)

    async def called() -> bool:
        return await installation.calls() == before + 1

    await eventually(called, within=20, every=0.05)
    return article_id


async def test_pause_lets_the_running_call_finish_and_resume_goes_on(
    installation: Installation, door: Door, name: str
) -> None:
    before, abandoned = await installation.calls(), await _abandoned(installation)
    article_id = await mid_call(installation, f"paused by {name}", a_chunk_takes=0.2)
    await door.say(Word.PAUSE, article_id, "price change")
    paused = await installation.until(article_id, State.PAUSED, State.DONE)
    calls = await installation.calls() - before
    assert (paused.state, paused.attempts, paused.faults) == (State.PAUSED, calls, 0)
    assert paused.done == MADE[:calls]
    assert paused.stage is MADE[calls]
    await door.say(Word.PRIORITISE, article_id, "1")
    assert await installation.calls() == before + calls
    await writers(installation)
    await door.say(Word.RESUME, article_id)
    done = await installation.until(article_id, State.DONE)
    assert (done.done, done.hold, done.priority) == (MADE, None, 1)
    assert await installation.calls() == before + 2
    assert await _abandoned(installation) == abandoned


async def test_cancel_ends_the_running_call_within_the_heartbeat(
    installation: Installation, door: Door, name: str
) -> None:
    posts, before = await _posts(installation), await _abandoned(installation)
    article_id = await mid_call(installation, f"cancelled by {name}", a_chunk_takes=1.0)

    async def hung_up() -> float | None:
        return time.time() if await _abandoned(installation) == before + 1 else None

    ended_at, _ = await asyncio.gather(
        eventually(hung_up, within=20, every=0.05), door.say(Word.CANCEL, article_id, "wrong product")
    )
    article = await installation.until(article_id, State.CANCELLED)
    assert (article.reason, article.attempts, article.done) == ("wrong product", 1, ())
    assert ended_at - await _heard_at(installation, article_id, Word.CANCEL) < HEARTBEAT
    assert await _posts(installation) == posts


async def test_a_draft_is_sent_back_with_notes_then_approved_and_published(
    installation: Installation, door: Door, name: str
) -> None:
    article_id = await installation.submit(f"sent back by {name}")
    await installation.until(article_id, State.REVIEW)
    calls, posts = await installation.calls(), await _posts(installation)
    await door.say(Word.SEND_BACK, article_id, "name the licence")
    again = await installation.until(article_id, State.REVIEW, State.PARKED, round_=1)
    assert (again.state, again.round, await installation.calls()) == (State.REVIEW, 1, calls + 1)
    await door.say(Word.APPROVE, article_id, "good")
    article = await installation.until(article_id, State.MEASURED, State.PARKED)
    said = [event.detail for event in await installation.events(article_id) if event.kind == "decision"]
    assert (article.state, article.done) == (State.MEASURED, tuple(Stage))
    assert [line.partition(" by ")[0] for line in said] == ["send_back", "approve"]
    assert said[0].endswith(": name the licence")
    assert await _posts(installation) == posts + 2


async def test_a_rejected_draft_ends_the_article_and_is_never_published(
    installation: Installation, door: Door, name: str
) -> None:
    posts = await _posts(installation)
    article_id = await installation.submit(f"rejected by {name}")
    await installation.until(article_id, State.REVIEW)
    await door.say(Word.REJECT, article_id, "not ours")
    article = await installation.until(article_id, State.REJECTED, State.PARKED)
    assert (article.state, article.reason, article.urls) == (State.REJECTED, "not ours", ())
    assert await _posts(installation) == posts


async def test_a_parked_article_is_retried_from_the_failed_stage(
    installation: Installation, door: Door, name: str
) -> None:
    await writers(installation, refuse=(f"retried by {name}",))
    article_id = await installation.submit(f"retried by {name}", mode=ReviewMode.AUTO, stages=WRITING)
    parked = await installation.until(article_id, State.PARKED, State.DONE)
    assert (parked.state, parked.stage, parked.attempts) == (State.PARKED, Stage.GENERATE, 3)
    calls = await installation.calls()
    await writers(installation)
    await door.say(Word.RETRY, article_id)
    article = await installation.until(article_id, State.DONE)
    assert (article.done, article.reason, article.attempts) == (WRITING, "", 5)
    assert await installation.calls() == calls + 2


async def _abandoned(installation: Installation) -> int:
    """Calls that we hung up on."""
    return int((await installation.sandbox.ledger())["totals"]["abandoned"])


async def _posts(installation: Installation) -> int:
    return int((await installation.sandbox.ledger())["totals"]["posts"])


async def _heard_at(installation: Installation, article_id: str, word: Word) -> float:
    """When Temporal took the signal in, in seconds since the epoch."""
    history = await installation.workflow(article_id).fetch_history()
    (heard,) = [
        event for event in history.events if event.workflow_execution_signaled_event_attributes.signal_name == word
    ]
    return float(heard.event_time.ToDatetime(UTC).timestamp())
