"""Buying one answer: holds, the purchase kept earlier, and the channel's turn come before any call."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, TypeVar

from temporalio import activity

from activities import failures
from activities.experience import Experience
from activities.setbacks import Attempt, Setbacks
from activities.turns import Leave, Turns
from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.outside import ChannelGone, Outside
from citeloop.channels.ports import Call, Completion
from citeloop.models.channel import ChannelSpec
from citeloop.models.measure import Answer
from citeloop.models.plan import CallPolicy, Plan
from citeloop.models.work import Held, Step, Waiting
from citeloop.store.database import Database, OperatorScope, Scope
from citeloop.store.errors import StoreUnavailable
from citeloop.store.repositories import allowances, articles, channels, throttling
from citeloop.store.repositories.articles import Bought
from citeloop.store.repositories.pacing import Closed, Slot

log = logging.getLogger(__name__)

Reply = TypeVar("Reply")
Kept = TypeVar("Kept")

KEEP_PATIENCE = 60.0
NO_DELAY_GIVEN = timedelta(seconds=5)
"""How long a site is left alone that turned a post away without saying for how long."""


@dataclass(frozen=True)
class Sale(Generic[Reply]):
    """An answer in hand, paid for and not yet kept."""

    reply: Reply
    channel: str
    leave: Leave
    tokens: int
    """Used, as the provider tells; 0 where it does not."""


async def open_till(scope: Scope, step: Step, purchase_id: str, *, channel: str) -> Plan | Bought | Held:
    """A hold, that it was bought before, or the plan to buy by. Look at the channel at the transaction's end."""
    return await articles.open_(scope, step, purchase_id=purchase_id, channel=channel, attempt=activity.info().attempt)


class Till:
    """Makes the call, keeps the answer, tells the channel how it went, and says what a failure means."""

    def __init__(self, database: Database, outside: Outside) -> None:
        self._database = database
        self._outside = outside
        self._turns = Turns(database)
        self._setbacks = Setbacks(database)
        self._experience = Experience()

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
        tokens: int = 0,
    ) -> Sale[Reply] | Waiting:
        """Wait for the turn, then call once. What is sold is to be kept.

        request: also takes the channel's key from the environment, so that a missing one is like a wrong one.
        slot: the first look at the channel.
        last_resort: the plan names no further channel, so money and keys are waited for instead.
        tokens: the most that prompt and output may take; 0 is untold.
        """
        attempt = Attempt(
            tenant_id=tenant_id, article_id=article_id, channel=channel, last_resort=last_resort, call=call
        )
        began = time.monotonic()
        try:
            spec = self._outside.channel(channel)
            estimate = self._experience.estimate(spec, tokens)
            leave = await self._turns.wait(spec, slot, last_resort=last_resort, tokens=estimate)
            if isinstance(leave, Waiting):
                return leave
            attempt = attempt.model_copy(update={"leave": leave})
            began = time.monotonic()
            reply = await self._called(spec, leave, request, call)
        except ChannelGone as error:
            raise failures.gone(channel) from error
        except ChannelError as error:
            age = timedelta(seconds=time.monotonic() - began)
            return await self._setbacks.met(error, attempt.model_copy(update={"age": age}))
        return Sale(reply, channel, leave, self._tokens(spec, reply))

    async def _called(
        self, spec: ChannelSpec, leave: Leave, request: Callable[[Call], Awaitable[Reply]], call: Call
    ) -> Reply:
        began = time.monotonic()
        try:
            return await request(call)
        except ChannelError:
            raise
        except (asyncio.CancelledError, ChannelGone):
            if leave.probe:
                with contextlib.suppress(StoreUnavailable):
                    async with self._database.operator() as op:
                        await throttling.give_up_probe(op, spec.name)
            raise
        except Exception as error:
            # What nobody foresaw may have been paid for: it counts, or it would be bought again without end.
            log.exception("channel %s: a reply could not be read", spec.name)
            raise ChannelError(Fault.GARBLED, f"its reply could not be read: {type(error).__name__}") from error
        finally:
            self._experience.lasted(spec, time.monotonic() - began)

    def _tokens(self, spec: ChannelSpec, reply: object) -> int:
        used = reply.usage if isinstance(reply, Completion | Answer) else None
        tokens = used.input_tokens + used.output_tokens if used else 0
        if tokens:
            self._experience.used(spec, tokens)
        return tokens

    async def keep(
        self, tenant_id: str, write: Callable[[Scope], Awaitable[Kept]], sale: Sale[Any] | None = None
    ) -> Kept:
        """Store what was paid for, and that its channel does well. A store that restarts is waited for: the answer
        is worth more than the minute."""
        deadline = asyncio.get_running_loop().time() + KEEP_PATIENCE
        while True:
            try:
                async with self._database.tenant(tenant_id) as scope:
                    kept = await write(scope)
                    if sale is not None:
                        await _went_well(scope, sale)
                    return kept
            except StoreUnavailable:
                if asyncio.get_running_loop().time() > deadline:
                    raise
                await asyncio.sleep(0.5)


async def _went_well(scope: Scope, sale: Sale[Any]) -> None:
    """Last in its transaction: every call of the channel counts in the same rows."""
    op, leave = OperatorScope(scope.sql), sale.leave
    if leave.probe:
        await channels.close_breaker(op, sale.channel)
    await throttling.counted(op, sale.channel, calls=1, well=True)
    if leave.taken is not None and sale.tokens:
        await allowances.settle(op, sale.channel, leave.taken, sale.tokens)


def purchase_id(step: Step) -> str:
    """Under this id the stage is paid for once, in this round, on this channel."""
    return f"{step.tenant_id}/{step.article_id}/{step.stage}/{step.round}.{step.retry}/{step.route}"


def is_last_resort(plan: Plan, step: Step) -> bool:
    return plan.routes[step.stage][-1].name == step.route


def policy_of(plan: Plan, step: Step) -> CallPolicy:
    return plan.route(step.stage, step.route).policy
