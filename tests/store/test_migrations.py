import asyncio

import asyncpg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import create_async_engine

from citeloop.models import ids
from citeloop.store import migrate
from citeloop.store.errors import StoreUnavailable
from citeloop.store.tables import METADATA
from starter.embedded.postgres import EmbeddedPostgres


@pytest.fixture
async def empty(postgres: EmbeddedPostgres) -> str:
    """An empty database beside the migrated one; its owner's URL."""
    name = f"empty_{ids.new_id().lower()}"
    passwords = {role: postgres.url(role).split(":")[2].split("@")[0] for role in ("app", "owner")}
    await migrate.ensure_roles(
        postgres.url("superuser", "postgres"),
        app_password=passwords["app"],
        owner_password=passwords["owner"],
        database=name,
    )
    return postgres.url("owner", name)


async def test_migrations_build_an_empty_database_and_change_nothing_twice(empty: str) -> None:
    before = await migrate.current_revision(empty)
    await asyncio.gather(migrate.upgrade(empty), migrate.upgrade(empty))
    await asyncio.to_thread(migrate.upgrade_now, empty)
    assert before is None
    assert await migrate.current_revision(empty) == migrate.head_revision()


async def test_models_and_migrations_agree(empty: str) -> None:
    await migrate.upgrade(empty)
    engine = create_async_engine(empty.replace("postgresql://", "postgresql+asyncpg://"))

    def differences(connection: Connection) -> list[object]:
        found: list[object] = compare_metadata(MigrationContext.configure(connection, opts=migrate.OPTIONS), METADATA)
        return found

    async with engine.connect() as connection:
        assert await connection.run_sync(differences) == []
    await engine.dispose()


async def test_roles_are_brought_in_step_when_asked_again(postgres: EmbeddedPostgres) -> None:
    admin = postgres.url("superuser", "postgres")
    app, owner = (postgres.url(role).split(":")[2].split("@")[0] for role in ("app", "owner"))
    await migrate.ensure_roles(admin, app_password="other'pass", owner_password=owner, database="citeloop")
    with pytest.raises(asyncpg.InvalidPasswordError):
        await asyncpg.connect(postgres.url("app"))
    await migrate.ensure_roles(admin, app_password=app, owner_password=owner, database="citeloop")
    await (await asyncpg.connect(postgres.url("app"))).close()


async def test_a_database_that_does_not_answer_is_said_to_be_away() -> None:
    with pytest.raises(StoreUnavailable, match="does not answer") as away:
        await migrate.upgrade("postgresql://citeloop_owner:secret@127.0.0.1:1/citeloop")
    assert "secret" not in str(away.value)
