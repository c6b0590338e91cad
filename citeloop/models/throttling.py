"""How a channel's limit gives way to its provider and comes back: the figures, and what follows from them."""

from datetime import timedelta
from enum import StrEnum
from fractions import Fraction

from citeloop.models.record import Record


class Cause(StrEnum):
    """Why a channel may not be called, where that decides what becomes of the work that waits for it."""

    OPERATOR = "operator"
    EXHAUSTED = "exhausted"
    UNAUTHORIZED = "unauthorized"
    BREAKER = "breaker"
    LIMIT = "limit"
    """A hold, a quota, or turns taken by others: it ends by itself."""

    @property
    def moves_work(self) -> bool:
        """Whether an article goes on to its plan's next channel; a person's pause and a limit are waited for."""
        return self in {Cause.EXHAUSTED, Cause.UNAUTHORIZED, Cause.BREAKER}


class Adaptation(Record):
    """After a real 429: the rate is cut at once and comes back in steps, as long as no further one is met.

    `own` is the operator's rate, else the file's. A streak counts the 429s met by calls that were made
    after the one before; it ends with `quiet`.
    """

    cut: Fraction = Fraction(7, 10)
    floor: Fraction = Fraction(1, 10)
    """The share of `own` below which no cut goes."""
    step: Fraction = Fraction(1, 10)
    """The share of `own` by which it rises."""
    step_every: timedelta = timedelta(seconds=15)
    """After the first 429; twice as long after each further one of a streak."""
    step_slowest: timedelta = timedelta(minutes=10)
    quiet: timedelta = timedelta(minutes=10)
    hold: timedelta = timedelta(seconds=5)
    """How long a 429 without a delay holds the channel; twice as long after each further one."""
    hold_longest: timedelta = timedelta(minutes=2)

    def lowered(self, own: Fraction, now: Fraction) -> Fraction:
        return max(now * self.cut, own * self.floor)

    def raised(self, own: Fraction, now: Fraction) -> Fraction | None:
        """None: back at its own rate."""
        risen = now + own * self.step
        return risen if risen < own else None

    def step_after(self, streak: int) -> timedelta:
        return min(self.step_every * (1 << min(max(streak - 1, 0), 20)), self.step_slowest)

    def hold_for(self, streak: int) -> timedelta:
        return min(self.hold * (1 << min(max(streak - 1, 0), 20)), self.hold_longest)


class Breaker(Record):
    """Opens after `strikes` faults of overload in a row; after a while one probe may call for the whole fleet."""

    strikes: int = 5
    within: timedelta = timedelta(seconds=60)
    """From one of them to the next."""
    first: timedelta = timedelta(seconds=10)
    """How long it stays open; twice as long each time the probe fails."""
    longest: timedelta = timedelta(minutes=10)

    def open_for(self, level: int) -> timedelta:
        """level: 1 for the first time."""
        return min(self.first * (1 << min(max(level - 1, 0), 20)), self.longest)


ADAPTATION = Adaptation()
BREAKER = Breaker()
