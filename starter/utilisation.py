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

    @property
    def share(self) -> float | None:
        """None when nothing ever waited."""
        allowed = self.limit * self.seconds
        return self.calls / allowed if allowed else None


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
            Utilisation(
                channel=channel.name,
                limit=float(channel.rate or 0),
                seconds=sum(end - begin for begin, end in self.busy[channel.name]),
                calls=sum(
                    begin <= at < end for at in calls.get(channel.name, ()) for begin, end in self.busy[channel.name]
                ),
            )
            for channel in self._channels
        )
