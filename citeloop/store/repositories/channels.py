"""The fleet's channels: what the file says of them, what people set, and how they stand. No tenant owns them."""

from fractions import Fraction
from typing import Any

from citeloop.models.channel import Catalog, ChannelSpec
from citeloop.models.throttling import Cause
from citeloop.store.database import OperatorScope
from citeloop.store.errors import NotFound
from citeloop.store.repositories import rates
from citeloop.store.repositories.channel_rows import ChannelRow, rows
from citeloop.store.statements import text

__all__ = [
    "ChannelRow",
    "close_breaker",
    "pause",
    "reset",
    "resume",
    "rows",
    "set_concurrency",
    "set_rate",
    "settle",
    "slots",
    "sync",
]

_FILED = (
    "roles", "queue", "rate", "burst", "concurrency", "calls_per_dispatch", "tokens_per_minute", "calls_per_day",
    "tokens_per_day",
)  # fmt: skip
_SYNC_CHANNEL = text(f"""
INSERT INTO channels (name, {", ".join(_FILED)}, interval_us, stopped)
VALUES (:name, CAST(:roles AS varchar[]), {", ".join(f":{name}" for name in _FILED[1:])},
        CAST(:interval AS numeric), :stopped)
ON CONFLICT (name) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in _FILED)}, vanished = false,
  quota_until = NULL
WHERE ({", ".join(f"channels.{name}" for name in _FILED)}, channels.vanished)
  IS DISTINCT FROM ({", ".join(f"excluded.{name}" for name in _FILED)}, false)
RETURNING name
""")  # noqa: S608 - our own constant
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
_RATES = text(
    "SELECT rate, operator_rate, adaptive_rate, calls_per_dispatch FROM channels WHERE name = :name FOR NO KEY UPDATE"
)
# A faster rate holds from the last turn on: of a slow one, the next turn may lie a day ahead. No turn is given out
# more than a second ahead, so one that lies further off can be taken back.
_SETTLE = text("""
UPDATE channels SET operator_rate = :operator_rate, adaptive_rate = :adaptive_rate,
  interval_us = CAST(:interval AS numeric), stopped = :stopped,
  next_us = CASE WHEN CAST(:interval AS numeric) < interval_us OR interval_us IS NULL
    THEN greatest(
      least(next_us, (extract(epoch FROM clock_timestamp()) + 1) * 1000000 + coalesce(CAST(:interval AS numeric), 0)),
      extract(epoch FROM hold_until) * 1000000)
    ELSE next_us END
WHERE name = :name
""")
_PAUSE = text("""
UPDATE channels SET paused = true, pause_reason = :reason, pause_cause = :cause
WHERE name = :name AND (:cause = 'operator' OR NOT paused OR pause_cause <> 'operator')
""")
_RESUME = text("UPDATE channels SET paused = false, pause_reason = '', pause_cause = '' WHERE name = :name")
_CLOSE = text("""
WITH forgiven AS (UPDATE channel_counts SET strikes = 0 WHERE name = :name)
UPDATE channels SET breaker_until = NULL, breaker_level = 0, breaker_reason = '', probe_until = NULL
WHERE name = :name AND breaker_until IS NOT NULL
""")
_LIFT = text("""
UPDATE channels SET hold_until = NULL, hold_reason = '', quota_until = NULL, quota_reason = '', quota_cause = '',
  next_us = least(next_us, extract(epoch FROM clock_timestamp()) * 1000000)
WHERE name = :name AND (hold_until > clock_timestamp() OR quota_until > clock_timestamp())
""")
_CONCURRENCY = text("UPDATE channels SET operator_concurrency = :slots WHERE name = :name RETURNING name")
_SLOTS = text("SELECT queue, coalesce(operator_concurrency, concurrency) AS slots FROM channels WHERE NOT vanished")


async def sync(op: OperatorScope, catalog: Catalog) -> None:
    """Channels and sites as the file has them; what people set stays, what the file lost is marked vanished."""
    for channel in sorted(catalog.channels, key=lambda spec: spec.name):
        changed = (await op.sql.execute(_SYNC_CHANNEL, _columns(channel))).scalar_one_or_none()
        if changed is not None:
            await settle(op, channel.name)
    await op.sql.execute(_VANISH_CHANNELS, {"names": [channel.name for channel in catalog.channels]})
    for site in sorted(catalog.sites, key=lambda spec: spec.name):
        values = site.model_dump(mode="json", include={"name", "kind", "base_url", "concurrency"})
        await op.sql.execute(_SYNC_SITE, {**values, "queue": site.queue, "rate": rates.written(site.rate)})
    await op.sql.execute(_VANISH_SITES, {"names": [site.name for site in catalog.sites]})


async def pause(op: OperatorScope, channel: str, reason: str, cause: Cause = Cause.OPERATOR) -> None:
    """Nobody calls it until it is resumed. A person's pause is not overwritten by a provider's."""
    await op.sql.execute(_PAUSE, {"name": channel, "reason": reason, "cause": cause})


async def resume(op: OperatorScope, channel: str) -> None:
    """Ends a pause and closes the breaker; a delay that the provider asked for still holds."""
    await op.sql.execute(_RESUME, {"name": channel})
    await close_breaker(op, channel)


async def close_breaker(op: OperatorScope, channel: str) -> None:
    await op.sql.execute(_CLOSE, {"name": channel})


async def set_rate(op: OperatorScope, channel: str, rate: Fraction | None) -> None:
    """A limit in place of the file's. 0 stops the channel, None goes back to the file. NotFound."""
    await settle(op, channel, operator=(rate,))


async def set_concurrency(op: OperatorScope, channel: str, slots: int | None) -> None:
    """Calls at once of each worker, instead of the file's; None goes back to it. NotFound."""
    if (await op.sql.execute(_CONCURRENCY, {"name": channel, "slots": slots})).scalar_one_or_none() is None:
        raise NotFound(f"no channel {channel!r}")


async def reset(op: OperatorScope, channel: str) -> None:
    """As channels.toml says: without what people set, what 429s brought down, a delay or quota to wait for, and an
    open breaker. NotFound."""
    await op.sql.execute(_LIFT, {"name": channel})
    await settle(op, channel, operator=(None,), adaptive=(None,))
    await set_concurrency(op, channel, None)
    await close_breaker(op, channel)


async def slots(op: OperatorScope) -> dict[str, int]:
    """By queue: how many calls at once each worker may make."""
    return {row.queue: row.slots for row in await op.sql.execute(_SLOTS)}


async def settle(
    op: OperatorScope,
    channel: str,
    *,
    operator: tuple[Fraction | None] | None = None,
    adaptive: tuple[Fraction | None] | None = None,
) -> None:
    """Work the interval out anew, with the row locked: the operator's rate or the file's, as 429s left it. NotFound."""
    row = (await op.sql.execute(_RATES, {"name": channel})).one_or_none()
    if row is None:
        raise NotFound(f"no channel {channel!r}")
    wanted = rates.read(row.operator_rate) if operator is None else operator[0]
    own = rates.own(rates.read(row.rate), wanted)
    cut = rates.read(row.adaptive_rate) if adaptive is None else adaptive[0]
    if cut is not None and (own is None or cut >= own):
        cut = None
    values = {
        "name": channel,
        "operator_rate": rates.written(wanted),
        "adaptive_rate": rates.written(cut),
        **rates.pace(rates.least(own, cut), row.calls_per_dispatch),
    }
    await op.sql.execute(_SETTLE, values)


def _columns(channel: ChannelSpec) -> dict[str, Any]:
    return {
        "name": channel.name,
        "roles": sorted(channel.roles),
        "queue": channel.queue,
        "rate": rates.written(channel.rate),
        "burst": channel.burst,
        "concurrency": channel.concurrency,
        "calls_per_dispatch": channel.calls_per_dispatch,
        "tokens_per_minute": channel.tokens_per_minute,
        "calls_per_day": channel.calls_per_day,
        "tokens_per_day": channel.tokens_per_day,
        **rates.pace(channel.rate, channel.calls_per_dispatch),
    }
