"""A provider that is silent: before its first word it is waited for, in the middle of a stream it is cut off."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from citeloop.models.plan import ReviewMode, Stage, State
from tests.installation import Installation, eventually
from tests.journeys.conftest import CHANNELS, Installing, Tell

pytestmark = [pytest.mark.journey, pytest.mark.timeout(240)]

SILENCE = 30.0
BETWEEN_CHUNKS = 4.0
ONE_CALL = (Stage.GENERATE,)


@pytest.fixture
def patient(tmp_path: Path) -> Path:
    """The journeys' channels, with a minute's patience for the first byte."""
    file = tmp_path / "channels.toml"
    text = CHANNELS.read_text()
    file.write_text(text.replace('first_byte = "4s"', 'first_byte = "60s"').replace('total = "20s"', 'total = "90s"'))
    return file


async def test_silence_before_the_first_byte_is_waited_for_and_in_mid_stream_it_is_cut(
    installing: Installing, tell: Tell, patient: Path
) -> None:
    async with installing(api=False, channels=patient) as journey:
        await journey.sandbox.configure(
            deepseek={"first_byte_silence": SILENCE}, doubao={"mid_stream_silence": 3 * SILENCE}
        )
        waited, cut = await asyncio.gather(_waited_for(journey), _cut(journey))
    tell(waited_for_the_first_byte_s=round(waited, 1), cut_in_mid_stream_after_s=round(cut, 1))
    assert waited >= SILENCE
    assert BETWEEN_CHUNKS <= cut < BETWEEN_CHUNKS + 3


async def _waited_for(journey: Installation) -> float:
    began = time.monotonic()
    article_id = await journey.submit("slow to begin", mode=ReviewMode.AUTO, stages=ONE_CALL, writers=("deepseek",))
    article = await journey.until(article_id, State.DONE, State.PARKED, within=60)
    entry = await _entry(journey, "deepseek")
    assert (article.state, article.attempts, article.faults) == (State.DONE, 1, 0)
    assert (entry["calls"], entry["ok"], entry["abandoned"]) == (1, 1, 0)
    return time.monotonic() - began


async def _cut(journey: Installation) -> float:
    """Seconds from the call until we hung up."""
    article_id = await journey.submit("falls silent", mode=ReviewMode.AUTO, stages=ONE_CALL, writers=("doubao",))

    async def hung_up() -> bool:
        return bool((await _entry(journey, "doubao"))["abandoned"] == 1)

    await eventually(hung_up, within=30, every=0.05)
    now = time.time()
    await journey.sandbox.configure(doubao={"mid_stream_silence": 0})
    article = await journey.until(article_id, State.DONE, State.PARKED)
    entry = await _entry(journey, "doubao")
    assert (article.state, article.attempts, article.faults) == (State.DONE, 2, 1)
    assert (entry["calls"], entry["ok"]) == (2, 1)
    return now - float(entry["first_call"])


async def _entry(journey: Installation, name: str) -> dict[str, Any]:
    found: dict[str, Any] = (await journey.sandbox.ledger())["providers"].get(name, {"abandoned": 0})
    return found
