"""How far a rate can be trusted when the answers to one prompt are not independent of each other."""

import math
from collections.abc import Sequence

Z = 1.96
"""Standard normal quantile of a two-sided 95 % interval."""

Interval = tuple[float, float]
Count = tuple[float, float]
"""(hits, trials) of one prompt."""


def wilson(hits: float, trials: float, z: float = Z) -> Interval | None:
    """The Wilson score interval; `trials` may be an effective, fractional number. None without trials."""
    if trials <= 0:
        return None
    p = min(1.0, max(0.0, hits / trials))
    spread = 1 + z * z / trials
    centre = (p + z * z / (2 * trials)) / spread
    half = z * math.sqrt(p * (1 - p) / trials + z * z / (4 * trials * trials)) / spread
    return max(0.0, centre - half), min(1.0, centre + half)


def effective_trials(counts: Sequence[Count]) -> float:
    """How many independent answers the clustered ones are worth: min(n, p(1-p)/v), and k where v = 0."""
    counted = [(hits, trials) for hits, trials in counts if trials > 0]
    k = len(counted)
    n = sum(trials for _, trials in counted)
    if k == 0:
        return 0.0
    p = sum(hits for hits, _ in counted) / n
    if k == 1:
        return 1.0
    v = k / (k - 1) * sum((hits - p * trials) ** 2 for hits, trials in counted) / n**2
    return float(k) if v == 0 else min(n, p * (1 - p) / v)


def cluster_wilson(counts: Sequence[Count], z: float = Z) -> Interval | None:
    """Wilson over the effective number of answers; one count a prompt. None without an answer."""
    n = sum(trials for _, trials in counts)
    if n <= 0:
        return None
    p = sum(hits for hits, _ in counts) / n
    effective = effective_trials(counts)
    return wilson(p * effective, effective, z)


def disjoint(one: Interval, other: Interval) -> bool:
    return one[1] < other[0] or other[1] < one[0]
