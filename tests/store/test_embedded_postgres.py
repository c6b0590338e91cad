import asyncio
import os
import shutil
import signal
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from citeloop.store.database import Database
from citeloop.store.errors import StoreUnavailable
from citeloop.store.statements import text
from starter.embedded.postgres import EmbeddedPostgres
from starter.embedded.process import StartError, command_line


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[EmbeddedPostgres]:
    """In a folder that only its owner may enter."""
    folder = tmp_path / "private"
    folder.mkdir(mode=0o700)
    made = EmbeddedPostgres(folder / "postgres")
    yield made
    await made.stop()


async def written(server: EmbeddedPostgres) -> int:
    connection = await asyncpg.connect(server.url("owner"))
    await connection.execute("CREATE TABLE IF NOT EXISTS kept (n int)")
    await connection.execute("INSERT INTO kept VALUES (1)")
    count = await connection.fetchval("SELECT count(*) FROM kept")
    await connection.close()
    return int(count)


async def dies(server: EmbeddedPostgres) -> None:
    async with asyncio.timeout(5):
        while server.alive():
            await asyncio.sleep(0.01)


async def test_it_comes_back_on_the_same_port_and_data_after_a_kill(server: EmbeddedPostgres) -> None:
    await server.start()
    port, pid = server.port, server.pid
    assert await written(server) == 1
    clients = [await asyncpg.connect(server.url("app")) for _ in range(5)]
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    await dies(server)
    await server.start()
    assert server.port == port
    assert await written(server) == 2
    for client in clients:
        client.terminate()


async def test_the_store_says_when_it_is_gone_and_heals_when_it_is_back(server: EmbeddedPostgres) -> None:
    await server.start()
    database = Database(server.url("app"))
    async with database.operator() as op:
        await op.sql.execute(text("SELECT 1"))
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    await dies(server)
    with pytest.raises(StoreUnavailable):
        async with database.operator():
            raise AssertionError
    await server.start()
    async with database.operator() as op:
        assert (await op.sql.execute(text("SELECT 1"))).scalar_one() == 1
    await database.close()


async def test_one_left_by_a_killed_supervisor_is_adopted(server: EmbeddedPostgres) -> None:
    await server.start()
    heir = EmbeddedPostgres(server.folder)
    await heir.start()
    assert heir.pid == server.pid
    assert heir.url("app") == server.url("app")
    await heir.stop()
    await dies(server)
    assert not heir.alive()
    assert heir.pid is None


async def test_a_reused_pid_in_a_stale_file_is_left_alone(server: EmbeddedPostgres) -> None:
    await server.start()
    lines = (server.data / "postmaster.pid").read_text().splitlines()
    await server.stop()
    (server.data / "postmaster.pid").write_text("\n".join([str(os.getpid()), *lines[1:]]) + "\n")
    await server.start()
    assert server.alive()


async def test_passwords_are_private_and_asked_for(server: EmbeddedPostgres) -> None:
    await server.start()
    for role in ("app", "owner", "superuser"):
        assert stat.S_IMODE((server.folder / f"{role}.password").stat().st_mode) == 0o600
    with pytest.raises(asyncpg.InvalidPasswordError):
        await asyncpg.connect(server.url("superuser", "postgres"), password="wrong")
    assert not (server.folder / "initdb.password").exists()
    assert server.pid is not None
    for role in ("app", "superuser"):
        assert (server.folder / f"{role}.password").read_text() not in command_line(server.pid)


async def test_it_listens_on_loopback_only(server: EmbeddedPostgres) -> None:
    await server.start()
    admin = await asyncpg.connect(server.url("superuser", "postgres"))
    for setting, value in {
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": "",
        "fsync": "on",
        "synchronous_commit": "on",
        "server_encoding": "UTF8",
    }.items():
        assert await admin.fetchval(f"SHOW {setting}") == value
    await admin.close()


async def test_a_stranger_on_its_port_makes_it_move(server: EmbeddedPostgres) -> None:
    await server.start()
    port = server.port
    await server.stop()
    stranger = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", port)
    async with stranger:
        await server.start()
        assert server.port != port
        assert await written(server) == 1


async def test_a_half_done_first_start_is_begun_again(server: EmbeddedPostgres) -> None:
    half = server.folder / "data.new" / "base"
    half.mkdir(parents=True)
    await server.start()
    assert server.alive()
    assert not half.parent.exists()


async def test_broken_data_are_a_start_error_that_names_the_log(server: EmbeddedPostgres) -> None:
    await server.start()
    await server.stop()
    shutil.rmtree(server.data / "global")
    with pytest.raises(StartError, match=r"Postgres did not start; its log .*postgres\.log says"):
        await server.start()
