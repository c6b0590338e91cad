"""What a failed call means: for its purchase a count, for the channel a hold, a cut, a pause or an open breaker."""

import logging
from datetime import UTC, datetime, timedelta

from activities import failures
from activities.turns import PAUSED_CHECK, WORKER_PATIENCE, Leave, asked_again
from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.ports import Call
from citeloop.models.record import Record
from citeloop.models.throttling import BREAKER, Cause
from citeloop.models.work import Waiting
from citeloop.store.database import Database, OperatorScope
from citeloop.store.repositories import allowances, channels, purchases, throttling

log = logging.getLogger(__name__)

STRIKES = frozenset({Fault.OVERLOADED, Fault.UNAVAILABLE, Fault.TIMED_OUT})
"""What opens the breaker, several times in a row."""

PERHAPS_BILLED = frozenset({Fault.TIMED_OUT, Fault.GARBLED, Fault.REFUSED})
"""What the provider may have counted tokens for; the estimate stands."""


class Attempt(Record):
    """A call that was made: for whom, at which channel, by what leave."""

    tenant_id: str
    article_id: str | None
    channel: str
    last_resort: bool
    """The plan names no further channel, so money and keys are waited for."""
    call: Call
    leave: Leave = Leave()
    age: timedelta = timedelta()
    """Since it was made."""


class Setbacks:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def met(self, error: ChannelError, attempt: Attempt) -> Waiting:
        """Raises the ApplicationError that Temporal acts upon; Waiting where the workflow must sleep."""
        counts = not error.fault.waits
        async with self._database.tenant(attempt.tenant_id) as scope:
            faults = await purchases.fault(
                scope,
                attempt.call.purchase_id,
                article_id=attempt.article_id,
                channel=attempt.channel,
                fault=error.fault,
                message=error.message,
                counts=counts,
            )
        async with self._database.operator() as op:
            held = await self._noted(op, error, attempt)
        if counts:
            raise failures.fault(error, spent=faults >= attempt.call.policy.max_faults) from error
        if error.fault is not Fault.RATE_LIMITED and not attempt.last_resort:
            raise failures.moved_on(error) from error
        if held is None:
            raise failures.limited(error.message, PAUSED_CHECK, kind=error.fault) from error
        if held > WORKER_PATIENCE:
            return asked_again(datetime.now(UTC) + held, error.message)
        raise failures.limited(error.message, held) from error

    async def _noted(self, op: OperatorScope, error: ChannelError, attempt: Attempt) -> timedelta | None:
        """What the channel learns of it, in one transaction; how long it is held, if it is."""
        channel, struck = attempt.channel, error.fault in STRIKES
        await throttling.lock(op, channel)
        limited = error.fault is Fault.RATE_LIMITED or (error.delay is not None and error.fault.waits)
        strikes = await throttling.counted(
            op,
            channel,
            calls=1,
            limited=int(limited),
            faults=int(not error.fault.waits),
            struck=struck,
            well=error.fault.final,
        )
        if attempt.leave.probe and (struck or error.fault is Fault.GARBLED):
            await throttling.reopen_breaker(op, channel, f"its probe failed: {error.message}")
            log.warning("channel %s: its probe failed, the breaker stays open: %s", channel, error.message)
        elif attempt.leave.probe:
            await channels.close_breaker(op, channel)
        elif struck and strikes >= BREAKER.strikes:
            await throttling.open_breaker(op, channel, f"{strikes} faults in a row, the last: {error.message}")
            log.warning("channel %s: %s faults in a row open its breaker: %s", channel, strikes, error.message)
        if attempt.leave.taken is not None and error.fault not in PERHAPS_BILLED:
            await allowances.settle(op, channel, attempt.leave.taken, 0)
        if error.fault is Fault.RATE_LIMITED:
            return await throttling.met_limit(op, channel, delay=error.delay, reason=error.message, age=attempt.age)
        if not error.fault.waits:
            return None
        if error.delay is None:
            await channels.pause(op, channel, error.message, Cause(error.fault.value))
            log.error("channel %s is paused until its operator resumes it: %s", channel, error.message)
        else:  # a quota that resets by itself
            await throttling.exhaust(op, channel, until=datetime.now(UTC) + error.delay, reason=error.message)
        return error.delay
