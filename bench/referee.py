"""The referee's arithmetic: from the sandbox's ledger to figures. Nothing here asks the system under test."""

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]
_TOLERANCE = 0.25
_RUN = 4


@dataclass(frozen=True)
class Call:
    """One line of the ledger's journal. Times are seconds since the epoch; `ended` None while it is answered."""

    service: str
    purchase_id: str
    at: float
    ended: float | None
    limited: bool
    paid: bool

    @property
    def article(self) -> str:
        """tenant/article; of a sample tenant/manifest."""
        return "/".join(self.purchase_id.split("/")[:2])

    @property
    def tenant(self) -> str:
        return self.purchase_id.partition("/")[0]

    @property
    def stage(self) -> str:
        return [*self.purchase_id.split("/"), "", ""][2]


@dataclass(frozen=True)
class Ledger:
    calls: tuple[Call, ...]
    posts: int
    duplicate_posts: int
    posted_at: tuple[float, ...]
    bought_twice: int
    violations: int
    max_concurrent: int

    def of(self, *services: str) -> tuple[Call, ...]:
        return tuple(call for call in self.calls if call.service in services)

    @property
    def limited(self) -> int:
        return sum(call.limited for call in self.calls)

    @property
    def end(self) -> float:
        """The last thing that happened outside; 0 when nothing did."""
        ends = [call.ended or call.at for call in self.calls]
        return max((*ends, *self.posted_at), default=0.0)

    def paid_articles(self, stage: str) -> set[str]:
        return {call.article for call in self.calls if call.paid and call.stage == stage}

    def after(self, moment: float) -> "Ledger":
        """Only what arrived since then; the counts of the whole are kept."""
        calls = tuple(call for call in self.calls if call.at >= moment)
        posted = tuple(at for at in self.posted_at if at >= moment)
        return Ledger(
            calls=calls,
            posts=len(posted),
            duplicate_posts=self.duplicate_posts,
            posted_at=posted,
            bought_twice=self.bought_twice,
            violations=self.violations,
            max_concurrent=self.max_concurrent,
        )


def read(written: Mapping[str, Any]) -> Ledger:
    """From `/_ledger?times=1&journal=1`."""
    providers, sites = written["providers"].values(), written["sites"].values()
    return Ledger(
        calls=tuple(Call(*line) for line in written["journal"]),
        posts=int(written["totals"]["posts"]),
        duplicate_posts=int(written["totals"]["duplicate_posts"]),
        posted_at=tuple(sorted(at for site in sites for at in site.get("posted_at", ()))),
        bought_twice=int(written["totals"]["bought_twice"]),
        violations=sum(int(entry["bucket_violations"]) for entry in providers),
        max_concurrent=max((int(entry["max_concurrent"]) for entry in providers), default=0),
    )


def limit(calls: int, burst: int, rates: Sequence[float], unloaded: float) -> float:
    """Seconds no engine can beat: all calls, repeats included, less what the buckets hold at the start.

    burst: of all buckets together. unloaded: one article's time on the idle system.
    """
    return max(0, calls - burst) / sum(rates) + unloaded


def above_bucket(times: Sequence[float], rate: float, burst: int) -> int:
    """How many arrivals a bucket of that rate and burst, full at the start, has no token for."""
    tokens, last, above = float(burst), -math.inf, 0
    for at in sorted(times):
        tokens = min(burst, tokens + (at - last) * rate) if math.isfinite(last) else float(burst)
        last = at
        if tokens < 1 - 1e-9:
            above += 1
        else:
            tokens -= 1
    return above


def busiest(times: Sequence[float], seconds: float = 1.0) -> int:
    """The most arrivals in any window of that length."""
    ordered, first, most = sorted(times), 0, 0
    for last, at in enumerate(ordered):
        while at - ordered[first] >= seconds:
            first += 1
        most = max(most, last - first + 1)
    return most


def rate_between(times: Sequence[float], begin: float, end: float) -> float:
    return sum(begin <= at < end for at in times) / (end - begin)


def settled_after(times: Sequence[float], changed: float, rate: float, until: float) -> float | None:
    """Seconds from the change until calls arrive at the new rate; None when they never do.

    At a rate of 0: until the last call before `until`. Otherwise until the first of four gaps in a row whose mean
    is within a quarter of the rate's, and from there to `until` the mean rate is.
    """
    later = sorted(at for at in times if changed <= at < until)
    if rate == 0:
        return later[-1] - changed if later else 0.0
    for place in range(len(later) - _RUN):
        gap = (later[place + _RUN] - later[place]) / _RUN
        held = (len(later) - place - 1) / (until - later[place])
        if abs(gap * rate - 1) <= _TOLERANCE and abs(held / rate - 1) <= _TOLERANCE:
            return later[place] - changed
    return None


def longest_gap(
    times: Sequence[float], begin: float, end: float, *, begun_before: float = math.inf
) -> tuple[float, float]:
    """The longest silence between begin and end that began before a moment: its length, and when it was over."""
    inside = [begin, *sorted(at for at in times if begin < at < end), end]
    gaps = itertools.pairwise(inside)
    return max((later - earlier, later) for earlier, later in gaps if earlier < begun_before)


def open_at(ledger: Ledger, moment: float) -> set[str]:
    """Purchases whose call was on the wire at that moment."""
    return {call.purchase_id for call in ledger.calls if call.at <= moment < (call.ended or math.inf)}


def last_back(ledger: Ledger, interrupted: set[str], since: float) -> float | None:
    """Seconds from `since` until each of the interrupted purchases has been asked for again or was paid all the same.

    None while one of them has not.
    """
    latest = since
    for purchase in interrupted:
        own = [call for call in ledger.calls if call.purchase_id == purchase]
        again = [call.at for call in own if call.at > since]
        if again:
            latest = max(latest, min(again))
        elif not any(call.paid for call in own):
            return None
    return latest - since


def growth(samples: Sequence[tuple[float, float]]) -> float:
    """By how much the last tenth of the run is above the tenth after its middle, as a share."""
    if not samples:
        return 0.0
    began, ended = samples[0][0], samples[-1][0]
    span = ended - began
    middle = [value for at, value in samples if began + 0.5 * span <= at <= began + 0.6 * span]
    last = [value for at, value in samples if at >= began + 0.9 * span]
    if not middle or not last:
        return 0.0
    return statistics.fmean(last) / statistics.fmean(middle) - 1


NEVER = frozenset({"lost", "duplicate_posts", "above_bucket", "residual", "failed"})
"""Counts of which one run with any is one too many."""


def medians(runs: Sequence[Json]) -> Json:
    """Figure by figure, of what must not happen even once the worst; what is not a number is taken from the first run
    that has it, a False from any."""
    out: Json = {}
    for name in dict.fromkeys(name for run in runs for name in run):
        values = [run[name] for run in runs if name in run and run[name] is not None]
        out[name] = max(values) if name in NEVER and values else _median(values)
    return out


def _median(values: Sequence[Any]) -> Any:
    if not values:
        return None
    if all(isinstance(value, bool) for value in values):
        return all(values)
    if all(isinstance(value, int | float) for value in values):
        middle = statistics.median(values)
        return round(middle, 4) if isinstance(middle, float) else middle
    if all(isinstance(value, dict) for value in values):
        return medians(values)
    return values[0]
