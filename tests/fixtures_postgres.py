"""One real Postgres for the whole run; every test has a tenant of its own."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from citeloop.models import ids
from citeloop.store import migrate
from citeloop.store.database import Database
from citeloop.store.repositories import tenants
from citeloop.store.repositories.tenants import TenantRow
from starter.embedded.postgres import EmbeddedPostgres


@pytest_asyncio.fixture(scope="session")
async def postgres(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EmbeddedPostgres]:
    """Migrated; roles `app`, `owner` and `superuser`."""
    server = EmbeddedPostgres(tmp_path_factory.mktemp("postgres"))
    await server.start()
    await migrate.upgrade(server.url("owner"))
    yield server
    await server.stop()


@pytest_asyncio.fixture(scope="session")
async def database(postgres: EmbeddedPostgres) -> AsyncIterator[Database]:
    """As the application role: row-level security binds it."""
    opened = Database(postgres.url("app"))
    yield opened
    await opened.close()


@pytest_asyncio.fixture
async def tenant(database: Database) -> TenantRow:
    async with database.operator() as op:
        return await tenants.ensure(op, f"tenant {ids.new_id()}")
