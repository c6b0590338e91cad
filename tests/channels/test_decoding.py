"""`citeloop decode`: the judgement of any reply, for people and for programs."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from starter.cli import run
from tests.channels.test_wire_faults import LINES, reply_of


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert run(["decode", "--json", *arguments]) == 0
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("line", LINES, ids=lambda line: line["id"])
def test_the_command_says_of_a_line_what_the_line_says(
    line: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--service", line["service"]]
    if line["status"] is not None:
        (tmp_path / "body").write_bytes(reply_of(line).body)
        arguments += ["--status", str(line["status"]), "body"]
    for name, value in line["headers"].items():
        arguments += ["--header", f"{name}:{value}"]
    assert told(capsys, *arguments)["handling"] == line["correct_handling"]


def test_a_person_reads_the_judgement_in_four_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "r.json").write_text('{"error":{"message":"Rate limit reached"}}', encoding="utf-8")
    arguments = ["--service", "openai", "--status", "429", "--header", "Retry-After-Ms: 1450", "r.json"]
    assert run(["decode", *arguments]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "handling  retry_after:1.45",
        "kind      rate_limited",
        "delay     1.45 s",
        "why       HTTP 429: Rate limit reached",
    ]


def test_the_body_may_come_on_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    body = io.TextIOWrapper(io.BytesIO('{"error":{"message":"余额不足"}}'.encode()))
    monkeypatch.setattr(sys, "stdin", body)
    found = told(capsys, "--service", "zhipu", "--status", "429", "-")
    assert (found["handling"], found["kind"], found["delay_s"]) == ("pause_channel", "exhausted", None)


def test_an_old_reply_is_judged_as_of_its_own_date(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "r").write_text(
        '{"error":{"code":"1308","message":"您的限额将在 2025-01-02 08:00:00 重置"}}', encoding="utf-8"
    )
    found = told(
        capsys, "--service", "zhipu", "--status", "429", "--header", "Date: Wed, 01 Jan 2025 00:00:00 GMT", "r"
    )
    assert (found["handling"], found["delay_s"]) == ("reschedule:reset_time_in_message", 86400.0)


def test_a_service_of_unknown_name_is_judged_by_shape_and_said_to_be_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "r").write_text('{"error":{"message":"Insufficient Balance"}}', encoding="utf-8")
    assert run(["decode", "--service", "my-gateway", "--status", "402", "--json", "r"]) == 0
    out = capsys.readouterr()
    assert json.loads(out.out)["handling"] == "pause_channel"
    assert "my-gateway is not known" in out.err


def test_a_key_in_the_reply_is_not_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "r").write_text('{"error":{"message":"bad key sk-live-0123456789abcdef"}}', encoding="utf-8")
    assert "0123456789abcdef" not in told(capsys, "--service", "openai", "--status", "401", "r")["why"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--service", "openai", "--status", "42"], "status: '42' is no HTTP status"),
        (["--service", "openai", "--status", "200", "--header", "nonsense"], "header: 'nonsense' is no header"),
        (["--service", "openai", "--status", "200", "absent.json"], "file: absent.json cannot be read"),
    ],
)
def test_a_mistake_is_told_with_its_remedy(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["decode", *arguments]) == 2
    assert words in capsys.readouterr().err
