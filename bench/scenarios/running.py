"""What the scenarios have in common: a run of one batch by one contender, and its figures from the ledger."""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bench import referee
from bench.house import House, house
from bench.jobs import GENERATE, SIX, Batch
from bench.judge import Judge, Totals
from bench.processes import Meter
from bench.referee import Json, Ledger
from bench.rivalry import Rival, rival
from bench.terms import ENGINES, Terms
from citeloop.models.plan import Stage

WINDOW = 100
CALLS_OF_SIX = 3 + 2 * len(ENGINES)
"""Generate, rewrite, picture, and every engine before and after."""


class Contender(Protocol):
    name: str
    judge: Judge

    def pids(self) -> dict[str, int]: ...

    async def submit(self, batch: Batch, stages: tuple[Stage, ...], *, window: int = WINDOW) -> None: ...


@dataclass(frozen=True)
class Run:
    """How a scenario is run: full or quick, with which rivals, where files go and who is told of the progress."""

    quick: bool
    rivals: tuple[str, ...]
    folder: Path
    say: Callable[[str], None]
    ours: bool = True
    """False: the rivals alone."""
    profile: Path | None = None
    """A file for a cProfile of our worker; the figures of such a run prove nothing."""

    @property
    def contenders(self) -> tuple[str, ...]:
        return (*(("citeloop",) if self.ours else ()), *self.rivals)

    def number(self, full: int, quick: int) -> int:
        return quick if self.quick else full


@asynccontextmanager
async def contender(name: str, terms: Terms, run: Run, stages: tuple[Stage, ...]) -> AsyncIterator[House | Rival]:
    """`citeloop`, `citeloop-2` (two worker processes), or a rival."""
    folder = run.folder / f"{name}-{time.time_ns()}"
    if name.startswith("citeloop"):
        async with house(terms, folder, workers=2 if name.endswith("-2") else 1, profile=run.profile) as own:
            yield own
    else:
        async with rival(name, terms, folder, stages) as other:
            yield other


def goal(articles: int, stages: tuple[Stage, ...], before: Totals) -> Callable[[Totals], bool]:
    """Whether everything has been bought once and, of six stages, posted."""
    calls = articles * (CALLS_OF_SIX if stages == SIX else 1)
    posts = articles if stages == SIX else 0

    def enough(totals: Totals) -> bool:
        bought = distinct(totals) - distinct(before)
        posted = int(totals["posts"]) - int(totals["duplicate_posts"]) - int(before["posts"])
        return bought >= calls and posted >= posts

    return enough


def distinct(totals: Totals) -> int:
    return int(totals["ok"]) - int(totals["bought_twice"])


async def unloaded(one: Contender, stages: tuple[Stage, ...], *, times: int = 3) -> float:
    """Seconds of one article alone on the idle system, the least of a few, from submission to the ledger's end."""
    took = []
    for number in range(times):
        before = await one.judge.totals()
        began = time.time()
        await one.submit(Batch((f"alone {number} {began:.0f}",)), stages)
        await one.judge.until(goal(1, stages, before), within=60)
        took.append(max(0.0, (await one.judge.ledger()).end - began))
    return min(took)


@dataclass(frozen=True)
class Done:
    ledger: Ledger
    began: float
    wall: float
    unloaded: float
    cpu: dict[str, float]
    memory: dict[str, list[tuple[float, float]]]


async def carried_out(
    one: Contender, work: Batch, stages: tuple[Stage, ...], run: Run, *, within: float, window: int = WINDOW
) -> Done:
    """The batch from submission to the last thing the ledger saw of it. window: articles at once, of ours."""
    alone = await unloaded(one, stages)
    before = await one.judge.totals()
    async with Meter(one.pids) as meter:
        began = time.time()
        await one.submit(work, stages, window=window)
        await one.judge.until(
            goal(len(work.keywords), stages, before), within=within, tell=teller(run, one.name, len(work.keywords))
        )
        cpu = meter.cpu()
    ledger = (await one.judge.ledger()).after(began)
    return Done(ledger, began, max(0.0, ledger.end - began), alone, cpu, meter.memory)


def teller(run: Run, name: str, articles: int) -> Callable[[Totals, float], None]:
    """A line every ten seconds."""
    told = [0.0]

    def tell(totals: Totals, seconds: float) -> None:
        if seconds - told[0] >= 10:  # noqa: PLR2004 - seconds
            told[0] = seconds
            counts = f"{totals['calls']} calls, {totals['limited']} × 429, {totals['posts']} posts"
            run.say(f"  {name}: {seconds:.0f} s, {articles} articles, {counts}")

    return tell


def figures(done: Done, terms: Terms, work: Batch, stages: tuple[Stage, ...]) -> Json:
    """The issue's figures of one run."""
    ledger, articles = done.ledger, len(work.keywords)
    calls = ledger.of(*terms.rates)
    least = referee.limit(len(calls), terms.bursts, list(terms.rates.values()), done.unloaded)
    finished = _finished(ledger, stages, articles)
    return {
        "articles": articles,
        "wall_s": round(done.wall, 2),
        "limit_s": round(least, 2),
        "unloaded_s": round(done.unloaded, 2),
        "wall_over_calls": round(done.wall / calls_s, 4) if (calls_s := least - done.unloaded) > 0 else None,
        "wall_over_limit": round(done.wall / least, 4) if least else None,
        "calls": len(ledger.calls),
        "limited": ledger.limited,
        "limited_share": round(ledger.limited / max(1, len(ledger.calls)), 5),
        "above_bucket": ledger.violations,
        "above_bucket_recounted": sum(
            referee.above_bucket([call.at for call in ledger.of(name)], rate, terms.burst(name))
            for name, rate in terms.rates.items()
        ),
        "busiest_second": {
            name: referee.busiest([call.at for call in calls if call.service == name]) for name in terms.rates
        },
        "success": round(finished / articles, 4),
        "residual": articles - finished,
        "duplicate_posts": ledger.duplicate_posts,
        "bought_twice": ledger.bought_twice,
        "cpu_ms_per_article": grouped({name: ms / articles for name, ms in done.cpu.items()}),
        "rss_mb": {name: round(max(value for _, value in seen)) for name, seen in done.memory.items() if seen},
    }


def _finished(ledger: Ledger, stages: tuple[Stage, ...], articles: int) -> int:
    """Articles that were written; of six stages those that are posted once."""
    written = len(ledger.paid_articles("generate"))
    return min(written, articles) if stages == GENERATE else min(written, ledger.posts - ledger.duplicate_posts)


def grouped(by_process: dict[str, float]) -> dict[str, float]:
    """`worker-2` and `worker` are one entry."""
    out: dict[str, float] = {}
    for name, value in by_process.items():
        head = name.partition("-")[0]
        out[head] = round(out.get(head, 0.0) + value, 1)
    return out


def seconds_of(calls: int, terms: Terms) -> float:
    """A generous bound for a run: thrice the limit and two minutes."""
    return 3 * calls / (terms.summed or 10) + 120
