"""What calls teach about a channel: holds and cuts after a 429, the breaker after faults in a row, and the counts."""

from datetime import datetime, timedelta

from citeloop.models.throttling import ADAPTATION, BREAKER, Adaptation, Breaker
from citeloop.store.database import OperatorScope
from citeloop.store.errors import NotFound
from citeloop.store.repositories import rates
from citeloop.store.repositories.channels import settle
from citeloop.store.statements import text

_COUNT = text("""
WITH stretch AS (
  INSERT INTO channel_stretches (name, began_at, calls)
  SELECT CAST(:name AS varchar), date_bin('10 s', clock_timestamp(), 'epoch'), CAST(:calls AS bigint)
  WHERE CAST(:calls AS bigint) > 0
  ON CONFLICT (name, began_at) DO UPDATE SET calls = channel_stretches.calls + excluded.calls)
INSERT INTO channel_counts AS n (name, calls, limited, faults, last_call_at, strikes, struck_at)
VALUES (CAST(:name AS varchar), CAST(:calls AS bigint), :limited, :faults,
        CASE WHEN CAST(:calls AS bigint) > 0 THEN clock_timestamp() END,
        CASE WHEN CAST(:struck AS boolean) THEN 1 ELSE 0 END,
        CASE WHEN CAST(:struck AS boolean) THEN clock_timestamp() END)
ON CONFLICT (name) DO UPDATE SET calls = n.calls + excluded.calls, limited = n.limited + excluded.limited,
  faults = n.faults + excluded.faults, last_call_at = coalesce(excluded.last_call_at, n.last_call_at),
  strikes = CASE WHEN :well THEN 0 WHEN NOT CAST(:struck AS boolean) THEN n.strikes
    WHEN n.struck_at > clock_timestamp() - CAST(:within AS interval) THEN n.strikes + 1 ELSE 1 END,
  struck_at = coalesce(excluded.struck_at, n.struck_at)
RETURNING strikes
""")
_HOLD = text("""
UPDATE channels SET hold_until = :until, hold_reason = :reason,
  next_us = greatest(next_us, extract(epoch FROM CAST(:until AS timestamptz)) * 1000000)
WHERE name = :name AND (hold_until IS NULL OR hold_until < :until)
""")
_EXHAUST = text("""
UPDATE channels SET quota_until = :until, quota_reason = :reason, quota_cause = 'exhausted'
WHERE name = :name AND (quota_until IS NULL OR quota_until < :until)
""")
_LIMITS = text("""
SELECT rate, operator_rate, adaptive_rate, limited_at, limited_streak, clock_timestamp() AS now
FROM channels WHERE name = :name FOR NO KEY UPDATE
""")
_LIMITED = text("UPDATE channels SET limited_at = :now, adapted_at = :now, limited_streak = :streak WHERE name = :name")
_CUT = text("""
SELECT c.name, c.rate, c.operator_rate, c.adaptive_rate, c.limited_streak, c.adapted_at, clock_timestamp() AS now
FROM channels c JOIN channel_counts n ON n.name = c.name
WHERE c.adaptive_rate IS NOT NULL AND n.last_call_at > c.adapted_at
  AND (c.hold_until IS NULL OR c.hold_until <= clock_timestamp())
ORDER BY c.name FOR NO KEY UPDATE OF c
""")
_ADAPTED = text("UPDATE channels SET adapted_at = clock_timestamp() WHERE name = :name")
_BREAKER = text("SELECT breaker_level FROM channels WHERE name = :name AND breaker_until IS NOT NULL FOR NO KEY UPDATE")
_OPEN = text("""
UPDATE channels SET breaker_until = clock_timestamp() + :span, breaker_level = :level, breaker_reason = :reason,
  probe_until = NULL
WHERE name = :name AND (breaker_until IS NULL) = :first
""")
_KEEP_PROBE = text(
    "UPDATE channels SET probe_until = clock_timestamp() + :span WHERE name = :name AND breaker_until IS NOT NULL"
)
_UNPROBE = text("UPDATE channels SET probe_until = NULL WHERE name = :name AND breaker_until IS NOT NULL")
_LOCK = text("SELECT 1 FROM channels WHERE name = :name FOR NO KEY UPDATE")
_SWEEP = text("DELETE FROM channel_stretches WHERE began_at < clock_timestamp() - interval '15 minutes'")
_REASON_LIMIT = 300


async def lock(op: OperatorScope, channel: str) -> None:
    """First in a transaction that counts and then changes the channel: others change it and then count."""
    await op.sql.execute(_LOCK, {"name": channel})


async def counted(
    op: OperatorScope,
    channel: str,
    *,
    calls: int = 0,
    limited: int = 0,
    faults: int = 0,
    struck: bool = False,
    well: bool = False,
    breaker: Breaker = BREAKER,
) -> int:
    """Add up; the strikes in a row so far. struck: it was a fault of overload; well: the provider answered."""
    values = {"name": channel, "calls": calls, "limited": limited, "faults": faults, "struck": struck, "well": well}
    return int((await op.sql.execute(_COUNT, {**values, "within": breaker.within})).scalar_one())


async def hold(op: OperatorScope, channel: str, *, until: datetime, reason: str) -> None:
    """Nobody calls it before `until`, and then at its rate, without a burst. A hold is never shortened."""
    await op.sql.execute(_HOLD, {"name": channel, "until": until, "reason": reason[:_REASON_LIMIT]})


async def exhaust(op: OperatorScope, channel: str, *, until: datetime, reason: str) -> None:
    """The provider's quota is used up and begins anew at `until`; work that has another channel moves to it."""
    await op.sql.execute(_EXHAUST, {"name": channel, "until": until, "reason": reason[:_REASON_LIMIT]})


async def met_limit(
    op: OperatorScope,
    channel: str,
    *,
    delay: timedelta | None,
    reason: str,
    age: timedelta,
    adaptation: Adaptation = ADAPTATION,
) -> timedelta:
    """A real 429: how long the channel is held for it, for the whole fleet. Its rate is cut too. NotFound.

    delay: what the server asked for. age: how long ago the call was made: of calls made at the same time, the first
    429 cuts the rate and the others only hold.
    """
    row = (await op.sql.execute(_LIMITS, {"name": channel})).one_or_none()
    if row is None:
        raise NotFound(f"no channel {channel!r}")
    streak = row.limited_streak
    if row.limited_at is None or row.now - age > row.limited_at:
        quiet = row.limited_at is None or row.now - row.limited_at > adaptation.quiet
        streak = 1 if quiet else row.limited_streak + 1
        await op.sql.execute(_LIMITED, {"name": channel, "now": row.now, "streak": streak})
        own = rates.own(rates.read(row.rate), rates.read(row.operator_rate))
        if own:
            now = rates.least(own, rates.read(row.adaptive_rate)) or own
            await settle(op, channel, adaptive=(adaptation.lowered(own, now),))
    held = adaptation.hold_for(streak) if delay is None else delay
    await hold(op, channel, until=row.now + held, reason=reason)
    return held


async def recover(op: OperatorScope, *, adaptation: Adaptation = ADAPTATION) -> None:
    """Raise by a step every rate that was cut and has met no 429 since, although calls were made."""
    for row in (await op.sql.execute(_CUT)).all():
        own = rates.own(rates.read(row.rate), rates.read(row.operator_rate))
        cut = rates.read(row.adaptive_rate)
        if own and cut and row.now - row.adapted_at < adaptation.step_after(row.limited_streak):
            continue
        await settle(op, row.name, adaptive=(adaptation.raised(own, cut) if own and cut else None,))
        await op.sql.execute(_ADAPTED, {"name": row.name})


async def open_breaker(op: OperatorScope, channel: str, reason: str, *, breaker: Breaker = BREAKER) -> None:
    """Nobody calls it for a while, then one probe does. Nothing happens to a breaker that is open already."""
    values = {"name": channel, "span": breaker.open_for(1), "level": 1, "reason": reason[:_REASON_LIMIT]}
    await op.sql.execute(_OPEN, {**values, "first": True})


async def reopen_breaker(op: OperatorScope, channel: str, reason: str, *, breaker: Breaker = BREAKER) -> None:
    """The probe has failed: open again, for longer."""
    level = (await op.sql.execute(_BREAKER, {"name": channel})).scalar_one_or_none()
    if level is None:
        return
    values = {"name": channel, "span": breaker.open_for(level + 1), "level": level + 1}
    await op.sql.execute(_OPEN, {**values, "reason": reason[:_REASON_LIMIT], "first": False})


async def keep_probe(op: OperatorScope, channel: str, *, span: timedelta) -> None:
    """The probe is about to call, which may take as long; lost with its worker, it is given to another after that."""
    await op.sql.execute(_KEEP_PROBE, {"name": channel, "span": span})


async def give_up_probe(op: OperatorScope, channel: str) -> None:
    """The probe found nothing out; another may try."""
    await op.sql.execute(_UNPROBE, {"name": channel})


async def sweep(op: OperatorScope) -> None:
    await op.sql.execute(_SWEEP)
