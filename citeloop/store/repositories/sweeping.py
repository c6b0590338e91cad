"""What fell between two chairs, for all tenants, and who in the fleet may pick it up."""

import asyncio
import time
from datetime import timedelta
from types import TracebackType
from typing import Self

import asyncpg

from citeloop.store.database import Database, OperatorScope
from citeloop.store.errors import StoreUnavailable
from citeloop.store.statements import text

_UNSTARTED = text("SELECT tenant_id, article_id FROM citeloop_unstarted(:older_than, :limit)")
_CAMPAIGNS = text("SELECT tenant_id, campaign_id FROM citeloop_unstarted_campaigns(:older_than, :limit)")
_LOST = (OSError, asyncio.TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError)


async def unstarted(op: OperatorScope, older_than: timedelta, limit: int = 200) -> list[tuple[str, str]]:
    """(tenant id, article id) of lone articles without a run; campaigns admit their own."""
    rows = await op.sql.execute(_UNSTARTED, {"older_than": older_than, "limit": limit})
    return [(row.tenant_id, row.article_id) for row in rows]


async def unstarted_campaigns(op: OperatorScope, older_than: timedelta, limit: int = 50) -> list[tuple[str, str]]:
    """(tenant id, campaign id) of campaigns that are still only submitted."""
    rows = await op.sql.execute(_CAMPAIGNS, {"older_than": older_than, "limit": limit})
    return [(row.tenant_id, row.campaign_id) for row in rows]


class Leadership:
    """One leader per name in the fleet: a Postgres advisory lock on a connection of its own.

    It ends with that connection, so that another process leads as soon as this one or its network is gone.
    """

    def __init__(self, database: Database, name: str, *, look_every: timedelta = timedelta(0)) -> None:
        """look_every: how long a follower leaves another's lock alone, since each look is a connection of its own."""
        self._database = database
        self._name = name
        self._look_every = look_every.total_seconds()
        self._connection: asyncpg.Connection | None = None
        self._look_again = 0.0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.release()

    async def leads(self) -> bool:
        """Whether we lead now: still, or from now on. Raises StoreUnavailable."""
        if await self.held():
            return True
        if time.monotonic() < self._look_again:
            return False
        won = await self.acquire()
        self._look_again = 0.0 if won else time.monotonic() + self._look_every
        return won

    async def acquire(self) -> bool:
        """False while another leads. Raises StoreUnavailable."""
        if self._connection is not None:
            return True
        connection = await self._database.connect()
        try:
            won = await connection.fetchval("SELECT pg_try_advisory_lock(hashtextextended($1, 0))", self._name)
        except _LOST:
            connection.terminate()
            raise StoreUnavailable("the database cut the leader's connection") from None
        if not won:
            await connection.close(timeout=5)
            return False
        self._connection = connection
        return True

    async def held(self) -> bool:
        """Asks over the connection that holds the lock; when it is dead, so is the leadership."""
        if self._connection is None:
            return False
        try:
            await self._connection.fetchval("SELECT 1")
        except _LOST:
            self._connection.terminate()
            self._connection = None
            return False
        return True

    async def release(self) -> None:
        if self._connection is None:
            return
        connection, self._connection = self._connection, None
        try:
            await connection.close(timeout=5)
        except _LOST:
            connection.terminate()
