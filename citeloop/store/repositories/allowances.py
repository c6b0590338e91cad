"""Tokens per minute and a day's quota: an exact ledger, taken from before the call and settled after it."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from citeloop.models.record import Record
from citeloop.store.database import OperatorScope
from citeloop.store.errors import NotFound
from citeloop.store.repositories.pacing import Closed
from citeloop.store.statements import Row, text

MINUTE = timedelta(seconds=60)

_ALLOWED = text("""
SELECT tokens_per_minute, calls_per_day, tokens_per_day, clock_timestamp() AS now
FROM channels WHERE name = :name FOR NO KEY UPDATE
""")
_FORGET = text("DELETE FROM channel_takings WHERE name = :name AND at <= :edge")
_TAKINGS = text("SELECT at, tokens FROM channel_takings WHERE name = :name ORDER BY at")
_DAY = text("""
INSERT INTO channel_days AS d (name, since, calls, tokens) VALUES (:name, :since, 0, 0)
ON CONFLICT (name) DO UPDATE SET since = greatest(d.since, excluded.since),
  calls = CASE WHEN d.since < excluded.since THEN 0 ELSE d.calls END,
  tokens = CASE WHEN d.since < excluded.since THEN 0 ELSE d.tokens END
RETURNING since, calls, tokens
""")
_USED_UP = text(
    "UPDATE channels SET quota_until = greatest(quota_until, :until), quota_reason = :reason, quota_cause = '' "
    "WHERE name = :name"
)
_TAKE = text("INSERT INTO channel_takings (name, at, tokens) VALUES (:name, :now, :tokens) RETURNING id")
_COUNT_DAY = text(
    "UPDATE channel_days SET calls = calls + :calls, tokens = greatest(0, tokens + :tokens) "
    "WHERE name = :name AND since = :since"
)
_SETTLE = text("UPDATE channel_takings SET tokens = :tokens WHERE name = :name AND id = :id")


class Taken(Record):
    """What one call may use. Settle it once the call has ended."""

    id: int
    tokens: int
    since: datetime
    """The quota's day it was taken from."""


async def take(
    op: OperatorScope, channel: str, *, tokens: int, day: tuple[datetime, datetime], calls: int = 1
) -> Taken | Closed:
    """Closed when the minute's tokens or the day's quota do not suffice. NotFound.

    tokens: an estimate; of one that exceeds the whole minute's allowance, the allowance is taken.
    day: when the quota was last reset, and when it will be next, by the caller's clock; a day that another's clock
    has begun is not taken back. calls: how many requests the call makes.
    """
    row = (await op.sql.execute(_ALLOWED, {"name": channel})).one_or_none()
    if row is None:
        raise NotFound(f"no channel {channel!r}")
    until = day[1]
    used = (await op.sql.execute(_DAY, {"name": channel, "since": day[0]})).one()
    reason = _used_up(row, used, tokens, calls)
    if reason:
        await op.sql.execute(_USED_UP, {"name": channel, "until": until, "reason": reason})
        return Closed(until=until, reason=reason)
    wanted = tokens if row.tokens_per_minute is None else min(tokens, row.tokens_per_minute)
    await op.sql.execute(_FORGET, {"name": channel, "edge": row.now - MINUTE})
    if row.tokens_per_minute is not None:
        taken = (await op.sql.execute(_TAKINGS, {"name": channel})).all()
        free_at = _free_at(taken, wanted, row.tokens_per_minute)
        if free_at is not None:
            return Closed(until=free_at, reason=f"its {row.tokens_per_minute} tokens a minute are taken until then")
    made = (await op.sql.execute(_TAKE, {"name": channel, "now": row.now, "tokens": wanted})).scalar_one()
    await op.sql.execute(_COUNT_DAY, {"name": channel, "since": used.since, "calls": calls, "tokens": wanted})
    return Taken(id=made, tokens=wanted, since=used.since)


async def settle(op: OperatorScope, channel: str, taken: Taken, tokens: int) -> None:
    """Put what was really used in the estimate's place; 0 for a call that the provider turned away.

    Last in its transaction: channel, counts, day and minute are locked in this order everywhere.
    """
    values = {"name": channel, "since": taken.since, "calls": 0, "tokens": tokens - taken.tokens}
    await op.sql.execute(_COUNT_DAY, values)  # locked in the order in which `take` does it
    await op.sql.execute(_SETTLE, {"name": channel, "id": taken.id, "tokens": tokens})


def _used_up(allowed: Row, used: Row, tokens: int, calls: int) -> str:
    if allowed.calls_per_day is not None and used.calls + calls > allowed.calls_per_day:
        return f"{used.calls} of {allowed.calls_per_day} calls a day are made"
    if allowed.tokens_per_day is not None and used.tokens > 0 and used.tokens + tokens > allowed.tokens_per_day:
        return f"{used.tokens} of {allowed.tokens_per_day} tokens a day are used"
    return ""


def _free_at(taken: Sequence[Row], wanted: int, allowed: int) -> datetime | None:
    """When so much has fallen out of the minute that `wanted` fits in; None: it fits now."""
    excess = sum(row.tokens for row in taken) + wanted - allowed
    for row in taken:
        if excess <= 0:
            return None
        excess -= row.tokens
        if excess <= 0:
            freed: datetime = row.at + MINUTE
            return freed
    return None
