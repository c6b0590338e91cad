"""kill -9 in the middle of a campaign: every article ends, nothing is posted twice, nothing is paid for twice
but what was on the wire.
"""

import os
import signal
import time

import pytest

from starter import endpoints
from tests.installation import Installation, eventually
from tests.journeys import campaigns
from tests.journeys.campaigns import Blow
from tests.journeys.conftest import Installing, Tell

pytestmark = [pytest.mark.journey, pytest.mark.timeout(240)]


async def strike(journey: Installation, name: str) -> Blow:
    """kill -9; returns when the supervisor has brought it back."""
    pid = journey.stack.endpoints.pids[name]
    open_calls = await campaigns.open_calls(journey)
    at = time.time()
    os.kill(pid, signal.SIGKILL)

    async def back() -> bool:
        known = endpoints.read(journey.home)
        return known is not None and known.pids.get(name, pid) != pid

    await eventually(back, within=30, every=0.05)
    return Blow(at=at, open_calls=open_calls, back_after=time.time() - at)


@pytest.mark.parametrize("process", ["worker", "temporal", "postgres"])
async def test_a_process_killed_twice_comes_back_and_nothing_is_lost_or_doubled(
    installing: Installing, tell: Tell, process: str
) -> None:
    async with installing() as journey:
        began = time.monotonic()
        campaign_id = await campaigns.submit(journey)
        await campaigns.written(journey, 8)
        first = await strike(journey, process)
        await campaigns.posted(journey, 3)
        second = await strike(journey, process)
        rows = await campaigns.ended(journey, campaign_id)
        seconds = round(time.monotonic() - began)
        figures = await campaigns.assert_nothing_lost_or_doubled(journey, rows, first, second)
    tell(seconds=seconds, **figures)
