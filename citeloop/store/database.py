"""The one way to the database: a transaction per activity or request, opened at the edge."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import asyncpg
from sqlalchemy import Row, TextClause, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from citeloop.store.errors import StoreUnavailable
from citeloop.store.roles import plain

STATEMENT_TIMEOUT = timedelta(seconds=30)
_SET_TENANT = text("SELECT set_config('citeloop.tenant', :tenant, true)")
_PING = text("SELECT 1")
_UNREACHABLE = (OSError, TimeoutError, DBAPIError, asyncpg.PostgresError, asyncpg.InterfaceError)
_PASSING_CLASSES = ("08", "40", "53", "57P")
"""SQLSTATE classes: connection lost, rolled back (a deadlock), out of resources, server going down or coming up."""


@dataclass(frozen=True)
class Scope:
    """One tenant's transaction: row-level security shows this tenant's rows and no others."""

    tenant_id: str
    sql: AsyncConnection


@dataclass(frozen=True)
class OperatorScope:
    """A transaction without a tenant: channels, sites, and what the SECURITY DEFINER functions show."""

    sql: AsyncConnection


class Database:
    """A pool of connections as one role. `url` is `postgresql://…`; ValueError when it cannot be read."""

    def __init__(self, url: str, *, pool_size: int = 10, max_overflow: int = 10) -> None:
        self._url = plain(url)
        self._engine = _engine(self._url, pool_size=pool_size, max_overflow=max_overflow)
        self._alone = self._engine.execution_options(isolation_level="AUTOCOMMIT")

    def tenant(self, tenant_id: str) -> AbstractAsyncContextManager[Scope]:
        """Commits at the end, rolls back on an exception. Raises StoreUnavailable."""
        return self._tenant(tenant_id)

    def operator(self) -> AbstractAsyncContextManager[OperatorScope]:
        return self._operator()

    async def look_up(self, statement: TextClause, values: dict[str, str]) -> Row[Any] | None:
        """One statement by itself, in one round trip: no transaction, no tenant. Raises StoreUnavailable."""
        for attempt in (1, 2):
            try:
                async with self._alone.connect() as connection:
                    return (await connection.execute(statement, values)).one_or_none()
            except _UNREACHABLE as error:
                lost = isinstance(error, DBAPIError) and error.connection_invalidated
                if isinstance(error, DBAPIError) and not _passes(error):
                    raise
                if attempt == 1 and lost:
                    continue
                raise StoreUnavailable(_words(error)) from None
            except PoolTimeout:
                break
        raise StoreUnavailable("every connection of the pool is busy")

    async def connect(self) -> asyncpg.Connection:
        """A connection of its own, outside the pool and any transaction; the caller closes it."""
        try:
            return await asyncpg.connect(
                self._url, timeout=5, command_timeout=5, server_settings={"application_name": "citeloop"}
            )
        except _UNREACHABLE as error:
            raise StoreUnavailable(_words(error)) from None

    async def close(self) -> None:
        await self._engine.dispose()

    @asynccontextmanager
    async def _tenant(self, tenant_id: str) -> AsyncIterator[Scope]:
        async with self._transaction(_SET_TENANT, {"tenant": tenant_id}) as connection:
            yield Scope(tenant_id, connection)

    @asynccontextmanager
    async def _operator(self) -> AsyncIterator[OperatorScope]:
        async with self._transaction(_PING, {}) as connection:
            yield OperatorScope(connection)

    @asynccontextmanager
    async def _transaction(self, opening: TextClause, values: dict[str, str]) -> AsyncIterator[AsyncConnection]:
        connection = await self._opened(opening, values)
        try:
            yield connection
            await connection.commit()
        except DBAPIError as error:
            if _passes(error):
                raise StoreUnavailable(_words(error)) from None
            raise
        except (ConnectionError, asyncpg.PostgresConnectionError) as error:  # the driver's own, now and then
            raise StoreUnavailable(_words(error)) from None
        finally:
            await _closed(connection)

    async def _opened(self, opening: TextClause, values: dict[str, str]) -> AsyncConnection:
        """The opening statement doubles as the pool's ping: on a dead connection it is tried once more."""
        for attempt in (1, 2):
            connection = self._engine.connect()
            try:
                await connection.start()
                await connection.execute(opening, values)
            except _UNREACHABLE as error:
                await _closed(connection)
                if attempt == 1 and isinstance(error, DBAPIError) and error.connection_invalidated:
                    continue
                raise StoreUnavailable(_words(error)) from None
            except PoolTimeout:
                break
            except BaseException:
                await _closed(connection)
                raise
            return connection
        raise StoreUnavailable("every connection of the pool is busy")


async def _closed(connection: AsyncConnection) -> None:
    """Back to the pool, even for a task that is being cancelled; one that never opened needs no closing."""
    if connection.sync_connection is not None:
        await asyncio.shield(connection.close())


def _engine(url: str, *, pool_size: int, max_overflow: int) -> AsyncEngine:
    try:
        parsed = make_url(url).set(drivername="postgresql+asyncpg")
    except ArgumentError:
        raise ValueError("the database URL cannot be read: write postgresql://user:password@host:port/name") from None
    return create_async_engine(
        parsed,
        pool_size=pool_size,
        max_overflow=max_overflow,
        pool_timeout=30,
        hide_parameters=True,
        connect_args={
            "timeout": 5,
            "server_settings": {
                "application_name": "citeloop",
                "statement_timeout": str(int(STATEMENT_TIMEOUT.total_seconds() * 1000)),
                "idle_in_transaction_session_timeout": "60000",
            },
        },
    )


def _passes(error: DBAPIError) -> bool:
    state = getattr(error.orig, "sqlstate", None) or ""
    return error.connection_invalidated or state.startswith(_PASSING_CLASSES)


def _words(error: BaseException) -> str:
    """The kind of failure and the server's own first line; never an address with a password."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    if isinstance(cause, TimeoutError):
        return "the database did not answer in time"
    first = str(cause).strip().splitlines()
    return f"the database does not answer ({first[0][:200] if first else type(cause).__name__})"
