"""The stack as users meet it: up, found by later commands, killed, restarted, stopped, its data kept."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from starter import endpoints
from starter.embedded.process import command_line
from starter.errors import Conflict
from starter.stack import Stack
from tests.starter.cli import BRAND, citeloop
from tests.starter.conftest import fast_channels, parts


async def _submit(home: Path, keyword: str) -> str:
    ran = await citeloop("submit", keyword, "--brand", BRAND, "--no-check", "--json", home=home)
    assert ran.code == 0, ran.err
    (article,) = ran.json["article_ids"]
    return str(article)


async def _back(home: Path, name: str, dead: int) -> None:
    async with asyncio.timeout(60):
        while True:
            known = endpoints.read(home)
            if known is not None and known.pids.get(name, dead) != dead:
                return
            await asyncio.sleep(0.1)


async def test_up_serves_later_commands_and_its_data_outlives_it(tmp_path: Path) -> None:
    channels = str(fast_channels(tmp_path))
    up = ("--channels", channels, "up", "--detach", "--no-worker", "--no-api", "--sandbox", "--json")
    first = await citeloop(*up, home=tmp_path)
    assert first.code == 0, first.err
    article = await _submit(tmp_path, "kept keyword")
    again = await citeloop(*up, home=tmp_path)
    assert again.code == 1
    assert again.err.startswith(f"error: home: {tmp_path} is already run by process {first.json['supervisor']}; ")
    assert (await citeloop("down", home=tmp_path)).out == "stopped\n"
    assert not any(command_line(pid) for pid in first.json["pids"].values())
    second = await citeloop(*up, home=tmp_path)
    listed = await citeloop("status", "--json", home=tmp_path)
    await citeloop("down", home=tmp_path)
    assert [row["id"] for row in listed.json] == [article]
    assert second.json["temporal"] == first.json["temporal"]


async def test_simulated_work_never_goes_on_with_real_services(tmp_path: Path) -> None:
    channels = str(fast_channels(tmp_path))
    up = ("--channels", channels, "up", "--detach", "--no-worker", "--no-api")
    assert (await citeloop(*up, "--sandbox", home=tmp_path)).code == 0
    await citeloop("down", home=tmp_path)
    real = await citeloop(*up, home=tmp_path)
    assert real.code == 1
    assert "keeps simulated work and may not go on with real services; set CITELOOP_HOME" in real.err
    assert (await citeloop(*up, "--sandbox", home=tmp_path)).code == 0
    await citeloop("down", home=tmp_path)


async def test_killed_servers_come_back_with_their_data(tmp_path: Path) -> None:
    async with Stack(parts(tmp_path, worker=False, api=False)) as stack:
        article = await _submit(tmp_path, "survivor")
        for name in ("temporal", "postgres", "sandbox"):
            dead = stack.endpoints.pids[name]
            os.kill(dead, signal.SIGKILL)
            await _back(tmp_path, name, dead)
        listed = await citeloop("status", "--json", home=tmp_path)
        link = await citeloop("open", article, home=tmp_path)
    assert [row["id"] for row in listed.json] == [article]
    assert article in link.out


async def test_a_second_stack_on_the_same_home_says_so(tmp_path: Path) -> None:
    async with Stack(parts(tmp_path, worker=False, api=False)):
        with pytest.raises(Conflict, match=r"is already run by process \d+; use it as it is"):
            await Stack(parts(tmp_path, worker=False, api=False)).__aenter__()
        assert endpoints.read(tmp_path) is not None


def _readable_by_others(file: str) -> bool:
    return bool(Path(file).stat().st_mode & 0o077)


async def test_passwords_are_for_their_owner_only(stack: Stack) -> None:
    known = stack.endpoints
    assert known.database_owner_url_file is not None
    assert not _readable_by_others(known.database_url_file)
    assert not _readable_by_others(known.database_owner_url_file)
    assert "postgresql" not in endpoints.file_of(stack.home).read_text()
