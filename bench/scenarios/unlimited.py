"""c. No latency, no limits, no faults: what the engine itself costs, against a workflow of six empty activities."""

import asyncio
import signal
import statistics
import subprocess
import sys
import time

from bench import bare
from bench.house import House
from bench.jobs import SIX, batch
from bench.processes import Meter
from bench.referee import Json
from bench.scenarios.running import Run, contender, grouped, teller
from bench.terms import Terms
from starter.simulated import ROOT
from workflows.client import connect

TERMS = Terms(faults=0.0, first_byte=(0.0, 0.0), concurrency=100)
WINDOW = 100
ENGINES = 1
CALLS = 3 + 2 * ENGINES


async def unlimited(run: Run) -> Json:
    """The bare workflow before and after, since the machine's speed drifts; its mean is the yardstick."""
    articles = run.number(300, 40)
    async with contender("citeloop", TERMS, run, SIX) as one:
        assert isinstance(one, House)
        run.say("unlimited: a bare workflow of six empty activities")
        first = await _bare(one, articles)
        run.say("unlimited: citeloop")
        found = await _whole(one, articles, run)
        run.say("unlimited: the bare workflow again")
        second = await _bare(one, articles)
    yardstick = statistics.fmean((first["per_second"], second["per_second"]))
    found |= {
        "bare": first,
        "bare_again": second,
        "bare_per_second": round(yardstick, 2),
        "share_of_bare": round(found["articles_per_second"] / yardstick, 3),
    }
    return {"citeloop": found}


async def _whole(one: House, articles: int, run: Run) -> Json:
    def enough(totals: Json) -> bool:
        return int(totals["ok"]) >= articles * CALLS and int(totals["posts"]) >= articles

    async with Meter(one.pids) as meter:
        began = time.time()
        await one.submit(batch(articles, "unlimited"), SIX, window=WINDOW, engines=ENGINES)
        await one.judge.until(enough, within=600, tell=teller(run, one.name, articles))
        cpu = meter.cpu()
    ledger = await one.judge.ledger()
    seconds = ledger.end - began
    return {
        "articles": articles,
        "window": WINDOW,
        "engines": ENGINES,
        "seconds": round(seconds, 2),
        "articles_per_second": round(articles / seconds, 2),
        "posts": ledger.posts,
        "calls": len(ledger.calls),
        "cpu_ms_per_article": grouped({name: ms / articles for name, ms in cpu.items()}),
    }


async def _bare(one: House, number: int) -> Json:
    """In a worker process of its own, while ours has nothing to do."""
    address = one.stack.temporal_address
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.bare", address, cwd=ROOT, stdout=subprocess.DEVNULL
    )
    try:
        client = await connect(address)
        await bare.carried_out(client, 5, WINDOW)
        async with Meter(lambda: {**one.pids(), "bare": process.pid}) as meter:
            per_second = await bare.carried_out(client, number, WINDOW)
            cpu = meter.cpu()
    finally:
        process.send_signal(signal.SIGTERM)
        await process.wait()
    return {
        "per_second": round(per_second, 2),
        "cpu_ms_per_workflow": grouped({name: ms / number for name, ms in cpu.items()}),
    }
