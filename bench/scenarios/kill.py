"""d. kill -9 half-way, once of the worker and once of the server: what is lost, doubled, bought again, and how soon
work goes on."""

import asyncio
import time
from typing import Any

from bench import referee
from bench.house import House
from bench.jobs import SIX, batch
from bench.referee import Json, Ledger
from bench.rivalry import THREADS, Rival
from bench.scenarios.running import CALLS_OF_SIX, Run, contender, goal, seconds_of, teller
from bench.terms import Terms

TERMS = Terms(rates={"deepseek": 6, "doubao": 5, "qwen": 4}, lost_replies=0.05)
WATCHED = 60.0
"""Seconds after the blow in which the longest silence is looked for; its end is when service was back."""
BLAMED = 3.0
"""Seconds from the restart in which a silence must have begun to be the kill's; calls whose heartbeats have to run
out first are late, and have a figure of their own."""
QUIET, REDELIVERED = 45.0, 150.0
"""Silence after which nothing more is expected; of Celery later: its visibility timeout, and a sweep that looks for
what has passed it every hundred seconds."""
AWAY = 2.0
"""Seconds a rival's workers are away; ours are brought back by their supervisor."""


async def kill(run: Run) -> Json:
    out: Json = {}
    for struck in ("worker", "temporal") if run.ours else ():
        run.say(f"kill: citeloop's {struck}")
        out[f"citeloop-{struck}"] = await _struck("citeloop", struck, run)
    for name in run.rivals:
        run.say(f"kill: {name}'s workers")
        out[name] = await _struck(name + THREADS if name == "celery" else name, "worker", run)
    return out


async def _struck(name: str, part: str, run: Run) -> Json:
    articles = run.number(300, 40)
    work = batch(articles, f"kill {part}")
    within = seconds_of(2 * articles, TERMS)
    async with contender(name, TERMS, run, SIX) as one:
        before = await one.judge.totals()
        began = time.time()
        await one.submit(work, SIX, window=articles)
        half = goal(articles // 2, SIX, before)
        await one.judge.until(lambda totals: _half(totals, articles) or half(totals), within=within)
        struck = await _strike(one, part)
        quiet = REDELIVERED if name.startswith("celery") else QUIET
        tell = teller(run, one.name, articles)
        await one.judge.until(goal(articles, SIX, before), within=within, quiet=quiet, tell=tell)
        ledger = (await one.judge.ledger()).after(began)
    return _figures(ledger, articles, *struck)


def _half(totals: Json, articles: int) -> bool:
    return int(totals["ok"]) >= articles * CALLS_OF_SIX // 2


async def _strike(one: House | Rival, part: str) -> tuple[float, float]:
    """When it was killed, and when the new process began."""
    if isinstance(one, House):
        pid = one.pids()[part]
        at = await one.kill(part)
        return at, await one.restarted(part, pid)
    at = await one.kill()
    await asyncio.sleep(AWAY)
    began = time.time()
    await one.start()
    return at, began


def _figures(ledger: Ledger, articles: int, at: float, back: float) -> Json:
    """Calls that were on the wire are what may be bought again, and what has to come back."""
    arrivals = [call.at for call in ledger.calls]
    interrupted = referee.open_at(ledger, at)
    silence, over = referee.longest_gap(arrivals, at, min(ledger.end, at + WATCHED), begun_before=back + BLAMED)
    last = referee.last_back(ledger, interrupted, at)
    posted = ledger.posts - ledger.duplicate_posts
    figures: dict[str, Any] = {
        "articles": articles,
        "wall_s": round(ledger.end - arrivals[0], 2),
        "lost": articles - min(posted, articles),
        "duplicate_posts": ledger.duplicate_posts,
        "on_the_wire": len(interrupted),
        "bought_twice": ledger.bought_twice,
        "limited": ledger.limited,
        "away_s": round(back - at, 2),
        "service_back_s": round(max(0.0, over - back), 2),
        "longest_silence_s": round(silence, 2),
        "last_in_flight_back_s": round(last, 2) if last is not None else None,
    }
    return figures
