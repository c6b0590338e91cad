"""Buying one answer: holds, the purchase kept earlier, and the channel's turn come before any call."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from temporalio import activity

from activities import failures
from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.outside import ChannelGone, Outside
from citeloop.channels.ports import Call
from citeloop.models.plan import CallPolicy, Plan
from citeloop.models.record import Record
from citeloop.models.work import Held, Step, Waiting
from citeloop.store.database import Database, OperatorScope, Scope
from citeloop.store.errors import StoreUnavailable
from citeloop.store.repositories import articles, channels, purchases
from citeloop.store.repositories.channels import Closed, Slot
from citeloop.store.repositories.purchases import Purchase

Reply = TypeVar("Reply")
Kept = TypeVar("Kept")

AHEAD = timedelta(seconds=1)
"""How far ahead a turn is taken: a new rate, a hold or a pause reaches every waiting task within this time."""

TURN_PATIENCE = timedelta(seconds=10)
"""A turn that lies further off is waited for in Temporal's queue, not in a worker's slot."""

WORKER_PATIENCE = timedelta(seconds=120)
"""A longer delay is slept by the workflow, not by a worker's slot."""

AT_ONCE = timedelta(milliseconds=20)
MOMENT = 0.02
NO_DELAY_GIVEN = timedelta(seconds=5)
PAUSED_CHECK = timedelta(seconds=30)
KEEP_PATIENCE = 60.0


class Turn(Record):
    """Leave to call for an article: by which plan, and the first look at the channel."""

    plan: Plan
    slot: Slot | Closed


async def open_till(scope: Scope, step: Step, purchase_id: str, *, channel: str) -> Turn | Purchase | Held:
    """In one transaction: a hold, the answer bought before, or a first look for a turn at the channel."""
    held = await articles.find_hold(scope, step.article_id)
    if held is not None:
        return held
    bought = await purchases.get(scope, purchase_id)
    if bought is not None:
        return bought
    plan = await articles.plan(scope, step.article_id)
    await articles.enter(scope, step, channel=channel, attempt=activity.info().attempt)
    return Turn(plan=plan, slot=await look(scope, channel))


async def look(scope: Scope | OperatorScope, channel: str) -> Slot | Closed:
    """The channel's next turn, taken if it lies at most `AHEAD`; reserve last, the row stays locked till commit."""
    return await channels.reserve(scope, channel, max_wait=AHEAD)


class Till:
    """Makes the call and says what its failure means for the purchase, the channel and the article."""

    def __init__(self, database: Database, outside: Outside) -> None:
        self._database = database
        self._outside = outside

    async def buy(
        self,
        request: Callable[[Call], Awaitable[Reply]],
        call: Call,
        *,
        tenant_id: str,
        article_id: str | None,
        channel: str,
        last_resort: bool,
        slot: Slot | Closed,
    ) -> Reply | Waiting:
        """Wait for the turn, then call once.

        request: also takes the channel's key from the environment, so that a missing one is like a wrong one.
        slot: the first look at the channel.
        last_resort: the plan names no further channel, so money and keys are waited for instead.
        """
        try:
            self._outside.channel(channel)
            waiting = await self._turn(channel, slot)
            if waiting is not None:
                return waiting
            reply = await request(call)
        except ChannelGone as error:
            raise failures.gone(channel) from error
        except ChannelError as error:
            return await self._failed(
                error, call, tenant_id=tenant_id, article_id=article_id, channel=channel, last_resort=last_resort
            )
        # A lost count is nothing; the answer in hand is paid for.
        with contextlib.suppress(StoreUnavailable):
            async with self._database.operator() as op:
                await channels.counted(op, channel, calls=1)
        return reply

    async def _turn(self, channel: str, slot: Slot | Closed) -> Waiting | None:
        """None when it is this task's turn and the channel is open at that very moment."""
        while True:
            if isinstance(slot, Slot):
                await asyncio.sleep(slot.wait.total_seconds())
                if slot.wait < AT_ONCE or await self._open(channel):
                    return None
            elif slot.until is None:
                raise failures.limited(slot.reason, PAUSED_CHECK)
            else:
                delay = slot.until - datetime.now(UTC)
                if delay > WORKER_PATIENCE:
                    return Waiting(until=slot.until, reason=slot.reason)
                if delay > TURN_PATIENCE:
                    raise failures.limited(slot.reason, delay)
                await asyncio.sleep(max(MOMENT, (delay - AHEAD / 2).total_seconds()))
            async with self._database.operator() as op:
                slot = await look(op, channel)

    async def _open(self, channel: str) -> bool:
        async with self._database.operator() as op:
            return await channels.is_open(op, channel)

    async def _failed(
        self,
        error: ChannelError,
        call: Call,
        *,
        tenant_id: str,
        article_id: str | None,
        channel: str,
        last_resort: bool,
    ) -> Waiting:
        counts = not error.fault.waits
        async with self._database.tenant(tenant_id) as scope:
            faults = await purchases.fault(
                scope,
                call.purchase_id,
                article_id=article_id,
                channel=channel,
                fault=error.fault,
                message=error.message,
                counts=counts,
            )
        if counts:
            async with self._database.operator() as op:
                await channels.counted(op, channel, calls=1, faults=1)
            raise failures.fault(error, spent=faults >= call.policy.max_faults) from error
        if error.fault is Fault.RATE_LIMITED or (error.delay is not None and last_resort):
            return await self._hold(error, channel)
        async with self._database.operator() as op:
            await channels.counted(op, channel, calls=1)
            if error.delay is not None:  # a quota that resets by itself
                await channels.hold(op, channel, until=datetime.now(UTC) + error.delay, reason=error.message)
            else:
                await channels.pause(op, channel, error.message)
        if last_resort:
            raise failures.limited(error.message, PAUSED_CHECK, kind=error.fault) from error
        raise failures.moved_on(error) from error

    async def _hold(self, error: ChannelError, channel: str) -> Waiting:
        """The whole channel waits as long as the server asked, for every worker of the fleet."""
        delay = error.delay or NO_DELAY_GIVEN
        until = datetime.now(UTC) + delay
        async with self._database.operator() as op:
            await channels.counted(op, channel, calls=1, limited=1)
            await channels.hold(op, channel, until=until, reason=error.message)
        if delay > WORKER_PATIENCE:
            return Waiting(until=until, reason=error.message)
        raise failures.limited(error.message, delay) from error

    async def keep(self, tenant_id: str, write: Callable[[Scope], Awaitable[Kept]]) -> Kept:
        """Store what was paid for. A store that restarts is waited for: the answer is worth more than the minute."""
        deadline = asyncio.get_running_loop().time() + KEEP_PATIENCE
        while True:
            try:
                async with self._database.tenant(tenant_id) as scope:
                    return await write(scope)
            except StoreUnavailable:
                if asyncio.get_running_loop().time() > deadline:
                    raise
                await asyncio.sleep(0.5)


def purchase_id(step: Step) -> str:
    """Under this id the stage is paid for once, in this round, on this channel."""
    return f"{step.tenant_id}/{step.article_id}/{step.stage}/{step.round}.{step.retry}/{step.route}"


def is_last_resort(plan: Plan, step: Step) -> bool:
    return plan.routes[step.stage][-1].name == step.route


def policy_of(plan: Plan, step: Step) -> CallPolicy:
    return plan.route(step.stage, step.route).policy
