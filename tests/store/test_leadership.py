import asyncio
from datetime import timedelta

import asyncpg

from citeloop.models import ids
from citeloop.store.database import Database
from citeloop.store.repositories.sweeping import Leadership
from citeloop.store.statements import text
from starter.embedded.postgres import EmbeddedPostgres


async def test_one_leads_until_it_lets_go(database: Database) -> None:
    name = ids.new_id()
    async with Leadership(database, name) as first, Leadership(database, name) as second:
        assert await first.leads()
        assert await first.leads()
        assert not await second.leads()
        await first.release()
        assert await second.leads()
        assert not await first.leads()


async def test_leadership_moves_when_the_leaders_connection_dies(
    database: Database, postgres: EmbeddedPostgres
) -> None:
    name = ids.new_id()
    async with Leadership(database, name) as first, Leadership(database, name) as second:
        assert await first.leads()
        await kill_lock_holders(postgres)
        assert await asyncio.wait_for(second.leads(), 5)
        assert not await first.leads()


async def kill_lock_holders(postgres: EmbeddedPostgres) -> None:
    admin = await asyncpg.connect(postgres.url("superuser"))
    await admin.execute("SELECT pg_terminate_backend(pid, 2000) FROM pg_locks WHERE locktype = 'advisory'")
    await admin.close()


async def test_the_pool_heals_after_its_connections_were_cut(database: Database, postgres: EmbeddedPostgres) -> None:
    async with database.operator() as op:
        await op.sql.execute(text("SELECT 1"))
    admin = await asyncpg.connect(postgres.url("superuser"))
    await admin.execute(
        "SELECT pg_terminate_backend(pid, 2000) FROM pg_stat_activity "
        "WHERE usename = 'citeloop_app' AND application_name = 'citeloop'"
    )
    await admin.close()
    async with database.operator() as op:
        assert (await op.sql.execute(text("SELECT 1"))).scalar_one() == 1


class Counting(Database):
    connections = 0

    async def connect(self) -> asyncpg.Connection:
        self.connections += 1
        return await super().connect()


async def test_a_follower_looks_at_anothers_lock_only_every_so_often(
    database: Database, postgres: EmbeddedPostgres
) -> None:
    name, counting = ids.new_id(), Counting(postgres.url("app"))
    often = timedelta(seconds=0.3)
    async with Leadership(database, name) as first, Leadership(counting, name, look_every=often) as second:
        assert await first.leads()
        assert [await second.leads() for _ in range(5)] == [False] * 5
        assert counting.connections == 1
        await first.release()
        await asyncio.sleep(0.4)
        assert await second.leads()
        assert counting.connections == 2
