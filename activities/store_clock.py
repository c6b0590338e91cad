"""The database's clock by this process's own: turns are told in the one and slept for in the other."""

from datetime import UTC, datetime

from citeloop.store.repositories.pacing import Slot

DRIFT = 0.001
"""Seconds by which the two may drift apart in a second."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class StoreClock:
    """A reply tells the database's time at some moment between question and answer.

    The answer may have lain about while the process stalled, and the question may have waited for a lock. So each
    reply bounds the difference of the clocks from both sides, and the quickest replies bound it best.
    """

    def __init__(self) -> None:
        self._ahead: float | None = None
        """By how much the database's clock is ahead of time.monotonic(), at least."""
        self._at = 0.0

    def due(self, slot: Slot) -> float:
        """When the slot's call is due, by time.monotonic()."""
        told = (slot.told - _EPOCH).total_seconds()
        least, most = told - slot.answered, told - slot.asked
        if self._ahead is not None:
            least = max(least, self._ahead - DRIFT * (slot.answered - self._at))
        self._ahead, self._at = min(least, most), slot.answered
        return (slot.fire_at - _EPOCH).total_seconds() - self._ahead
