"""Sites as an activity meets them: found in channels.toml or the registry, and visited in turn."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from temporalio import activity

from citeloop.channels.outside import ChannelGone, Outside
from citeloop.models.site import SiteState
from citeloop.models.work import Waiting
from citeloop.store.database import Database, Scope
from citeloop.store.errors import StoreUnavailable
from citeloop.store.repositories import lanes, sites

log = logging.getLogger(__name__)

PAUSED = timedelta(minutes=2)
"""How often a paused site is looked at again."""
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
        yield Waiting(until=datetime.now(UTC) + PAUSED, reason=f"site {name} is paused")
        return
    try:
        spec = outside.site(name)
    except ChannelGone:
        yield None
        return
    if spec.rate == 0:
        yield Waiting(until=datetime.now(UTC) + PAUSED, reason=f"site {name}: its rate is set to 0")
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


async def _left(database: Database, tenant_id: str, owner: str, name: str, holder: str, begun: datetime) -> None:
    held = max(datetime.now(UTC) - begun, timedelta())
    try:
        async with database.tenant(tenant_id) as scope:
            await lanes.leave(scope, owner, name, holder, held=held)
    except StoreUnavailable as error:
        log.warning("the visit to %s ends by itself: %s", name, error)
