"""Every line of wire_faults.jsonl, judged as it says: the handling word for word, none left out."""

import gzip
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from citeloop.channels.errors import Fault
from citeloop.channels.handling import Judgement
from citeloop.channels.reply import HttpReply
from citeloop.channels.services import SERVICES, judgement, judgement_of_silence

LINES: list[dict[str, Any]] = [
    json.loads(line) for line in (Path(__file__).parent / "wire_faults.jsonl").read_text(encoding="utf-8").splitlines()
]
BY_ID = {line["id"]: line for line in LINES}
NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
LATER = datetime(2027, 6, 1, tzinfo=UTC)
"""When every reset moment that the lines name has passed."""
KINDS = {
    "accept_with_note": {"ok"},
    "poll": {"ok"},
    "continue_turn": {"ok"},
    "resubmit": {"unavailable"},
    "retry_backoff": {"rate_limited", "overloaded", "unavailable", "timed_out", "garbled"},
    "retry_fast": {"garbled"},
    "retry_after": {"rate_limited", "overloaded", "unavailable"},
    "reschedule": {"rate_limited", "exhausted"},
    "pause_channel": {"exhausted"},
    "refuse_content": {"refused"},
    "fail_permanent": {"invalid", "unauthorized"},
    "retry_with_change": {"invalid", "garbled", "refused"},
    "refresh_token_retry_once": {"unauthorized"},
    "reconcile_then_retry": {"unknown"},
}


def reply_of(line: dict[str, Any], received_at: datetime = NOW) -> HttpReply:
    body = str(line["body"]).encode()
    if line["id"] == "gz-undeclared":
        body = gzip.compress(BY_ID["gz-misdeclared"]["body"].encode())
    return HttpReply(line["status"], {k.lower(): v for k, v in line["headers"].items()}, body, received_at)


def judged(line: dict[str, Any], received_at: datetime = NOW) -> Judgement:
    if line["status"] is None:
        return judgement_of_silence(line["service"])
    return judgement(line["service"], reply_of(line, received_at))


@pytest.mark.parametrize("line", LINES, ids=lambda line: line["id"])
@pytest.mark.parametrize("received_at", [NOW, LATER], ids=["then", "later"])
def test_a_reply_is_handled_as_its_line_says(line: dict[str, Any], received_at: datetime) -> None:
    found = judged(line, received_at)
    handling, _, argument = line["correct_handling"].partition(":")
    assert found.handling == line["correct_handling"], found
    assert found.kind in KINDS[handling], found
    assert found.why
    if handling == "retry_after":
        assert found.delay_s == float(argument)
    elif handling == "reschedule":
        assert found.delay_s is not None
        assert found.delay_s > 0
    else:
        assert found.delay_s is None


def test_every_service_of_the_file_is_known_by_its_name() -> None:
    assert {line["service"] for line in LINES} <= SERVICES.keys()


@pytest.mark.parametrize("status", [400, 404, 410])
def test_sonar_after_its_end_is_a_matter_of_configuration_whatever_it_answers(status: int) -> None:
    """Line px-sonar-retired: nobody has seen the reply."""
    for body in (b"", b'{"error":{"message":"This endpoint has been retired"}}', b"<html><title>Gone</title></html>"):
        found = judgement("perplexity", HttpReply(status, {}, body, NOW))
        assert (found.handling, found.kind) == ("fail_permanent", Fault.INVALID), found


def test_a_reset_moment_becomes_the_delay() -> None:
    assert judged(BY_ID["glm-1308"]).delay_s == timedelta(hours=9).total_seconds()
    day_before = datetime(2025, 3, 29, tzinfo=UTC)
    reset = judged(BY_ID["or-200-error-429-daily"], day_before)
    assert reset.delay_s == 1743292800 - day_before.timestamp()


def test_the_judgement_is_of_the_reply_and_not_of_the_service_that_a_gateway_hides() -> None:
    """Every model's reply means the same when it comes from a gateway of unknown name."""
    models = [
        line
        for line in LINES
        if line["service"] in {"deepseek", "openai", "anthropic", "gemini", "zhipu", "moonshot", "dashscope_native"}
    ]
    for line in models:
        assert judgement("some-gateway", reply_of(line)).handling == line["correct_handling"], line["id"]
