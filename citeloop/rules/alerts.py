"""When a change is worth waking somebody: on the edge only, under one manifest, with a healthy engine."""

from collections.abc import Sequence

from citeloop.rules.intervals import disjoint
from citeloop.rules.metrics import Figure

DROP_POINTS = 0.15
DROP_RELATIVE = 0.30
HEALTHY_VOLUME = 0.25
LOST_WINDOWS = 3


def engine_healthy(ok: int, seven_day_mean: float) -> bool:
    """ok answers of the window against their 7-day mean; an engine without history is taken as healthy."""
    return ok >= HEALTHY_VOLUME * seven_day_mean


def comparable(manifest_before: str, manifest_after: str) -> str | None:
    """The reason why two windows may not be compared, or None."""
    if manifest_before == manifest_after:
        return None
    return f"the windows were measured under different manifests ({manifest_before}, {manifest_after})"


def mention_dropped(before: Figure, after: Figure) -> bool:
    """Down ≥ 15 points and ≥ 30 % relative, with disjoint intervals."""
    if before.value is None or after.value is None or before.interval is None or after.interval is None:
        return False
    drop = before.value - after.value
    return drop >= DROP_POINTS and drop >= DROP_RELATIVE * before.value and disjoint(before.interval, after.interval)


def citation_lost(cited: Sequence[bool | None]) -> bool:
    """Cited once, then absent for exactly the last three windows: the edge. None: nothing could be counted."""
    known = [window for window in cited if window is not None]
    return len(known) > LOST_WINDOWS and known[-LOST_WINDOWS - 1] and not any(known[-LOST_WINDOWS:])


def overtaken(ours: Sequence[Figure], theirs: Sequence[Figure]) -> bool:
    """A rival's share of voice rose above ours with disjoint intervals in the last window, not before."""
    leads = [_above(their, our) for our, their in zip(ours, theirs, strict=True)]
    return bool(leads) and leads[-1] and not any(leads[-2:-1])


def _above(their: Figure, our: Figure) -> bool:
    if their.interval is None or our.interval is None:
        return False
    return their.interval[0] > our.interval[1]
