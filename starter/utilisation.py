"""How well a channel's limit was used while work was waiting for it."""

import asyncio
import time
from collections.abc import Mapping, Sequence

from temporalio.client import Client
from temporalio.service import RPCError

from citeloop.models.channel import ChannelSpec
from citeloop.models.record import Record
from starter.backlog import backlog

EVERY = 0.5


class Utilisation(Record):
    channel: str
    limit: float
    """Calls per second."""
    seconds: float
    """How long work was waiting."""
    calls: int
    """Made in that time."""
    intervals: int
    """Between those calls: n calls in one stretch of waiting span n - 1."""
    spanned: float
    """Seconds those intervals could have filled: all, but for up to one interval at each end of a stretch, which
    even a channel at its limit leaves between the stretch's edge and its first or last call."""

    @property
    def share(self) -> float | None:
        """1.0 at the limit; None when nothing waited for long enough to tell."""
        allowed = self.limit * self.spanned
        return self.intervals / allowed if allowed else None


class Gauge:
    """Looks at the queues twice a second; `run` ends by cancellation."""

    def __init__(self, client: Client, channels: Sequence[ChannelSpec]) -> None:
        self._client = client
        self._channels = [channel for channel in channels if channel.rate]
        self.busy: dict[str, list[tuple[float, float]]] = {channel.name: [] for channel in self._channels}

    async def run(self) -> None:
        before: dict[str, float] = {}
        while True:
            for channel in self._channels:
                try:
                    waiting = (await backlog(self._client, channel.queue)).waiting
                except RPCError:
                    before.pop(channel.name, None)
                    continue
                now = time.time()
                if waiting and channel.name in before:
                    self.busy[channel.name].append((before[channel.name], now))
                if waiting:
                    before[channel.name] = now
                else:
                    before.pop(channel.name, None)
            await asyncio.sleep(EVERY)

    def read(self, calls: Mapping[str, Sequence[float]]) -> tuple[Utilisation, ...]:
        """`calls`: per channel when each call arrived at the provider, in seconds since the epoch."""
        return tuple(
            _used(channel.name, float(channel.rate or 0), self.busy[channel.name], calls.get(channel.name, ()))
            for channel in self._channels
        )


def _used(channel: str, limit: float, busy: Sequence[tuple[float, float]], calls: Sequence[float]) -> Utilisation:
    made = intervals = 0
    seconds = spanned = 0.0
    for begin, end in _stretches(busy):
        within = sorted(at for at in calls if begin <= at < end)
        edges = (within[0] - begin, end - within[-1]) if within else (end - begin,)
        made += len(within)
        intervals += max(0, len(within) - 1)
        seconds += end - begin
        spanned += max(0.0, end - begin - sum(min(edge, 1 / limit) for edge in edges))
    return Utilisation(channel=channel, limit=limit, seconds=seconds, calls=made, intervals=intervals, spanned=spanned)


def _stretches(busy: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Looks that follow each other are one stretch."""
    joined: list[tuple[float, float]] = []
    for begin, end in busy:
        if joined and joined[-1][1] == begin:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((begin, end))
    return joined
