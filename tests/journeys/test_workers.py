"""Workers that are drained, workers that share the queues, and rows that no worker was told of."""

import asyncio
import time

import pytest

from citeloop.models.plan import ReviewMode, Stage, State
from tests.installation import WRITERS, Installation, brand, eventually, request
from tests.journeys import campaigns
from tests.journeys.conftest import Installing, Tell
from tests.journeys.workers import worker

pytestmark = [pytest.mark.journey, pytest.mark.timeout(240)]

WRITING = (Stage.GENERATE, Stage.REWRITE)
SWEPT_WITHIN = 20.0


async def test_a_drained_worker_finishes_its_call_and_exits_with_code_0(installing: Installing, tell: Tell) -> None:
    async with installing(worker=False, api=False) as journey:
        await _silent(journey, 3)
        article_id = await journey.submit("drained in mid-call", stages=WRITING)
        async with worker(journey.stack, name="first") as first:
            await eventually(lambda: _called(journey), within=30)
            began = time.monotonic()
            code = await first.drained()
            seconds = time.monotonic() - began
        assert code == 0, first.log
        at_the_drain = await journey.sandbox.ledger()
        await _silent(journey, 0)
        async with worker(journey.stack, name="second"):
            article = await journey.until(article_id, State.DONE, State.PARKED)
        totals = (await journey.sandbox.ledger())["totals"]
    assert (at_the_drain["totals"]["calls"], at_the_drain["totals"]["ok"]) == (1, 1)
    assert (article.state, article.attempts, article.faults) == (State.DONE, 2, 0)
    assert (totals["calls"], totals["abandoned"], totals["bought_twice"]) == (2, 0, 0)
    tell(drained_s=round(seconds, 1), exit_code=code)


async def test_two_workers_with_different_queues_do_a_campaign_together(installing: Installing, tell: Tell) -> None:
    async with installing(worker=False) as journey, worker(journey.stack, "citeloop.*", name="desk") as desk:
        campaign_id = await campaigns.submit(journey)
        await asyncio.sleep(2)
        assert (await journey.sandbox.ledger())["totals"]["calls"] == 0
        async with worker(journey.stack, "channel.*", "publisher.*", name="hands") as hands:
            rows = await campaigns.ended(journey, campaign_id)
            figures = await campaigns.assert_nothing_lost_or_doubled(journey, rows)
            codes = [await one.drained() for one in (desk, hands)]
    assert "serving citeloop.bookkeeping, citeloop.workflows\n" in desk.log
    assert "citeloop." not in hands.log.partition("serving ")[2].splitlines()[0]
    tell(exit_codes=codes, **figures)
    assert codes == [0, 0]


async def test_a_row_that_was_committed_and_never_started_is_started_by_the_sweeper(
    installing: Installing, tell: Tell
) -> None:
    """What a door leaves that died between its commit and the start."""
    async with installing(api=False) as journey:
        lone = request("left behind", mode=ReviewMode.AUTO, stages=WRITING)
        several = request("a campaign", "left behind too", mode=ReviewMode.AUTO, stages=WRITING)
        began = time.monotonic()
        article = await journey.commands.accept_article(brand(), lone)
        campaign = await journey.commands.accept_campaign(brand(), several)
        accepted = (*article.article_ids, *campaign.article_ids)
        seconds = [await _started(journey, one) - began for one in accepted]
        states = [(await journey.until(one, State.DONE, State.PARKED)).state for one in accepted]
    assert states == [State.DONE] * 3
    assert max(seconds) < SWEPT_WITHIN
    tell(started_after_s=[round(one, 1) for one in seconds])


async def _silent(journey: Installation, seconds: float) -> None:
    await journey.sandbox.configure(**{name: {"first_byte_silence": seconds, "first_byte": (0, 0)} for name in WRITERS})


async def _called(journey: Installation) -> bool:
    return await journey.calls() == 1


async def _started(journey: Installation, article_id: str) -> float:
    async def running() -> bool:
        return (await journey.article(article_id)).started_at is not None

    await eventually(running, within=SWEPT_WITHIN + 10)
    return time.monotonic()
