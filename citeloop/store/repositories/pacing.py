"""The channel's turns, given out to the whole fleet at exact instants: what stands right before every call."""

import time
from datetime import UTC, datetime, timedelta

from citeloop.models.record import Record
from citeloop.models.throttling import Cause
from citeloop.store.database import Database, OperatorScope, Scope
from citeloop.store.errors import NotFound
from citeloop.store.statements import Row, text

# One slot is due every interval_us; next_us says when. An idle channel saves up burst - 1 slots and no more. Where
# nothing was reserved, the row tells why; it was read before the update and may lag behind it by one reservation.
_RESERVE = text("""
WITH taken AS (
  UPDATE channels SET next_us = greatest(
      extract(epoch FROM clock_timestamp()) * 1000000 - (burst - 1) * interval_us, next_us) + interval_us
  WHERE name = :name AND interval_us IS NOT NULL AND NOT stopped AND NOT paused AND breaker_until IS NULL
    AND (hold_until IS NULL OR hold_until <= clock_timestamp())
    AND (quota_until IS NULL OR quota_until <= clock_timestamp())
    AND next_us - extract(epoch FROM clock_timestamp()) * 1000000 <= :max_wait_us
  RETURNING name, ceil(next_us - interval_us)::bigint AS slot_us)
SELECT taken.slot_us, c.interval_us, c.burst, c.stopped, c.paused, c.pause_cause, c.pause_reason,
       c.hold_reason, c.quota_reason, c.quota_cause, c.breaker_until, c.breaker_reason,
       clock_timestamp() AS now,
       CASE WHEN c.hold_until > clock_timestamp() THEN c.hold_until END AS hold_until,
       CASE WHEN c.quota_until > clock_timestamp() THEN c.quota_until END AS quota_until,
       ceil(c.next_us - extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS wait_us
FROM channels c LEFT JOIN taken ON taken.name = c.name WHERE c.name = :name
""")
# Of all who ask a half-open channel, one gets the probe; its pacing starts anew.
_PROBE = text("""
UPDATE channels SET probe_until = clock_timestamp() + :lease,
  next_us = greatest(extract(epoch FROM clock_timestamp()) * 1000000, next_us) + coalesce(interval_us, 0)
WHERE name = :name AND breaker_until <= clock_timestamp()
  AND (probe_until IS NULL OR probe_until <= clock_timestamp())
RETURNING clock_timestamp() AS now
""")
_IS_OPEN = text("""
SELECT NOT paused AND NOT stopped AND breaker_until IS NULL
  AND (hold_until IS NULL OR hold_until <= clock_timestamp())
  AND (quota_until IS NULL OR quota_until <= clock_timestamp())
FROM channels WHERE name = :name
""")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PROBE_LEASE = timedelta(seconds=30)
"""A probe that does not get as far as its call is given to another after this long."""
PROBE_CHECK = timedelta(seconds=2)


class Slot(Record):
    """A call may be made at `fire_at`. The database's clock showed `told` with the answer."""

    fire_at: datetime
    told: datetime
    slack: timedelta = timedelta()
    """How late the call may come without running into the next one's burst."""
    probe: bool = False
    """It alone may call, to find out whether the channel has recovered."""
    asked: float = 0.0
    """When the slot was asked for and when it was answered, by time.monotonic()."""
    answered: float = 0.0

    @property
    def wait(self) -> timedelta:
        return max(timedelta(), self.fire_at - self.told)


class Closed(Record):
    """Nothing was reserved. `until` is None when nobody knows how long."""

    until: datetime | None
    reason: str
    cause: Cause = Cause.LIMIT


async def reserve(scope: Scope | OperatorScope, channel: str, *, max_wait: timedelta) -> Slot | Closed:
    """The channel's next slot for the whole fleet, in one statement; an unlimited channel is not written to.

    The channel's row stays locked until the transaction ends: reserve last, and commit. NotFound.
    """
    values = {"name": channel, "max_wait_us": max_wait // timedelta(microseconds=1)}
    asked = time.monotonic()
    row = (await scope.sql.execute(_RESERVE, values)).one_or_none()
    if row is None:
        raise NotFound(f"no channel {channel!r}")
    if row.slot_us is not None:
        return _taken(row, asked)
    barred = _barred(row)
    if barred is not None:
        return barred
    if row.breaker_until is not None:
        return await _probe(scope, channel, row)
    return _crowded(row) or _at_once(row.now, asked)


async def is_open(database: Database, channel: str) -> bool:
    """Whether a slot taken earlier may still be used: no hold, pause or stop came meanwhile."""
    row = await database.look_up(_IS_OPEN, {"name": channel})
    return row is not None and bool(row[0])


async def _probe(scope: Scope | OperatorScope, channel: str, row: Row) -> Slot | Closed:
    if row.breaker_until > row.now:
        return Closed(until=row.breaker_until, reason=row.breaker_reason, cause=Cause.BREAKER)
    asked = time.monotonic()
    got = (await scope.sql.execute(_PROBE, {"name": channel, "lease": PROBE_LEASE})).one_or_none()
    if got is not None:
        return _at_once(got.now, asked, probe=True)
    return Closed(until=row.now + PROBE_CHECK, reason=row.breaker_reason, cause=Cause.BREAKER)


def _taken(row: Row, asked: float) -> Slot:
    """A slot saved up is due at once, but counts from the latest instant at which its burst was still free."""
    slot = _EPOCH + timedelta(microseconds=row.slot_us)
    interval = timedelta(microseconds=int(row.interval_us))
    latest = slot + (row.burst - 1) * interval
    fire_at = min(max(slot, row.now), latest)
    slack = max(latest - fire_at, interval / 20)
    return Slot(fire_at=fire_at, told=row.now, slack=slack, asked=asked, answered=time.monotonic())


def _at_once(now: datetime, asked: float, *, probe: bool = False) -> Slot:
    return Slot(fire_at=now, told=now, slack=timedelta.max, probe=probe, asked=asked, answered=time.monotonic())


def _barred(row: Row) -> Closed | None:
    if row.paused:
        cause = Cause(row.pause_cause or Cause.OPERATOR) if not row.stopped else Cause.OPERATOR
        return Closed(until=None, reason=row.pause_reason or "paused", cause=cause)
    if row.stopped:
        return Closed(until=None, reason="its rate is set to 0", cause=Cause.OPERATOR)
    if row.hold_until is not None:
        return Closed(until=row.hold_until, reason=row.hold_reason)
    if row.quota_until is not None:
        return Closed(until=row.quota_until, reason=row.quota_reason, cause=Cause(row.quota_cause or Cause.LIMIT))
    return None


def _crowded(row: Row) -> Closed | None:
    if row.interval_us is None:
        return None
    return Closed(until=row.now + timedelta(microseconds=max(0, row.wait_us)), reason="its slots are taken until then")
