import asyncio
from pathlib import Path

import asyncpg
import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
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


OLDER = """
SELECT set_config('citeloop.tenant', '{tenant}', false);
INSERT INTO tenants (id, name, weight) VALUES ('{tenant}', '{tenant}', 1);
INSERT INTO brands (tenant_id, id, name, content) VALUES ('{tenant}', 'b1', '', '{{}}');
INSERT INTO manifests (tenant_id, id, version, brand, rivals, engines, replicates, matcher_version)
VALUES ('{tenant}', 'm1', 1, '{{}}', '[]', '{{}}', 1, '1');
INSERT INTO campaigns (tenant_id, id, name, brand_id, manifest_id, request, fingerprint, state)
VALUES ('{tenant}', 'c1', '', 'b1', 'm1', '{{}}', '', 'running');
INSERT INTO articles (tenant_id, id, campaign_id, brand_id, manifest_id, keyword, locale, kind, priority, position,
                      plan, stage)
SELECT '{tenant}', id, campaign, 'b1', 'm1', '', '', '', 3, 0, '{{}}', 'rewrite'
FROM (VALUES ('a1', 'c1'), ('a2', NULL)) AS made (id, campaign);
"""
DRAFTED = """
INSERT INTO drafts (tenant_id, id, article_id, digest, stage, round, channel, title, chars, body)
SELECT tenant_id, '{name} ' || made || ' ' || id, id, '', made, 0, '', '', 0, ''
FROM articles, unnest(ARRAY['generate', 'rewrite']) AS made WHERE tenant_id = '{tenant}'
"""


async def test_older_rewrites_and_those_of_older_workers_get_their_neighbours(empty: str) -> None:
    await upgrade_to(empty, "0006")
    owner = await asyncpg.connect(empty)
    try:
        for tenant in ("one", "two"):
            await owner.execute(OLDER.format(tenant=tenant))
            await owner.execute(DRAFTED.format(tenant=tenant, name="before"))
        await migrate.upgrade(empty)
        for tenant in ("one", "two"):
            await owner.execute(f"SELECT set_config('citeloop.tenant', '{tenant}', false)")
            await owner.execute(DRAFTED.format(tenant=tenant, name="after"))
            found = dict(await owner.fetch("SELECT id, neighbourhood FROM drafts WHERE neighbourhood <> ''"))
            assert found == {
                f"{when} rewrite {article}": neighbourhood
                for when in ("before", "after")
                for article, neighbourhood in (("a1", "c1/b1"), ("a2", "/b1"))
            }
            assert await owner.fetchval("SELECT count(*) FROM drafts") == 8  # row-level security binds the owner again
    finally:
        await owner.close()


async def upgrade_to(url: str, revision: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(migrate.__file__).parent / "migrations"))
    engine = create_async_engine(url.replace("postgresql://", "postgresql+asyncpg://"))

    def run(connection: Connection) -> None:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)

    async with engine.begin() as connection:
        await connection.run_sync(run)
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
