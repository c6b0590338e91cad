import asyncpg
import pytest

from citeloop.models import ids
from citeloop.store.database import Database
from citeloop.store.errors import NotFound, StoreUnavailable
from citeloop.store.repositories import articles, tenants
from citeloop.store.repositories.tenants import TenantRow
from citeloop.store.statements import text
from citeloop.store.tables import METADATA
from starter.embedded.postgres import EmbeddedPostgres
from tests.store.material import one_article

FLEET_WIDE = {"channels", "channel_counts", "channel_days", "channel_stretches", "channel_takings", "sites"}
COUNT = text("SELECT count(*) FROM articles")


async def test_a_tenant_sees_none_of_anothers_rows_even_by_raw_sql(database: Database, tenant: TenantRow) -> None:
    async with database.operator() as op:
        stranger = await tenants.ensure(op, f"stranger {ids.new_id()}")
    async with database.tenant(tenant.id) as scope:
        plan = await one_article(scope)
    async with database.tenant(stranger.id) as scope:
        assert await articles.find(scope, plan.article_id) is None
        assert (await scope.sql.execute(COUNT)).scalar_one() == 0
        await scope.sql.execute(text("UPDATE articles SET keyword = 'stolen', hold = 'mine'"))
        names = (await scope.sql.execute(text("SELECT name FROM tenants"))).scalars()
    async with database.tenant(tenant.id) as scope:
        kept = await articles.find(scope, plan.article_id)
    assert kept is not None
    assert (kept.keyword, kept.hold) == (plan.keyword, None)
    assert names == [stranger.name]


async def test_a_tenant_cannot_insert_for_another_nor_give_a_row_away(database: Database, tenant: TenantRow) -> None:
    async with database.operator() as op:
        stranger = await tenants.ensure(op, f"stranger {ids.new_id()}")
    insert = text("INSERT INTO brands (tenant_id, id, name, content) VALUES (:to, 'b', 'n', '{}')")
    with pytest.raises(asyncpg.PostgresError, match="row-level security"):
        async with database.tenant(tenant.id) as scope:
            await scope.sql.execute(insert, {"to": stranger.id})
    async with database.tenant(tenant.id) as scope:
        await one_article(scope)
    with pytest.raises(asyncpg.PostgresError, match="row-level security"):
        async with database.tenant(tenant.id) as scope:
            await scope.sql.execute(text("UPDATE articles SET tenant_id = :to"), {"to": stranger.id})


async def test_without_a_tenant_nothing_is_seen(database: Database, tenant: TenantRow) -> None:
    async with database.tenant(tenant.id) as scope:
        await one_article(scope)
    async with database.operator() as op:
        for table in sorted(set(METADATA.tables) - FLEET_WIDE):
            assert (await op.sql.execute(text(f"SELECT count(*) FROM {table}"))).scalar_one() == 0, table


async def test_the_tenant_does_not_leak_to_the_next_checkout(postgres: EmbeddedPostgres, tenant: TenantRow) -> None:
    database = Database(postgres.url("app"), pool_size=1)
    try:
        for fails in (False, True):
            try:
                async with database.tenant(tenant.id) as scope:
                    if not fails:
                        await one_article(scope)
                    first = (await scope.sql.execute(text("SELECT pg_backend_pid()"))).scalar_one()
                    assert (await scope.sql.execute(COUNT)).scalar_one() == 1
                    if fails:
                        await articles.plan(scope, "missing")
            except NotFound:
                assert fails
            async with database.operator() as op:
                assert (await op.sql.execute(text("SELECT pg_backend_pid()"))).scalar_one() == first
                assert (await op.sql.execute(COUNT)).scalar_one() == 0
    finally:
        await database.close()


async def test_every_tenant_table_and_partition_forces_row_level_security(database: Database) -> None:
    open_tables = text(
        "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p') AND NOT (c.relrowsecurity AND c.relforcerowsecurity)"
    )
    async with database.operator() as op:
        unprotected = set((await op.sql.execute(open_tables)).scalars())
    assert unprotected == FLEET_WIDE | {"alembic_version"}


async def test_the_application_role_has_no_way_round(database: Database) -> None:
    roles = text(
        "SELECT rolsuper OR rolbypassrls OR rolcreaterole OR rolcreatedb FROM pg_roles "
        "WHERE rolname IN ('citeloop_app', 'citeloop_owner')"
    )
    async with database.operator() as op:
        assert (await op.sql.execute(roles)).scalars() == [False, False]
        assert (await op.sql.execute(text("SELECT current_user"))).scalar_one() == "citeloop_app"
    for forbidden in (
        "DELETE FROM articles",
        "UPDATE article_events SET detail = ''",
        "UPDATE decisions SET action = 'approve'",
        "TRUNCATE channels",
        "ALTER TABLE articles DISABLE ROW LEVEL SECURITY",
        "SET ROLE citeloop_owner",
        "CREATE TABLE mine (id int)",
        "SELECT citeloop_protect('articles')",
    ):
        with pytest.raises(asyncpg.PostgresError, match=r"permission denied|must be owner"):
            async with database.operator() as op:
                await op.sql.execute(text(forbidden))


async def test_functions_that_see_across_tenants_have_a_fixed_search_path(database: Database) -> None:
    loose = text(
        "SELECT proname FROM pg_proc WHERE prosecdef AND pronamespace = 'public'::regnamespace "
        "AND NOT coalesce('search_path=public, pg_temp' = ANY(proconfig), false)"
    )
    async with database.operator() as op:
        assert (await op.sql.execute(loose)).scalars() == []


async def test_errors_never_hold_the_password(postgres: EmbeddedPostgres) -> None:
    right = postgres.url("app")
    password = right.split(":")[2].split("@")[0]
    with pytest.raises(ValueError, match="cannot be read") as unreadable:
        Database(f"://{password}@nowhere")
    database = Database(right.replace(str(postgres.port), "1"))
    with pytest.raises(StoreUnavailable) as refused:
        async with database.operator():
            raise AssertionError
    with pytest.raises(StoreUnavailable) as not_connected:
        await database.connect()
    wrong = Database(right.replace(password, f"not-{password}"))
    with pytest.raises(StoreUnavailable, match="password authentication failed") as denied:
        async with wrong.operator():
            raise AssertionError
    for raised in (unreadable, refused, not_connected, denied):
        assert password not in f"{raised.value!r} {raised.value}"
    await database.close()
    await wrong.close()
