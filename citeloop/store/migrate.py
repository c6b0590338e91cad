"""Brings a database to the newest schema. The roles come first: `ensure_roles`."""

import asyncio
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, make_url, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from citeloop.store.errors import StoreUnavailable
from citeloop.store.roles import ensure_roles, plain

__all__ = ["current_revision", "ensure_roles", "head_revision", "knows", "upgrade", "upgrade_now"]

_PARTITIONS = "samples_"


def _ours(name: str | None, kind: str, _parents: object) -> bool:
    """Partitions are made by a function, not by the models."""
    return not (kind == "table" and name is not None and name.startswith(_PARTITIONS))


OPTIONS: dict[str, Any] = {"include_name": _ours, "compare_type": True, "transaction_per_migration": False}
"""How migrations are run and how models are compared with the database."""


async def upgrade(owner_url: str) -> None:
    """To the newest revision, in one transaction; two at once wait for each other. Raises StoreUnavailable."""
    engine = _engine(owner_url)
    try:
        async with engine.begin() as connection:
            await connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('citeloop.migrate'))"))
            await connection.run_sync(_upgrade)
    except (OSError, DBAPIError) as error:
        if isinstance(error, DBAPIError) and not error.connection_invalidated:
            raise
        raise StoreUnavailable("the database does not answer the owner role") from None
    finally:
        await engine.dispose()


def upgrade_now(owner_url: str) -> None:
    """`upgrade` for callers without a running loop, in any thread."""
    asyncio.run(upgrade(owner_url))


async def current_revision(url: str) -> str | None:
    """None: the database is empty. Any role may ask."""
    engine = _engine(url)
    try:
        async with engine.connect() as connection:
            return await connection.run_sync(lambda sync: MigrationContext.configure(sync).get_current_revision())
    finally:
        await engine.dispose()


def head_revision() -> str:
    head = ScriptDirectory.from_config(_config()).get_current_head()
    assert head is not None
    return head


def knows(revision: str) -> bool:
    """False for one of a newer version of the product."""
    return any(script.revision == revision for script in ScriptDirectory.from_config(_config()).walk_revisions())


def _upgrade(connection: Connection) -> None:
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    return config


def _engine(url: str) -> AsyncEngine:
    parsed = make_url(plain(url)).set(drivername="postgresql+asyncpg")
    return create_async_engine(parsed, poolclass=NullPool, hide_parameters=True, connect_args={"timeout": 10})
