"""A service's limits: a token bucket and a cap on concurrent calls."""

import math
import time
from collections.abc import Callable
from enum import StrEnum

from sandbox.config import ServiceSettings


class Limited(StrEnum):
    RATE = "rate"
    CONCURRENCY = "concurrency"


class Gate:
    """Reads the settings at each call, so that a change takes effect at once."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._tokens = math.inf
        self._filled_at = clock()
        self.inside = 0

    def enter(self, settings: ServiceSettings) -> Limited | None:
        """None: the call is inside, and `leave` must follow. Otherwise the limit it ran into."""
        if settings.concurrency is not None and self.inside >= settings.concurrency:
            return Limited.CONCURRENCY
        if settings.rate is not None:
            self._fill(settings.rate, settings.burst)
            if self._tokens < 1:
                return Limited.RATE
            self._tokens -= 1
        self.inside += 1
        return None

    def leave(self) -> None:
        self.inside -= 1

    def refill(self) -> None:
        self._tokens = math.inf

    def retry_after(self, settings: ServiceSettings) -> int:
        """Whole seconds, as the header has them."""
        if settings.retry_after is not None:
            return math.ceil(settings.retry_after)
        if settings.rate is None:
            return 1
        return max(1, math.ceil((1 - self._tokens) / settings.rate))

    def _fill(self, rate: float, burst: int) -> None:
        now = self._clock()
        self._tokens = min(burst, self._tokens + (now - self._filled_at) * rate)
        self._filled_at = now
