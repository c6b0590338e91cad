"""Waiting for a channel's turn: in the slot for moments, in Temporal's queue for longer, in the workflow for long."""

import asyncio
import time
from datetime import UTC, datetime, timedelta

from temporalio import activity

from activities import failures
from activities.store_clock import StoreClock
from citeloop.models.channel import ChannelSpec
from citeloop.models.record import Record
from citeloop.models.work import Waiting
from citeloop.store.database import Database, OperatorScope, Scope
from citeloop.store.repositories import allowances, pacing, throttling
from citeloop.store.repositories.allowances import Taken
from citeloop.store.repositories.pacing import Closed, Slot

AHEAD = timedelta(seconds=1)
"""How far ahead a turn is taken: a new rate, a hold or a pause reaches every waiting task within this time."""

TURN_PATIENCE = timedelta(seconds=10)
"""A turn that lies further off is waited for in Temporal's queue, not in a worker's slot."""

WORKER_PATIENCE = timedelta(seconds=120)
"""A longer delay is slept by the workflow, not by a worker's slot."""

AT_ONCE = timedelta(milliseconds=20)
MOMENT = 0.02
LOOK_AGAIN = 0.05
"""Seconds before its turn at which a task looks whether the channel is still open."""

LATE = 0.06
MOST_LATE = 3
"""A task that comes too late for its turn, since its process stalled, takes a new one: those that woke together
would call together. A process that is always late calls after so many: it is late by as much each time."""

LIFTED_WITHIN = timedelta(hours=1)
"""A longer limit is asked about again after this long: a person may have lifted it."""

PROBE_MARGIN = timedelta(seconds=15)
"""Beyond the longest call: what a probe may need besides it."""

STOPPED_CHECK = timedelta(seconds=2)
"""A task that meets a person's pause goes back to the queue, which hands out nothing until the pause is over."""

PAUSED_CHECK = timedelta(seconds=30)
"""A task on the last channel of its plan asks again after this long, later at each attempt: the queue of a channel
without money or key is open, so that other work can move on."""


class Leave(Record):
    """The call may be made now."""

    probe: bool = False
    """Alone, to find out whether the channel has recovered."""
    taken: Taken | None = None


def asked_again(until: datetime, reason: str) -> Waiting:
    return Waiting(until=min(until, datetime.now(UTC) + LIFTED_WITHIN), reason=reason)


async def look(scope: Scope | OperatorScope, channel: str) -> Slot | Closed:
    """The channel's next turn, taken if it lies at most `AHEAD`; reserve last, the row stays locked till commit."""
    return await pacing.reserve(scope, channel, max_wait=AHEAD)


class Turns:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._clock = StoreClock()

    async def wait(
        self, channel: ChannelSpec, slot: Slot | Closed, *, last_resort: bool, tokens: int
    ) -> Leave | Waiting:
        """Leave when it is this task's turn and the channel is open at that very moment.

        slot: the first look at the channel. last_resort: there is no other channel to move to.
        """
        late = 0
        while True:
            if isinstance(slot, Closed):
                waiting = await self._closed(slot, last_resort=last_resort)
                if waiting is not None:
                    return waiting
            elif await self._came(channel.name, slot, due := self._clock.due(slot)):
                behind = time.monotonic() - due
                if late >= MOST_LATE or behind <= max(LATE, slot.slack.total_seconds()):
                    taken = await self._take(channel, tokens)
                    if slot.probe:
                        await self._settle_probe(channel, goes=not isinstance(taken, Closed))
                    if not isinstance(taken, Closed):
                        return Leave(probe=slot.probe, taken=taken)
                    slot = taken
                    continue
                late += 1
            async with self._database.operator() as op:
                slot = await look(op, channel.name)

    async def _came(self, channel: str, slot: Slot, due: float) -> bool:
        """Sleep until it is due; False when the channel was closed meanwhile."""
        if slot.wait >= AT_ONCE:
            await asyncio.sleep(max(0.0, due - LOOK_AGAIN - time.monotonic()))
            if not await pacing.is_open(self._database, channel):
                return False
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        return True

    async def _closed(self, closed: Closed, *, last_resort: bool) -> Waiting | None:
        """None when it is time to look again."""
        if closed.cause.moves_work and not last_resort:
            raise failures.passed_on(closed.cause, closed.reason)
        if closed.until is None:
            again = PAUSED_CHECK * min(activity.info().attempt, 4) if closed.cause.moves_work else STOPPED_CHECK
            raise failures.limited(closed.reason, again)
        delay = closed.until - datetime.now(UTC)
        if delay > WORKER_PATIENCE:
            return asked_again(closed.until, closed.reason)
        if delay > TURN_PATIENCE:
            raise failures.limited(closed.reason, delay)
        await asyncio.sleep(max(MOMENT, (delay - AHEAD / 2).total_seconds()))
        return None

    async def _settle_probe(self, channel: ChannelSpec, *, goes: bool) -> None:
        async with self._database.operator() as op:
            if not goes:
                await throttling.give_up_probe(op, channel.name)
                return
            longest = max(policy.total for policy in (channel.policy, *channel.stage_policies.values()))
            await throttling.keep_probe(op, channel.name, span=longest + PROBE_MARGIN)

    async def _take(self, channel: ChannelSpec, tokens: int) -> Taken | Closed | None:
        if not channel.has_allowance:
            return None
        async with self._database.operator() as op:
            return await allowances.take(
                op,
                channel.name,
                tokens=tokens,
                day=channel.quota_resets.day(datetime.now(UTC)),
                calls=channel.calls_per_dispatch,
            )
