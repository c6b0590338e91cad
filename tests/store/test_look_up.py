"""One statement by itself: in one round trip, over a dead connection too."""

import asyncio

import asyncpg
import pytest

from citeloop.store.database import Database
from citeloop.store.errors import StoreUnavailable
from citeloop.store.statements import text
from starter.embedded import ports
from starter.embedded.postgres import EmbeddedPostgres

WHO = text("SELECT pg_backend_pid() AS pid, current_setting('citeloop.tenant', true) AS tenant, CAST(:word AS varchar)")


async def test_a_look_up_outlives_its_connection_and_leaves_no_transaction_open(postgres: EmbeddedPostgres) -> None:
    database = Database(postgres.url("app"), pool_size=1)
    admin = await asyncpg.connect(postgres.url("superuser"))
    try:
        first = await database.look_up(WHO, {"word": "x"})
        assert first is not None
        state = await admin.fetchval("SELECT state FROM pg_stat_activity WHERE pid = $1", first.pid)
        await admin.fetchval("SELECT pg_terminate_backend($1, 5000)", first.pid)
        second = await database.look_up(WHO, {"word": "x"})
        assert second is not None
        assert (state, second.pid != first.pid) == ("idle", True)
    finally:
        await admin.close()
        await database.close()


async def test_a_look_up_and_a_transaction_share_the_pool_without_mixing(
    postgres: EmbeddedPostgres, database: Database
) -> None:
    alone = Database(postgres.url("app"), pool_size=1)
    try:
        for _ in range(2):
            async with alone.tenant("someone") as scope:
                assert (await scope.sql.execute(WHO, {"word": "x"})).one().tenant == "someone"
            row = await alone.look_up(WHO, {"word": "x"})
            assert row is not None
            assert not row.tenant
    finally:
        await alone.close()


async def test_a_look_up_in_a_store_that_is_away_says_so() -> None:
    (port,) = ports.free(1)
    away = Database(f"postgresql://citeloop_app:secret@127.0.0.1:{port}/citeloop")
    with pytest.raises(StoreUnavailable) as told:
        await away.look_up(WHO, {"word": "x"})
    assert "secret" not in str(told.value)
    await away.close()


async def test_a_store_that_closes_lets_what_runs_come_to_its_end(postgres: EmbeddedPostgres) -> None:
    closing = Database(postgres.url("app"), pool_size=1)
    begun = asyncio.Event()

    async def work() -> int:
        async with closing.operator() as op:
            begun.set()
            return int((await op.sql.execute(text("SELECT 7 FROM pg_sleep(0.3)"))).scalar_one())

    running = asyncio.create_task(work())
    await begun.wait()
    await closing.close()
    assert await running == 7


async def test_a_cancelled_transaction_leaves_its_connection_clean(postgres: EmbeddedPostgres) -> None:
    alone = Database(postgres.url("app"), pool_size=1)
    begun = asyncio.Event()

    async def work() -> None:
        async with alone.operator() as op:
            begun.set()
            await op.sql.execute(text("SELECT 1 FROM pg_sleep(20)"))

    try:
        running = asyncio.create_task(work())
        await begun.wait()
        await asyncio.sleep(0.1)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        async with asyncio.timeout(5), alone.operator() as op:
            assert (await op.sql.execute(text("SELECT 1"))).scalar_one() == 1
    finally:
        await alone.close()
