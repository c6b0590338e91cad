"""The fleet's channels: exact pacing, holds, pauses, counts. No tenant owns them."""

from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

from sqlalchemy import Row, text

from citeloop.models.channel import Catalog, ChannelSpec
from citeloop.models.record import Record
from citeloop.store.database import OperatorScope, Scope
from citeloop.store.errors import NotFound

# One slot is due every interval_us; next_us says when. An idle channel saves up burst - 1 slots and no more.
_RESERVE = text("""
UPDATE channels SET next_us = greatest(
    extract(epoch FROM clock_timestamp()) * 1000000 - (burst - 1) * interval_us, next_us) + interval_us
WHERE name = :name AND interval_us IS NOT NULL AND NOT stopped AND NOT paused
  AND (hold_until IS NULL OR hold_until <= clock_timestamp())
  AND next_us - extract(epoch FROM clock_timestamp()) * 1000000 <= :max_wait_us
RETURNING ceil(greatest(
    next_us - interval_us - extract(epoch FROM clock_timestamp()) * 1000000, 0))::bigint AS wait_us,
  clock_timestamp() AS now
""")
_STANDING = text("""
SELECT interval_us, stopped, paused, pause_reason, hold_reason, clock_timestamp() AS now,
       CASE WHEN hold_until > clock_timestamp() THEN hold_until END AS hold_until,
       ceil(next_us - extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS wait_us
FROM channels WHERE name = :name
""")
_IS_OPEN = text("""
SELECT NOT paused AND NOT stopped AND (hold_until IS NULL OR hold_until <= clock_timestamp())
FROM channels WHERE name = :name
""")
_SYNC_CHANNEL = text("""
INSERT INTO channels (name, roles, queue, rate, burst, concurrency, interval_us, stopped)
VALUES (:name, CAST(:roles AS varchar[]), :queue, :rate, :burst, :concurrency, CAST(:interval AS numeric), :stopped)
ON CONFLICT (name) DO UPDATE SET roles = excluded.roles, queue = excluded.queue, rate = excluded.rate,
  burst = excluded.burst, concurrency = excluded.concurrency, vanished = false
WHERE (channels.roles, channels.queue, channels.rate, channels.burst, channels.concurrency, channels.vanished)
  IS DISTINCT FROM (excluded.roles, excluded.queue, excluded.rate, excluded.burst, excluded.concurrency, false)
RETURNING name
""")
_SYNC_SITE = text("""
INSERT INTO sites (name, kind, queue, base_url, rate, concurrency)
VALUES (:name, :kind, :queue, :base_url, :rate, :concurrency)
ON CONFLICT (name) DO UPDATE SET kind = excluded.kind, queue = excluded.queue, base_url = excluded.base_url,
  rate = excluded.rate, concurrency = excluded.concurrency, vanished = false
""")
_VANISH_CHANNELS = text(
    "UPDATE channels SET vanished = true WHERE NOT vanished AND name <> ALL(CAST(:names AS varchar[]))"
)
_VANISH_SITES = text("UPDATE sites SET vanished = true WHERE NOT vanished AND name <> ALL(CAST(:names AS varchar[]))")
_RATES = text("SELECT rate, operator_rate FROM channels WHERE name = :name FOR UPDATE")
_SETTLE = text(
    "UPDATE channels SET operator_rate = :operator_rate, interval_us = CAST(:interval AS numeric), "
    "stopped = :stopped WHERE name = :name"
)
_HOLD = text("""
UPDATE channels SET hold_until = :until, hold_reason = :reason,
  next_us = greatest(next_us, extract(epoch FROM CAST(:until AS timestamptz)) * 1000000)
WHERE name = :name AND (hold_until IS NULL OR hold_until < :until)
""")
_PAUSE = text("UPDATE channels SET paused = :paused, pause_reason = :reason WHERE name = :name")
_COUNT = text("""
INSERT INTO channel_counts (name, calls, limited, faults, last_call_at)
VALUES (:name, :calls, :limited, :faults, CASE WHEN CAST(:calls AS bigint) > 0 THEN clock_timestamp() END)
ON CONFLICT (name) DO UPDATE SET calls = channel_counts.calls + excluded.calls,
  limited = channel_counts.limited + excluded.limited, faults = channel_counts.faults + excluded.faults,
  last_call_at = coalesce(excluded.last_call_at, channel_counts.last_call_at)
""")
_ROWS = text("""
SELECT c.name, c.roles, c.queue, c.rate, c.operator_rate, c.burst, c.concurrency, c.paused, c.pause_reason,
       CASE WHEN c.hold_until > clock_timestamp() THEN c.hold_until END AS hold_until, c.hold_reason, c.vanished,
       coalesce(n.calls, 0) AS calls, coalesce(n.limited, 0) AS limited, coalesce(n.faults, 0) AS faults,
       n.last_call_at
FROM channels c LEFT JOIN channel_counts n ON n.name = c.name ORDER BY c.name
""")
_NANO = 10**9


class Slot(Record):
    """A call may be made at `fire_at`, which is `wait` from now by the database's clock."""

    fire_at: datetime
    wait: timedelta


class Closed(Record):
    """Nothing was reserved. `until` is None when nobody knows how long."""

    until: datetime | None
    reason: str


class ChannelRow(Record):
    name: str
    roles: tuple[str, ...]
    queue: str
    rate: Fraction | None
    """From channels.toml, per second; None is unlimited."""
    operator_rate: Fraction | None
    """Set by a person; None: the file's."""
    burst: int
    concurrency: int
    paused: bool
    pause_reason: str
    hold_until: datetime | None
    """Only while it lies ahead."""
    hold_reason: str
    vanished: bool
    calls: int
    limited: int
    faults: int
    last_call_at: datetime | None

    @property
    def effective_rate(self) -> Fraction | None:
        """What may be called per second now; None is unlimited."""
        if self.paused or self.hold_until is not None:
            return Fraction(0)
        return _least(self.rate, self.operator_rate)

    @property
    def why(self) -> str:
        """Whose limit that is."""
        if self.paused:
            return f"paused: {self.pause_reason}"
        if self.hold_until is not None:
            return f"held until {self.hold_until:%H:%M:%S}: {self.hold_reason}"
        if self.operator_rate is not None and self.operator_rate == self.effective_rate:
            return "set by the operator"
        return "channels.toml" if self.rate is not None else "unlimited"


async def sync(op: OperatorScope, catalog: Catalog) -> None:
    """Channels and sites as the file has them; what people set stays, what the file lost is marked vanished."""
    for channel in sorted(catalog.channels, key=lambda spec: spec.name):
        changed = (await op.sql.execute(_SYNC_CHANNEL, _columns(channel))).scalar_one_or_none()
        if changed is not None:
            await _settle(op, channel.name)
    await op.sql.execute(_VANISH_CHANNELS, {"names": [channel.name for channel in catalog.channels]})
    for site in sorted(catalog.sites, key=lambda spec: spec.name):
        values = site.model_dump(mode="json", include={"name", "kind", "base_url", "concurrency"})
        await op.sql.execute(_SYNC_SITE, {**values, "queue": site.queue, "rate": _written(site.rate)})
    await op.sql.execute(_VANISH_SITES, {"names": [site.name for site in catalog.sites]})


async def reserve(scope: Scope | OperatorScope, channel: str, *, max_wait: timedelta) -> Slot | Closed:
    """The channel's next slot for the whole fleet, in one UPDATE; an unlimited channel is not written to.

    The channel's row stays locked until the transaction ends: reserve last, and commit. NotFound.
    """
    values = {"name": channel, "max_wait_us": max_wait // timedelta(microseconds=1)}
    row = (await scope.sql.execute(_RESERVE, values)).one_or_none()
    if row is not None:
        wait = timedelta(microseconds=row.wait_us)
        return Slot(fire_at=row.now + wait, wait=wait)
    standing = (await scope.sql.execute(_STANDING, {"name": channel})).one_or_none()
    if standing is None:
        raise NotFound(f"no channel {channel!r}")
    return _barred(standing) or _crowded(standing) or Slot(fire_at=standing.now, wait=timedelta())


async def is_open(op: OperatorScope, channel: str) -> bool:
    """Whether a slot taken earlier may still be used: no hold, pause or stop came meanwhile."""
    return bool((await op.sql.execute(_IS_OPEN, {"name": channel})).scalar_one_or_none())


async def hold(op: OperatorScope, channel: str, *, until: datetime, reason: str) -> None:
    """Nobody calls it before `until`, and then at its rate, without a burst. A hold is never shortened."""
    await op.sql.execute(_HOLD, {"name": channel, "until": until, "reason": reason})


async def pause(op: OperatorScope, channel: str, reason: str) -> None:
    await op.sql.execute(_PAUSE, {"name": channel, "paused": True, "reason": reason})


async def resume(op: OperatorScope, channel: str) -> None:
    await op.sql.execute(_PAUSE, {"name": channel, "paused": False, "reason": ""})


async def set_rate(op: OperatorScope, channel: str, rate: Fraction | None) -> None:
    """A limit beside the file's: the lower one holds. 0 stops the channel, None goes back to the file. NotFound."""
    await _settle(op, channel, (rate,))


async def counted(op: OperatorScope, channel: str, *, calls: int = 0, limited: int = 0, faults: int = 0) -> None:
    await op.sql.execute(_COUNT, {"name": channel, "calls": calls, "limited": limited, "faults": faults})


async def rows(op: OperatorScope) -> list[ChannelRow]:
    return [_row(row) for row in await op.sql.execute(_ROWS)]


async def _settle(op: OperatorScope, channel: str, operator: tuple[Fraction | None] | None = None) -> None:
    """Work the interval out anew, with the row locked."""
    row = (await op.sql.execute(_RATES, {"name": channel})).one_or_none()
    if row is None:
        raise NotFound(f"no channel {channel!r}")
    wanted = _read(row.operator_rate) if operator is None else operator[0]
    values = {"name": channel, "operator_rate": _written(wanted), **_pace(_least(_read(row.rate), wanted))}
    await op.sql.execute(_SETTLE, values)


def _columns(channel: ChannelSpec) -> dict[str, Any]:
    return {
        "name": channel.name,
        "roles": sorted(channel.roles),
        "queue": channel.queue,
        "rate": _written(channel.rate),
        "burst": channel.burst,
        "concurrency": channel.concurrency,
        **_pace(channel.rate),
    }


def _pace(rate: Fraction | None) -> dict[str, Any]:
    """Microseconds between slots, rounded up in the ninth decimal: never faster than the rate."""
    if not rate:
        return {"interval": None, "stopped": rate is not None}
    nanos = -(-(_NANO * 1_000_000 * rate.denominator) // rate.numerator)
    return {"interval": f"{nanos // _NANO}.{nanos % _NANO:09d}", "stopped": False}


def _barred(row: Row[Any]) -> Closed | None:
    if row.paused:
        return Closed(until=None, reason=row.pause_reason or "paused")
    if row.hold_until is not None:
        return Closed(until=row.hold_until, reason=row.hold_reason)
    if row.stopped:
        return Closed(until=None, reason="its rate is set to 0")
    return None


def _crowded(row: Row[Any]) -> Closed | None:
    if row.interval_us is None:
        return None
    return Closed(until=row.now + timedelta(microseconds=max(0, row.wait_us)), reason="its slots are taken until then")


def _row(row: Row[Any]) -> ChannelRow:
    values = row._asdict()
    rates = {name: _read(values[name]) for name in ("rate", "operator_rate")}
    return ChannelRow(**{**values, **rates, "roles": tuple(values["roles"])})


def _least(*rates: Fraction | None) -> Fraction | None:
    return min((rate for rate in rates if rate is not None), default=None)


def _written(rate: Fraction | None) -> str | None:
    return f"{rate.numerator}/{rate.denominator}" if rate is not None else None


def _read(written: str | None) -> Fraction | None:
    return Fraction(written) if written is not None else None
