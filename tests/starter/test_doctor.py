"""`citeloop doctor`: a healthy installation is said to be well, and each thing that is wrong has its remedy."""

import asyncio
import os
import socket
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from starter import endpoints, simulated
from starter.checks import embedded, machine, outside
from starter.checks.findings import Finding, Standing, clock
from starter.embedded.process import Child, Program, left_behind
from starter.endpoints import Endpoints
from starter.lock import HomeLock
from starter.stack import Stack
from tests.fixtures_sandbox import Sandbox
from tests.starter.cli import Ran, citeloop

NOBODY = "127.0.0.1:9"


@pytest.fixture
def stranger() -> Iterator[int]:
    """The port of a program that is not ours."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield int(listening.getsockname()[1])


def _troubles(findings: Sequence[Finding]) -> list[tuple[str, str]]:
    return [(finding.check, finding.message) for finding in findings if finding.standing in {"warn", "fail"}]


def _told(ran: Ran) -> dict[str, list[tuple[str, str]]]:
    """By group, the checks that did not pass."""
    return {
        group["name"]: [(one["standing"], one["message"]) for one in group["findings"] if one["standing"] != "ok"]
        for group in ran.json["groups"]
    }


# The whole command


async def test_a_whole_installation_is_well(stack: Stack) -> None:
    ran = await citeloop("doctor", "--json", home=stack.home)
    assert (ran.code, _told(ran)) == (0, {group: [] for group in _told(ran)}), ran.out
    assert ran.json["ok"] is True
    assert list(_told(ran)) == ["This machine", "Postgres", "Temporal", "Channels and sites", "Work"]
    shown = await citeloop("doctor", home=stack.home)
    assert shown.out.splitlines()[-1] == "all is well"


async def test_a_channel_that_a_person_paused_is_a_warning_and_no_failure(stack: Stack) -> None:
    await citeloop("channels", "pause", "qwen", "--reason", "new key on Monday", home=stack.home)
    ran = await citeloop("doctor", "--json", home=stack.home)
    await citeloop("channels", "resume", "qwen", home=stack.home)
    said = "qwen is paused: new key on Monday; `citeloop channels resume qwen`"
    assert (ran.code, _told(ran)["Work"]) == (0, [("warn", said)])


async def test_with_nothing_running_it_says_what_is_missing_and_how_to_start_it(tmp_path: Path) -> None:
    ran = await citeloop("--channels", str(tmp_path / "channels.toml"), "doctor", "--json", home=tmp_path)
    told = _told(ran)
    assert (ran.code, ran.err, ran.json["ok"]) == (1, "", False)
    start = "run `citeloop up` in another terminal or set"
    assert told["Postgres"] == [("fail", f"no database is known in {tmp_path}; {start} CITELOOP_DATABASE_URL")]
    assert told["Temporal"] == [("fail", f"no Temporal server is known in {tmp_path}; {start} TEMPORAL_ADDRESS")]
    assert told["Work"] == [("skipped", "Temporal does not answer, so that its queues cannot be seen")]
    (missing,) = told["Channels and sites"]
    assert missing[1].startswith(f"{tmp_path}/channels.toml is not there; `cp examples/channels.toml channels.toml`")
    assert ("skipped", f"not running in {tmp_path}; `citeloop up --detach` starts it") in told["This machine"]


async def test_servers_that_are_named_and_do_not_answer_are_named_back_without_their_password(tmp_path: Path) -> None:
    environ = {"TEMPORAL_ADDRESS": NOBODY, "CITELOOP_DATABASE_URL": f"postgresql://a:secret@{NOBODY}/citeloop"}
    ran = await citeloop("doctor", home=tmp_path, environ=environ)
    assert ran.code == 1
    assert f"no Temporal server at {NOBODY}; run `citeloop up`" in ran.out
    assert "the database does not answer" in ran.out
    assert ran.out.count("not needed, since") == 2
    assert "secret" not in ran.out


# This machine


def test_an_old_python_is_refused_with_the_way_out() -> None:
    found = machine.python((3, 10, 4))
    assert (found.standing, found.message) == (
        Standing.FAIL,
        "Python 3.10.4 is too old; run `make install PYTHON=/path/to/python3.11` or newer",
    )
    assert machine.python(sys.version_info[:3]).standing is Standing.OK


def test_too_little_space_is_a_warning_and_almost_none_a_failure(tmp_path: Path) -> None:
    home = tmp_path / "not" / "made" / "yet"
    assert machine.disk(home, enough=1, least=1).standing is Standing.OK
    assert machine.disk(home, enough=2**60, least=1).standing is Standing.WARN
    assert machine.disk(home, enough=2**60, least=2**60).standing is Standing.FAIL
    assert not (tmp_path / "not").exists()


def test_a_home_that_cannot_be_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    found = machine.disk(tmp_path / "file" / "home")
    assert found.standing is Standing.FAIL
    assert found.message.endswith("cannot be written to; set CITELOOP_HOME to a folder of your own")


async def test_data_of_a_postgres_that_is_not_installed_is_refused(tmp_path: Path) -> None:
    (tmp_path / "postgres" / "data").mkdir(parents=True)
    (tmp_path / "postgres" / "data" / "PG_VERSION").write_text("12\n")
    temporal, postgres = await machine.programs(tmp_path, temporal=True, postgres=True)
    assert (temporal.standing, postgres.standing) == (Standing.OK, Standing.FAIL)
    assert "holds no complete Postgres 12" in postgres.message


def test_a_kept_port_that_a_stranger_took_is_named(tmp_path: Path, stranger: int) -> None:
    (tmp_path / "ports.json").write_text(f'{{"api": {stranger}, "sandbox": 9}}')
    (found,) = machine.kept_ports(tmp_path)
    assert found.standing is Standing.WARN
    assert found.message.startswith(f"port {stranger} of api is taken by another program; ")


async def test_what_a_killed_stack_left_behind_is_told(tmp_path: Path) -> None:
    async def healthy() -> bool:
        return left_behind(tmp_path / "run" / "worker.pid") is not None

    left = Child(Program("worker", ("/bin/sleep", "60")), tmp_path / "run", healthy)
    await left.start()
    (found,) = await embedded.stack(tmp_path)
    await left.stop()
    assert found.standing is Standing.WARN
    assert found.message.startswith("a killed `citeloop up` left worker running; ")


async def test_a_part_of_the_stack_that_keeps_dying_is_named_with_its_log(tmp_path: Path) -> None:
    gone = await asyncio.create_subprocess_exec("/bin/true")
    await gone.wait()
    known = Endpoints(
        supervisor=os.getpid(),
        ready=True,
        temporal=NOBODY,
        namespace="default",
        database_url_file="",
        channels="",
        api=f"http://{NOBODY}",
        pids={"temporal": os.getpid(), "worker": gone.pid},
    )
    lock = HomeLock(tmp_path)
    lock.acquire()
    endpoints.write(tmp_path, known)
    dead = await embedded.stack(tmp_path)
    endpoints.write(tmp_path, known.model_copy(update={"pids": {"temporal": os.getpid()}}))
    mute = await embedded.stack(tmp_path)
    endpoints.write(tmp_path, known.model_copy(update={"ready": False}))
    starting = await embedded.stack(tmp_path)
    lock.release()
    last_words = f"worker keeps dying; its last words stand in {tmp_path}/run/worker.log"
    assert _troubles(dead) == [("stack", last_words)]
    assert [check for check, _ in _troubles(mute)] == ["api"]
    assert starting[0].message.startswith(f"process {os.getpid()} is still starting it; ")


async def test_a_channels_file_changed_after_the_worker_started_is_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "channels.toml"
    known = Endpoints(
        supervisor=os.getpid(),
        ready=True,
        temporal=NOBODY,
        namespace="default",
        database_url_file="",
        channels=str(file),
        pids={"worker": os.getpid()},
    )
    (tmp_path / "run").mkdir()
    lock = HomeLock(tmp_path)
    lock.acquire()
    endpoints.write(tmp_path, known)
    file.touch()
    started = tmp_path / "run" / "worker.pid"
    started.touch()
    os.utime(started, (file.stat().st_atime, file.stat().st_mtime + 5))
    unchanged = await embedded.stack(tmp_path)
    os.utime(file, (file.stat().st_atime, file.stat().st_mtime + 10))
    changed = await embedded.stack(tmp_path)
    lock.release()
    assert _troubles(unchanged) == []
    said = f"{file} was changed after worker had read it; `citeloop down` and `citeloop up` let it take effect"
    assert _troubles(changed) == [("stack", said)]


@pytest.mark.parametrize(("seconds", "said"), [(-5, "5 s behind"), (5, "5 s ahead of")])
def test_a_clock_that_is_off_is_a_warning(seconds: int, said: str) -> None:
    now = datetime.now(UTC)
    found = clock(now + timedelta(seconds=seconds), asked=now, answered=now, whose="Postgres'")
    assert found.standing is Standing.WARN
    assert found.message.startswith(f"Postgres' clock is {said} this machine's; ")
    assert clock(now, asked=now - timedelta(seconds=9), answered=now, whose="Postgres'").standing is Standing.OK


# Channels and sites


def test_a_malformed_channels_file_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "channels.toml"
    file.write_text('[channels.a]\nroles = ["write"\n')
    known, found = outside.catalog(file, {})
    assert (known, found.standing) == (None, Standing.FAIL)
    assert f"{file}:" in found.message


async def test_right_keys_are_taken_and_a_wrong_one_is_not(sandbox: Sandbox) -> None:
    known, _ = outside.catalog(simulated.CHANNELS, sandbox.environ)
    assert known is not None
    assert _troubles(await outside.outside(known, sandbox.environ, offline=False)) == []
    wrong = {**sandbox.environ, "SANDBOX_KEY": "not-the-key"}
    troubles = dict(_troubles(await outside.outside(known, wrong, offline=False)))
    assert "deepseek" in troubles
    assert troubles["deepseek"].endswith("refuses the key (HTTP 401); check SANDBOX_KEY")
    assert _troubles(await outside.outside(known, wrong, offline=True)) == []


async def test_variables_that_are_not_set_are_named(sandbox: Sandbox) -> None:
    known, _ = outside.catalog(simulated.CHANNELS, sandbox.environ)
    assert known is not None
    bare = {"CITELOOP_SANDBOX_URL": sandbox.url, "SANDBOX_BLOG_USER": "citeloop"}
    troubles = dict(_troubles(await outside.outside(known, bare, offline=True)))
    assert troubles["deepseek"] == "SANDBOX_KEY is not set; export it, or remove the channel from channels.toml"
    assert troubles["blog"] == "SANDBOX_BLOG_PASSWORD is not set; export it, or remove the site from channels.toml"
    assert troubles["hook"] == "SANDBOX_HOOK_SECRET is not set; export it, or remove the site from channels.toml"


async def test_a_channel_that_cannot_be_reached_is_named_with_its_address(tmp_path: Path) -> None:
    file = tmp_path / "channels.toml"
    file.write_text(
        f'[channels.lost]\nroles = ["write"]\ndialect = "openai_chat"\nbase_url = "http://{NOBODY}"\nmodel = "m"\n'
    )
    known, _ = outside.catalog(file, {})
    assert known is not None
    troubles = _troubles(await outside.outside(known, {}, offline=False))
    assert troubles[0][0] == "lost"
    assert troubles[0][1].startswith(f"cannot reach http://{NOBODY}")
    assert [check for check, _ in troubles[1:]] == ["roles", "roles"]
