"""Alembic's entry: runs on the connection it is given, or opens one from `sqlalchemy.url`."""

import asyncio

from alembic import context
from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from citeloop.store.migrate import OPTIONS
from citeloop.store.tables import METADATA


def migrate(connection: Connection) -> None:
    context.configure(connection=connection, target_metadata=METADATA, **OPTIONS)
    with context.begin_transaction():
        context.run_migrations()


async def connect() -> None:
    url = context.config.get_main_option("sqlalchemy.url")
    if url is None:
        raise RuntimeError("no database is named: run `citeloop db upgrade`")
    engine = create_async_engine(url, poolclass=NullPool)
    try:
        async with engine.begin() as connection:
            await connection.run_sync(migrate)
    finally:
        await engine.dispose()


given: Connection | None = context.config.attributes.get("connection")
if given is not None:
    migrate(given)
else:
    asyncio.run(connect())
