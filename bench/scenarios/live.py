"""e. A channel's rate is changed while articles wait, and one 429 stops it for as long as the provider asks."""

import asyncio
import time

from bench import referee
from bench.house import House
from bench.jobs import GENERATE, batch
from bench.referee import Json
from bench.scenarios.running import Run, contender, goal
from bench.terms import Terms

CHANNEL = "deepseek"
TERMS = Terms(rates={CHANNEL: 20}, faults=0.0, refusable=False, concurrency=32)
"""The provider enforces nothing here: what the ledger sees is our own doing. 20/s is channels.toml's rate."""
FOLLOWS_WITHIN = 2.0
WAIT = 10.0
IN_THE_AIR = 0.3
"""Calls already on their way when the 429 is written arrive within this."""


async def live(run: Run) -> Json:
    articles = run.number(500, 120)
    async with contender("citeloop-2", TERMS, run, GENERATE) as one:
        assert isinstance(one, House)
        before = await one.judge.totals()
        run.say("live: 2/s, 5/s, 0, 2/s")
        await one.channels.set_rate(CHANNEL, "2/s")
        await one.submit(batch(articles, "live"), GENERATE)
        await one.judge.until(lambda totals: int(totals["calls"]) >= 8, within=60)  # noqa: PLR2004 - a few calls
        changes = await _changes(one, run)
        run.say("live: one 429 with Retry-After 10, from two workers at 5/s")
        held = await _held(one, run)
        await one.channels.set_rate(CHANNEL, None)
        await one.judge.until(goal(articles, GENERATE, before), within=120)
        ledger = await one.judge.ledger()
    return {
        "citeloop": {
            "articles": articles,
            "changes": changes,
            "follows_within_2_s": all(change["follows"] for change in changes.values()),
            "hold": held,
            "failed": articles - len(ledger.paid_articles("generate")),
        }
    }


async def _changes(one: House, run: Run) -> dict[str, Json]:
    """Each change, watched for a while; the rate is read from two seconds after it on."""
    seconds = run.number(15, 8)
    marks = []
    for rate in (5, 0, 2):
        await one.channels.set_rate(CHANNEL, f"{rate}/s" if rate else "0")
        marks.append((rate, time.time()))
        await asyncio.sleep(seconds)
    times = [call.at for call in (await one.judge.ledger()).calls]
    found = {}
    for rate, at in marks:
        measured = referee.rate_between(times, at + FOLLOWS_WITHIN, at + seconds)
        settled = referee.settled_after(times, at, rate, at + seconds)
        slack = 1.5 / (seconds - FOLLOWS_WITHIN)
        found[f"to {rate}/s"] = {
            "measured": round(measured, 2),
            "settled_after_s": round(settled, 2) if settled is not None else None,
            "follows": abs(measured - rate) <= 0.1 * rate + slack and settled is not None and settled <= FOLLOWS_WITHIN,
        }
    return found


async def _held(one: House, run: Run) -> Json:
    await one.channels.set_rate(CHANNEL, "5/s")
    await asyncio.sleep(run.number(6, 3))
    refused = len((await one.judge.ledger()).calls)
    await one.judge.limit_next(CHANNEL, WAIT)
    await asyncio.sleep(WAIT + 8)
    calls = (await one.judge.ledger()).calls
    at = next(call.at for call in calls[refused - 1 :] if call.limited)
    times = sorted(call.at for call in calls if call.at > at)
    inside = [moment - at for moment in times if moment < at + WAIT]
    after = [moment - at for moment in times if moment >= at + WAIT]
    return {
        "retry_after_s": WAIT,
        "limited": sum(call.limited for call in calls),
        "in_the_air": sum(moment <= IN_THE_AIR for moment in inside),
        "calls_during_hold": sum(moment > IN_THE_AIR for moment in inside),
        "first_call_after_s": round(after[0], 2) if after else None,
    }
