"""The one way to the database: a transaction per activity or request, opened at the edge."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

import asyncpg
from sqlalchemy import TextClause, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine

from citeloop.store.errors import StoreUnavailable
from citeloop.store.roles import plain

STATEMENT_TIMEOUT = timedelta(seconds=30)
_SET_TENANT = text("SELECT set_config('citeloop.tenant', :tenant, true)")
_PING = text("SELECT 1")
_UNREACHABLE = (OSError, TimeoutError, DBAPIError, asyncpg.PostgresError, asyncpg.InterfaceError)
_PASSING_CLASSES = ("08", "53", "57P")
"""SQLSTATE classes: connection lost, out of resources, server going down or coming up."""


@dataclass(frozen=True)
class Scope:
    """One tenant's transaction: row-level security shows this tenant's rows and no others."""

    tenant_id: str
    sql: AsyncSession


@dataclass(frozen=True)
class OperatorScope:
    """A transaction without a tenant: channels, sites, and what the SECURITY DEFINER functions show."""

    sql: AsyncSession


class Database:
    """A pool of connections as one role. `url` is `postgresql://…`; ValueError when it cannot be read."""

    def __init__(self, url: str, *, pool_size: int = 10, max_overflow: int = 10) -> None:
        self._url = plain(url)
        self._engine = _engine(self._url, pool_size=pool_size, max_overflow=max_overflow)

    def tenant(self, tenant_id: str) -> AbstractAsyncContextManager[Scope]:
        """Commits at the end, rolls back on an exception. Raises StoreUnavailable."""
        return self._tenant(tenant_id)

    def operator(self) -> AbstractAsyncContextManager[OperatorScope]:
        return self._operator()

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
        async with self._transaction(_SET_TENANT, {"tenant": tenant_id}) as session:
            yield Scope(tenant_id, session)

    @asynccontextmanager
    async def _operator(self) -> AsyncIterator[OperatorScope]:
        async with self._transaction(_PING, {}) as session:
            yield OperatorScope(session)

    @asynccontextmanager
    async def _transaction(self, opening: TextClause, values: dict[str, str]) -> AsyncIterator[AsyncSession]:
        async with await self._opened(opening, values) as session:
            try:
                yield session
                await session.commit()
            except DBAPIError as error:
                if _passes(error):
                    raise StoreUnavailable(_words(error)) from None
                raise

    async def _opened(self, opening: TextClause, values: dict[str, str]) -> AsyncSession:
        """The opening statement doubles as the pool's ping: on a dead connection it is tried once more."""
        for attempt in (1, 2):
            session = AsyncSession(self._engine, expire_on_commit=False)
            try:
                await session.execute(opening, values)
            except _UNREACHABLE as error:
                await session.close()
                if attempt == 1 and isinstance(error, DBAPIError) and error.connection_invalidated:
                    continue
                raise StoreUnavailable(_words(error)) from None
            except PoolTimeout:
                await session.close()
                break
            except BaseException:
                await session.close()
                raise
            return session
        raise StoreUnavailable("every connection of the pool is busy")


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
