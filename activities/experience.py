"""What earlier calls taught this process about a channel: how long they take, and how many tokens."""

import logging
from collections import deque

from opentelemetry import trace

from citeloop.models.channel import ChannelSpec

log = logging.getLogger(__name__)

REMEMBERED = 200
ENOUGH = 20
"""Calls before anything is called slow."""
ENOUGH_TO_GUESS = 5
AVERAGE_OVER = 20
MARGIN = 1.2
UNTOLD = 1000
"""Tokens of a call of which nothing is known."""


class Experience:
    def __init__(self) -> None:
        self._seconds: dict[str, deque[float]] = {}
        self._tokens: dict[str, tuple[int, float]] = {}

    def lasted(self, channel: ChannelSpec, seconds: float) -> None:
        """Log a call over the channel's p95 × its slow_factor, well ended or not, with the trace to look it up in."""
        earlier = self._seconds.setdefault(channel.name, deque(maxlen=REMEMBERED))
        if len(earlier) >= ENOUGH:
            usual = sorted(earlier)[int(0.95 * (len(earlier) - 1))]
            if seconds > usual * channel.slow_factor:
                span = trace.get_current_span()
                span.set_attribute("citeloop.slow", True)
                log.warning(
                    "slow call: channel %s took %.1f s, p95 is %.1f s, trace %s",
                    channel.name,
                    seconds,
                    usual,
                    trace.format_trace_id(span.get_span_context().trace_id),
                )
        earlier.append(seconds)

    def used(self, channel: ChannelSpec, tokens: int) -> None:
        count, mean = self._tokens.get(channel.name, (0, 0.0))
        count = min(count + 1, AVERAGE_OVER)
        self._tokens[channel.name] = (count, mean + (tokens - mean) / count)

    def estimate(self, channel: ChannelSpec, at_most: int) -> int:
        """Tokens to take before a call. at_most: prompt and longest output; 0 is untold."""
        count, mean = self._tokens.get(channel.name, (0, 0.0))
        if count >= ENOUGH_TO_GUESS:
            return min(round(mean * MARGIN), at_most or round(mean * MARGIN))
        return at_most or UNTOLD
