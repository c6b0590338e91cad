"""Buying one answer: holds, the purchase kept earlier, and the channel's turn come before any call."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from temporalio import activity

from activities import failures
from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.ports import Call
from citeloop.models.plan import CallPolicy, Plan
from citeloop.models.record import Record
from citeloop.models.work import Held, Step, Waiting
from citeloop.store.database import Database, Scope
from citeloop.store.errors import StoreUnavailable
from citeloop.store.repositories import articles, channels, purchases
from citeloop.store.repositories.channels import Closed
from citeloop.store.repositories.purchases import Purchase

Reply = TypeVar("Reply")
Kept = TypeVar("Kept")

TURN_PATIENCE = timedelta(seconds=10)
"""How long a task may wait in the worker for its channel's next turn before it goes back to the queue."""

WORKER_PATIENCE = timedelta(seconds=120)
"""A longer delay is slept by the workflow, not by a worker's slot."""

NO_DELAY_GIVEN = timedelta(seconds=5)
PAUSED_CHECK = timedelta(seconds=30)
KEEP_PATIENCE = 60.0


class Turn(Record):
    """Leave to call: when, and with which plan."""

    plan: Plan
    wait: timedelta


async def open_till(scope: Scope, step: Step, purchase_id: str, *, channel: str) -> Turn | Purchase | Held | Waiting:
    """In one transaction: a hold, the answer bought before, or this task's turn at the channel.

    ApplicationError (benign) when the channel is closed for less than `WORKER_PATIENCE`.
    """
    held = await articles.find_hold(scope, step.article_id)
    if held is not None:
        return held
    bought = await purchases.get(scope, purchase_id)
    if bought is not None:
        return bought
    plan = await articles.plan(scope, step.article_id)
    await articles.enter(scope, step, channel=channel, attempt=activity.info().attempt)
    wait = await turn_at(scope, channel)
    if isinstance(wait, Waiting):
        return wait
    return Turn(plan=plan, wait=wait)


async def turn_at(scope: Scope, channel: str) -> timedelta | Waiting:
    """How long until this task's turn; nothing is taken from the channel when it is closed."""
    slot = await channels.reserve(scope, channel, max_wait=TURN_PATIENCE)
    if not isinstance(slot, Closed):
        return slot.wait
    delay = slot.until - datetime.now(UTC) if slot.until is not None else PAUSED_CHECK
    if slot.until is not None and delay > WORKER_PATIENCE:
        return Waiting(until=slot.until, reason=slot.reason)
    raise failures.limited(slot.reason, max(delay, timedelta(milliseconds=100)))


class Till:
    """Makes the call and says what its failure means for the purchase, the channel and the article."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def buy(
        self,
        request: Callable[[Call], Awaitable[Reply]],
        call: Call,
        *,
        tenant_id: str,
        article_id: str | None,
        channel: str,
        last_resort: bool,
        wait: timedelta,
    ) -> Reply | Waiting:
        """Wait for the turn, then call once.

        last_resort: the plan names no further channel, so money and keys are waited for instead.
        """
        await asyncio.sleep(wait.total_seconds())
        try:
            reply = await request(call)
        except ChannelError as error:
            return await self._failed(
                error, call, tenant_id=tenant_id, article_id=article_id, channel=channel, last_resort=last_resort
            )
        async with self._database.operator() as op:
            await channels.counted(op, channel, calls=1)
        return reply

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
        if error.fault is Fault.RATE_LIMITED:
            return await self._hold(error, channel)
        async with self._database.operator() as op:
            await channels.counted(op, channel, calls=1)
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
