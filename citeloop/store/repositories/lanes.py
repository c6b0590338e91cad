"""Visits to sites: how many at once and how far apart, for the whole fleet, in one statement each."""

from datetime import timedelta
from fractions import Fraction

from citeloop.models.record import Record
from citeloop.store.database import Scope
from citeloop.store.statements import text

AHEAD = timedelta(seconds=2)
"""A turn that comes so soon is waited for with the visit already taken."""
_MICRO = timedelta(microseconds=1)
_TURN = text("""
SELECT granted, wait_us FROM citeloop_site_turn(CAST(:owner AS varchar), CAST(:site AS varchar),
  CAST(:holder AS varchar), CAST(:most AS integer), CAST(:spacing AS bigint), CAST(:lasting AS bigint),
  CAST(:ahead AS bigint))
""")
_RENEW = text("""
UPDATE site_lanes SET leases = leases || jsonb_build_object(CAST(:holder AS text),
  (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + CAST(:lasting AS bigint))
WHERE tenant_id = :owner AND site = :site
""")
_LEAVE = text("""
UPDATE site_lanes SET leases = leases - CAST(:holder AS text), held_us = (3 * held_us + CAST(:held AS bigint)) / 4
WHERE tenant_id = :owner AND site = :site AND leases ? CAST(:holder AS text)
""")
_HOLD = text("""
UPDATE site_lanes SET next_us = greatest(next_us, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
  + CAST(:span AS bigint))
WHERE tenant_id = :owner AND site = :site
""")


class Turn(Record):
    """Granted: go on after `wait`. Else nothing was taken: come again after `wait`."""

    granted: bool
    wait: timedelta


async def take(
    scope: Scope, owner: str, site: str, holder: str, *, rate: Fraction | None, most: int, lasting: timedelta
) -> Turn:
    """owner: the tenant, or "" for a site of channels.toml. The visit ends by itself after `lasting`,
    unless it is renewed.

    The lane's row stays locked until the transaction ends: take the turn in a transaction of its own.
    """
    values = {
        "owner": owner,
        "site": site,
        "holder": holder,
        "most": most,
        "spacing": -(-1_000_000 * rate.denominator // rate.numerator) if rate else 0,
        "lasting": lasting // _MICRO,
        "ahead": AHEAD // _MICRO,
    }
    row = (await scope.sql.execute(_TURN, values)).one()
    return Turn(granted=row.granted, wait=timedelta(microseconds=max(0, row.wait_us)))


async def renew(scope: Scope, owner: str, site: str, holder: str, *, lasting: timedelta) -> None:
    """The visit lasts `lasting` from now on, even if it had run out."""
    await scope.sql.execute(_RENEW, {"owner": owner, "site": site, "holder": holder, "lasting": lasting // _MICRO})


async def leave(scope: Scope, owner: str, site: str, holder: str, *, held: timedelta) -> None:
    """held: how long the visit took; by it those who wait are spread out. A visit that ran out changes nothing."""
    await scope.sql.execute(_LEAVE, {"owner": owner, "site": site, "holder": holder, "held": held // _MICRO})


async def hold(scope: Scope, owner: str, site: str, *, span: timedelta) -> None:
    """No visit begins before `span` is over, whoever wants it. A hold is never shortened."""
    await scope.sql.execute(_HOLD, {"owner": owner, "site": site, "span": span // _MICRO})
