"""Sites as an activity meets them: found in channels.toml or the registry, and visited in turn."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from temporalio import activity

from activities.till import NO_DELAY_GIVEN
from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.outside import ChannelGone, Outside
from citeloop.models.site import RegisteredSite, SiteState
from citeloop.models.work import Waiting
from citeloop.store.database import Database, Scope
from citeloop.store.errors import StoreUnavailable
from citeloop.store.repositories import lanes, sites

log = logging.getLogger(__name__)

PAUSED = timedelta(minutes=2)
PAUSED_LONGEST = timedelta(hours=1)
"""How soon a paused site is looked at again, and how late at most: each look adds to the article's history."""
_LONGEST_CALL = timedelta(minutes=10)
_MARGIN = timedelta(seconds=20)
"""A visit ends by itself this long after its activity must have ended: only a dead worker's ever does."""


async def world_at(scope: Scope, outside: Outside, name: str) -> Outside:
    """`outside`, in which `name` means the tenant's registered site if it has one."""
    found = await sites.sealed(scope, [name])
    return outside.knowing(scope.tenant_id, *found[0]) if found else outside


@asynccontextmanager
async def visit(database: Database, tenant_id: str, outside: Outside, name: str) -> AsyncIterator[Waiting | None]:
    """None: the site is ours to call, as one of its `concurrency` and at its `rate`, until the block ends.

    Waiting: it is busy or paused; call nothing. outside: as `world_at` gave it. A site nobody knows is let through:
    what follows says so better. Raises StoreUnavailable.
    """
    registered = outside.registered(name)
    if registered is not None and registered.state is SiteState.PAUSED:
        yield _paused(registered, f"site {name} is paused")
        return
    try:
        spec = outside.site(name)
    except ChannelGone:
        yield None
        return
    if spec.rate == 0:
        yield _paused(registered, f"site {name}: its rate is set to 0")
        return
    owner, holder = (tenant_id if registered is not None else ""), uuid4().hex
    lasting = (activity.info().start_to_close_timeout or _LONGEST_CALL) + _MARGIN
    async with database.tenant(tenant_id) as scope:
        turn = await lanes.take(scope, owner, name, holder, rate=spec.rate, most=spec.concurrency, lasting=lasting)
    if not turn.granted:
        yield Waiting(until=datetime.now(UTC) + turn.wait, reason=f"site {name} is busy")
        return
    begun = datetime.now(UTC) + turn.wait
    try:
        await asyncio.sleep(turn.wait.total_seconds())
        yield None
    finally:
        await asyncio.shield(_left(database, tenant_id, owner, name, holder, begun))


async def left_alone(database: Database, tenant_id: str, outside: Outside, name: str, error: ChannelError) -> None:
    """A site that asked for a pause gets it from every article, not only from the one that was told."""
    if error.fault is Fault.RATE_LIMITED:
        owner = tenant_id if outside.registered(name) is not None else ""
        async with database.tenant(tenant_id) as scope:
            await lanes.hold(scope, owner, name, span=error.delay or NO_DELAY_GIVEN)


def _paused(site: RegisteredSite | None, reason: str) -> Waiting:
    """Looked at again after half the time for which it has been paused; one of channels.toml, every half hour."""
    now = datetime.now(UTC)
    since = now - site.updated_at if site is not None else PAUSED_LONGEST
    return Waiting(until=now + min(max(PAUSED, since / 2), PAUSED_LONGEST), reason=reason)


async def _left(database: Database, tenant_id: str, owner: str, name: str, holder: str, begun: datetime) -> None:
    held = max(datetime.now(UTC) - begun, timedelta())
    try:
        async with database.tenant(tenant_id) as scope:
            await lanes.leave(scope, owner, name, holder, held=held)
    except StoreUnavailable as error:
        log.warning("the visit to %s ends by itself: %s", name, error)
