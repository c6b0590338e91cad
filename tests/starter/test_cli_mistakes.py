"""Bad input and missing servers: one line that names field and remedy, a true exit code, nothing done."""

import importlib.metadata
import os
from pathlib import Path

import pytest

from starter.cli import run
from starter.lock import HomeLock
from tests.starter.cli import BRAND, ROOT, citeloop


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No server is known: an empty home, and no variable that names one."""
    for name in [name for name in os.environ if name.startswith(("CITELOOP_", "TEMPORAL_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("CITELOOP_HOME", str(tmp_path))


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("submit", "  ", "--brand", BRAND), 2, "keyword: is empty"),
        (("submit", "x", "--brand", "gone.toml"), 2, "brand: gone.toml: No such file"),
        (("submit", "x", "--brand", BRAND, "--kind", "video"), 2, "kind: video is not supported"),
        (("submit", "x", "--brand", BRAND, "--stages", "write"), 2, "stages: 'write' is no stage"),
        (("submit", "x", "--brand", BRAND, "--days", "3,1"), 2, "days: '3,1' is no rising list of days"),
        (("submit", "x", "--brand", BRAND, "--day-seconds", "nan"), 2, "day-seconds: nan is no length of a day; "),
        (("submit", "x", "--brand", BRAND, "--day-seconds", "inf"), 2, "day-seconds: inf is no length of a day; "),
        (("submit", "x", "--brand", BRAND, "--day-seconds", "1e30"), 2, "day-seconds: 1e+30 is no length of a day; "),
        (("submit", "x", "--brand", BRAND, "--day-seconds", "-1"), 2, "day-seconds: -1.0 is no length of a day; "),
        (("submit", "x", "--brand", BRAND, "--publish-at", "0001-01-01"), 2, "publish-at: '0001-01-01' is no date "),
        (("submit", "x", "--brand", BRAND, "--publish-at", "9999-12-31T23:00-12:00"), 2, "publish-at: '9999-12-31T"),
        (("approve", "x", "--digest", ""), 2, "digest: '' is no digest; give the 64 hex digits of the text"),
        (("reject", "x", "--digest", "0123abc"), 2, "digest: '0123abc' is no digest; give "),
        (("send-back", "x", "--digest", "the one I read"), 2, "digest: 'the one I read' is no digest; give "),
        (("submit", "x" * 201, "--brand", BRAND), 2, "keyword: String should have at most 200 characters"),
        (("submit", "x"), 2, "usage: Missing option '--brand'"),
        (("nonsense",), 2, "usage: No such command 'nonsense'"),
        (("submit", "x", "--brand", BRAND), 3, "temporal: no Temporal server is known in"),
        (("status",), 3, "database: no database is known in"),
        (("pause", "x"), 3, "temporal: no Temporal server is known in"),
    ],
)
def test_a_mistake_is_one_line_with_the_right_exit_code(
    alone: None, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], code: int, message: str
) -> None:
    assert run(arguments) == code
    shown = capsys.readouterr()
    assert shown.err.startswith(f"error: {message}")
    assert (shown.out, shown.err.count("\n")) == ("", 1)


async def test_a_server_that_does_not_answer_is_named_with_the_remedy(tmp_path: Path) -> None:
    environ = {"TEMPORAL_ADDRESS": "127.0.0.1:9"}
    ran = await citeloop("submit", "x", "--brand", BRAND, home=tmp_path, environ=environ)
    remedy = "run `citeloop up` in another terminal or set TEMPORAL_ADDRESS"
    assert (ran.code, ran.err) == (3, f"error: temporal: no Temporal server at 127.0.0.1:9; {remedy}\n")


async def test_a_database_that_does_not_answer_is_named_with_the_remedy(tmp_path: Path) -> None:
    environ = {"CITELOOP_DATABASE_URL": "postgresql://a:secret@127.0.0.1:9/citeloop"}
    ran = await citeloop("status", home=tmp_path, environ=environ)
    assert ran.code == 3
    assert ran.err.startswith("error: database: ")
    assert ran.err.endswith("; run `citeloop up` in another terminal or set CITELOOP_DATABASE_URL\n")
    assert "secret" not in ran.err


async def test_a_malformed_channels_file_is_refused_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "channels.toml"
    file.write_text('[channels.a]\nroles = ["write"\n')
    ran = await citeloop("--channels", str(file), "channels", "check", home=tmp_path)
    assert ran.code == 2
    assert "channels.toml:" in ran.err
    assert ran.err.count("\n") == 1


async def test_a_key_that_is_not_set_fails_the_check_and_names_the_variable(tmp_path: Path) -> None:
    environ = {"CITELOOP_SANDBOX_URL": "http://127.0.0.1:9"}
    file = str(ROOT / "examples" / "channels.sandbox.toml")
    ran = await citeloop("--channels", file, "channels", "check", "deepseek", home=tmp_path, environ=environ)
    assert ran.code == 1
    assert "SANDBOX_KEY is not set" in ran.out


@pytest.mark.parametrize(("command", "what"), [("status", "database"), ("channels", "database"), ("pause", "temporal")])
def test_where_only_a_demo_runs_the_error_says_how_to_reach_it(
    alone: None, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, what: str
) -> None:
    arguments = [command, *(["x"] if command == "pause" else [])]
    demo = HomeLock(tmp_path / "demo")
    demo.acquire()
    assert run(arguments) == 3
    demo.release()
    told = capsys.readouterr().err
    assert (
        f"; a demo runs in {tmp_path}/demo: `citeloop --home {tmp_path}/demo --tenant demo …` reaches it; else " in told
    )
    assert (told.startswith(f"error: {what}: "), told.count("\n")) == (True, 1)
    assert run(arguments) == 3
    assert "demo" not in capsys.readouterr().err.replace(str(tmp_path), "")


def test_the_version_is_an_option_too(alone: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"citeloop {importlib.metadata.version('citeloop')}\n"


def test_nothing_is_running_is_said_by_down(alone: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["down"]) == 0
    assert capsys.readouterr().out == "nothing was running\n"
