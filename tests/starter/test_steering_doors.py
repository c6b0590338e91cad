"""Every word from every door, said to a running article; judged by the store and by the sandbox's ledger."""

import time
from collections.abc import AsyncIterator

import pytest

from citeloop.models.plan import ReviewMode, Stage, State
from tests.installation import WRITERS, Installation, eventually
from tests.starter.doors import CommandLine, Door, Script, Signal, Word

WRITING = (Stage.GENERATE, Stage.REWRITE)
HEARTBEAT = 5.0
"""Seconds, as channels.sandbox.toml has it."""

DOORS = {"cli": CommandLine, "script": Script, "signal": Signal}


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
    article_id = await installation.submit(keyword, mode=ReviewMode.AUTO, stages=WRITING)

    async def called() -> bool:
        return await installation.calls() == before + 1

    await eventually(called, within=20, every=0.05)
    return article_id


async def test_pause_lets_the_running_call_finish_and_resume_goes_on(
    installation: Installation, door: Door, name: str
) -> None:
    before = await installation.calls()
    article_id = await mid_call(installation, f"paused by {name}", a_chunk_takes=0.25)
    await door.say(Word.PAUSE, article_id, "price change")
    paused = await installation.until(article_id, State.PAUSED, State.DONE)
    assert (paused.state, paused.stage, paused.attempts) == (State.PAUSED, Stage.REWRITE, 1)
    assert paused.faults == 0
    await door.say(Word.PRIORITISE, article_id, "1")
    assert await installation.calls() == before + 1
    await writers(installation)
    await door.say(Word.RESUME, article_id)
    done = await installation.until(article_id, State.DONE)
    assert (done.done, done.attempts, done.hold, done.priority) == (WRITING, 2, None, 1)
    assert await installation.calls() == before + 2


async def test_cancel_ends_the_running_call_within_the_heartbeat(
    installation: Installation, door: Door, name: str
) -> None:
    posts = await _posts(installation)
    before = await _abandoned(installation)
    article_id = await mid_call(installation, f"cancelled by {name}", a_chunk_takes=1.0)
    began = time.monotonic()
    await door.say(Word.CANCEL, article_id, "wrong product")

    async def abandoned() -> bool:
        return await _abandoned(installation) == before + 1

    await eventually(abandoned, within=HEARTBEAT, every=0.05)
    took = time.monotonic() - began
    article = await installation.until(article_id, State.CANCELLED)
    assert (article.reason, article.attempts, article.done) == ("wrong product", 1, ())
    assert took < HEARTBEAT + (_START_OF_A_PROCESS if name != "signal" else 0)
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


_START_OF_A_PROCESS = 5.0
