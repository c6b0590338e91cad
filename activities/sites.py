"""Sites as an activity meets them: found in channels.toml or the registry, and visited in turn."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from uuid import uuid4

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
LEASE = timedelta(seconds=15)
"""A visit is renewed in thirds of it, so that only a dead worker's ends by itself, and soon."""


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
    lane = Lane(database, tenant_id, tenant_id if registered is not None else "", name)
    async with database.tenant(tenant_id) as scope:
        turn = await lanes.take(scope, *lane.place, rate=spec.rate, most=spec.concurrency, lasting=LEASE)
    if not turn.granted:
        yield Waiting(until=datetime.now(UTC) + turn.wait, reason=f"site {name} is busy")
        return
    async with lane.kept(turn.wait):
        await asyncio.sleep(turn.wait.total_seconds())
        yield None


class Lane:
    """One visit's place in its site's lane. owner: the tenant, or "" for a site of channels.toml."""

    def __init__(self, database: Database, tenant_id: str, owner: str, site: str) -> None:
        self._database = database
        self._tenant_id = tenant_id
        self.place = (owner, site, uuid4().hex)

    @asynccontextmanager
    async def kept(self, wait: timedelta) -> AsyncIterator[None]:
        """Renewed until the block ends, then given back. wait: until the visit begins."""
        begun, over = datetime.now(UTC) + wait, asyncio.Event()
        renewing = asyncio.create_task(self._renew(over))
        try:
            yield
        finally:
            over.set()
            await asyncio.shield(self._leave(renewing, begun))

    async def _renew(self, over: asyncio.Event) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LEASE.total_seconds() / 3):
                    await over.wait()
            if over.is_set():
                return
            await self._tell(lambda scope: lanes.renew(scope, *self.place, lasting=LEASE))

    async def _leave(self, renewing: asyncio.Task[None], begun: datetime) -> None:
        await renewing  # or it would take the place again
        held = max(datetime.now(UTC) - begun, timedelta())
        await self._tell(lambda scope: lanes.leave(scope, *self.place, held=held))

    async def _tell(self, word: Callable[[Scope], Awaitable[None]]) -> None:
        try:
            async with self._database.tenant(self._tenant_id) as scope:
                await word(scope)
        except StoreUnavailable as error:
            log.warning("the visit to %s ends by itself: %s", self.place[1], error)


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
