"""The one way to the database: a transaction per activity or request, opened at the edge."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import asyncpg
from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from citeloop.store.errors import StoreUnavailable
from citeloop.store.roles import plain
from citeloop.store.statements import Row, Sql, Statement

STATEMENT_TIMEOUT = timedelta(seconds=30)
POOL_PATIENCE = 30.0
"""Seconds for which a transaction waits for a free connection."""
_CONNECT_PATIENCE = 5.0
_CACHED_STATEMENTS = 400
"""More than there are: each connection prepares a statement once."""
_UNREACHABLE = (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError)
_LOST = (ConnectionError, asyncpg.PostgresConnectionError, asyncpg.InterfaceError)
_PASSING_CLASSES = ("08", "40", "53", "57P")
"""SQLSTATE classes: connection lost, rolled back (a deadlock), out of resources, server going down or coming up."""

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Scope:
    """One tenant's transaction: row-level security shows this tenant's rows and no others."""

    tenant_id: str
    sql: Sql


@dataclass(frozen=True)
class OperatorScope:
    """A transaction without a tenant: channels, sites, and what the SECURITY DEFINER functions show."""

    sql: Sql


class Database:
    """A pool of connections as one role. `url` is `postgresql://…`; ValueError when it cannot be read."""

    def __init__(self, url: str, *, pool_size: int = 20) -> None:
        self._url = plain(url)
        try:
            make_url(self._url)
        except ArgumentError:
            raise ValueError(
                "the database URL cannot be read: write postgresql://user:password@host:port/name"
            ) from None
        self._pool_size = pool_size
        self._opened_pool: asyncpg.Pool | None = None
        self._opening = asyncio.Lock()

    def tenant(self, tenant_id: str) -> AbstractAsyncContextManager[Scope]:
        """Commits at the end, rolls back on an exception. Raises StoreUnavailable."""
        return self._tenant(tenant_id)

    def operator(self) -> AbstractAsyncContextManager[OperatorScope]:
        return self._operator()

    async def look_up(self, statement: Statement, values: Mapping[str, object]) -> Row | None:
        """One statement by itself, in one round trip: no transaction, no tenant. Raises StoreUnavailable."""

        async def asked(connection: Any) -> Row | None:
            row: Row | None = await connection.fetchrow(statement.sql, *statement.arguments(values))
            return row

        connection, row = await self._begun(asked)
        await asyncio.shield(self._released(connection))
        return row

    async def connect(self) -> asyncpg.Connection:
        """A connection of its own, outside the pool and any transaction; the caller closes it."""
        try:
            return await asyncpg.connect(
                self._url,
                timeout=_CONNECT_PATIENCE,
                command_timeout=5,
                server_settings={"application_name": "citeloop"},
            )
        except _UNREACHABLE as error:
            raise StoreUnavailable(_words(error)) from None

    async def close(self) -> None:
        """Waits a moment for what still runs; then its connections are cut."""
        if self._opened_pool is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_CONNECT_PATIENCE):
                    await self._opened_pool.close()
            self._opened_pool = None

    @asynccontextmanager
    async def _tenant(self, tenant_id: str) -> AsyncIterator[Scope]:
        name = tenant_id.replace("'", "''")  # several statements in one round trip take no parameters
        async with self._transaction(f"BEGIN; SELECT set_config('citeloop.tenant', '{name}', true)") as sql:
            yield Scope(tenant_id, sql)

    @asynccontextmanager
    async def _operator(self) -> AsyncIterator[OperatorScope]:
        async with self._transaction("BEGIN") as sql:
            yield OperatorScope(sql)

    @asynccontextmanager
    async def _transaction(self, opening: str) -> AsyncIterator[Sql]:
        connection, _ = await self._begun(lambda driver: driver.execute(opening))
        try:
            yield Sql(connection)
            await connection.execute("COMMIT")
        except BaseException as error:
            await asyncio.shield(self._released(connection, rolled_back=True))
            if isinstance(error, asyncpg.PostgresError | asyncpg.InterfaceError | ConnectionError) and _passes(error):
                raise StoreUnavailable(_words(error)) from None
            raise
        await asyncio.shield(self._released(connection))

    async def _begun(self, begin: Callable[[Any], Awaitable[Answer]]) -> tuple[Any, Answer]:
        """A connection and the answer to what it was first told, tried once more where that finds it dead."""
        for attempt in (1, 2):
            connection = await self._taken()
            try:
                return connection, await begin(connection)
            except BaseException as error:
                await asyncio.shield(self._released(connection, rolled_back=True))
                if attempt == 1 and isinstance(error, _LOST):
                    continue
                if isinstance(error, _UNREACHABLE) and _passes(error):
                    raise StoreUnavailable(_words(error)) from None
                raise
        raise AssertionError("unreachable")

    async def _taken(self) -> Any:
        pool = await self._pool()
        try:
            async with asyncio.timeout(POOL_PATIENCE):
                return await pool.acquire()
        except _UNREACHABLE as error:
            busy = isinstance(error, TimeoutError) and pool.get_size() == pool.get_max_size()
            raise StoreUnavailable("every connection of the pool is busy" if busy else _words(error)) from None

    async def _released(self, connection: Any, *, rolled_back: bool = False) -> None:
        """Back to the pool; a connection that cannot even roll back is of no more use."""
        try:
            if rolled_back and connection.is_in_transaction():
                async with asyncio.timeout(_CONNECT_PATIENCE):
                    await connection.execute("ROLLBACK")
        except _UNREACHABLE:
            connection.terminate()
        if self._opened_pool is not None:
            await self._opened_pool.release(connection)

    async def _pool(self) -> asyncpg.Pool:
        async with self._opening:
            if self._opened_pool is None:
                self._opened_pool = await _pool_of(self._url, self._pool_size)
            return self._opened_pool


async def _pool_of(url: str, size: int) -> asyncpg.Pool:
    """Opens no connection yet."""

    async def reset(_: Any) -> None:
        """Nothing of ours outlives its transaction."""

    async def init(connection: Any) -> None:
        """JSON is given as text, since the models write it, and taken as what it stands for."""
        for kind in ("json", "jsonb"):
            await connection.set_type_codec(kind, schema="pg_catalog", encoder=str, decoder=json.loads)

    return await asyncpg.create_pool(
        url,
        min_size=0,
        max_size=size,
        init=init,
        reset=reset,
        record_class=Row,
        timeout=_CONNECT_PATIENCE,
        statement_cache_size=_CACHED_STATEMENTS,
        max_cached_statement_lifetime=0,
        server_settings={
            "application_name": "citeloop",
            "statement_timeout": str(int(STATEMENT_TIMEOUT.total_seconds() * 1000)),
            "idle_in_transaction_session_timeout": "60000",
        },
    )


def _passes(error: BaseException) -> bool:
    """Whether it is the server or the connection that failed, and not the statement."""
    if isinstance(error, asyncpg.PostgresError):
        return (error.sqlstate or "").startswith(_PASSING_CLASSES)
    return not isinstance(error, asyncpg.InterfaceError) or "clos" in str(error)


def _words(error: BaseException) -> str:
    """The kind of failure and the server's own first line; never an address with a password."""
    if isinstance(error, TimeoutError):
        return "the database did not answer in time"
    first = str(error).strip().splitlines()
    return f"the database does not answer ({first[0][:200] if first else type(error).__name__})"
