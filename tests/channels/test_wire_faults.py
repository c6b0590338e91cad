"""Every known reply of the services that are built, judged as its line in wire_faults.jsonl says."""

import gzip
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from citeloop.channels.chat import decode_chat
from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.illustrators.openai_images import decode_image
from citeloop.channels.reply import HttpReply

LINES = [
    json.loads(line) for line in (Path(__file__).parent / "wire_faults.jsonl").read_text(encoding="utf-8").splitlines()
]
CHAT_SERVICES = {
    "deepseek",
    "openai",
    "openai_compatible",
    "openrouter_like",
    "llm_api_edge",
    "generic_http",
    "moonshot",
    "zhipu",
    "dashscope",
    "volcengine_ark",
    "sensenova_like",
}
IMAGE_SERVICES = {"openai_image"}
ELSEWHERE = {"wordpress", "wordpress_media", "webhook", "webhook_in"}
"""Judged by test_wordpress.py, test_webhook.py and test_signing.py."""
NOT_BUILT = {
    "anthropic",
    "baidu_ai_search",
    "dashscope_image",
    "dashscope_native",
    "devto",
    "directus",
    "gemini",
    "ghost",
    "halo",
    "hunyuan_native",
    "indexnow",
    "perplexity",
    "strapi",
    "tencent_search",
    "unsplash",
    "volcengine_ark_image",
    "wechat_mp",
    "wordpress_com",
}
NOT_BUILT_LINES = {"km-fiber"}
"""A step of Kimi's search tool, which is no chat reply."""

RETRIED = {Fault.OVERLOADED, Fault.UNAVAILABLE, Fault.GARBLED, Fault.RATE_LIMITED}
EXPECTED: dict[str, set[Fault]] = {
    "retry_backoff": RETRIED,
    "retry_fast": RETRIED,
    "retry_after": {Fault.RATE_LIMITED, Fault.OVERLOADED},
    "reschedule": {Fault.RATE_LIMITED, Fault.EXHAUSTED},
    "pause_channel": {Fault.EXHAUSTED, Fault.UNAUTHORIZED},
    "refuse_content": {Fault.REFUSED},
    "fail_permanent": {Fault.INVALID, Fault.UNAUTHORIZED},
    "retry_with_change": {Fault.INVALID, Fault.GARBLED},
}


def reply_of(line: dict[str, object]) -> HttpReply:
    body = str(line["body"]).encode()
    if line["id"] == "gz-undeclared":
        chat = next(one for one in LINES if one["id"] == "gz-misdeclared")["body"]
        body = gzip.compress(chat.encode())
    headers = line["headers"]
    assert isinstance(headers, dict)
    # A day before the reset moments that some lines name.
    received_at = (
        datetime(2025, 3, 29, tzinfo=UTC)
        if line["id"] == "or-200-error-429-daily"
        else datetime(2026, 11, 29, 12, tzinfo=UTC)
    )
    status = line["status"]
    assert isinstance(status, int)
    return HttpReply(status, {k.lower(): v for k, v in headers.items()}, body, received_at)


def built(services: set[str]) -> list[dict[str, object]]:
    return [line for line in LINES if line["service"] in services and line["id"] not in NOT_BUILT_LINES]


def check(line: dict[str, object], decode: Callable[[HttpReply], object]) -> None:
    handling, _, argument = str(line["correct_handling"]).partition(":")
    if handling == "accept_with_note":
        assert decode(reply_of(line))
        return
    with pytest.raises(ChannelError) as raised:
        decode(reply_of(line))
    error = raised.value
    assert error.fault in EXPECTED[handling], error
    assert error.message
    if handling in {"retry_backoff", "retry_fast"}:
        assert error.delay is None
    if handling == "retry_after":
        assert error.delay == timedelta(seconds=float(argument))
    if handling == "reschedule":
        assert error.delay is not None
        assert error.delay > timedelta(seconds=120)
    if handling == "retry_with_change":
        assert error.change == argument


@pytest.mark.parametrize("line", built(CHAT_SERVICES), ids=lambda line: line["id"])
def test_a_chat_reply_is_judged_as_its_line_says(line: dict[str, object]) -> None:
    check(line, decode_chat)


@pytest.mark.parametrize("line", built(IMAGE_SERVICES), ids=lambda line: line["id"])
def test_an_image_reply_is_judged_as_its_line_says(line: dict[str, object]) -> None:
    check(line, decode_image)


def test_every_service_of_the_file_is_either_judged_or_named_as_not_built() -> None:
    assert {line["service"] for line in LINES} == CHAT_SERVICES | IMAGE_SERVICES | ELSEWHERE | NOT_BUILT


def test_a_reset_moment_becomes_the_delay() -> None:
    error = _judged("glm-1308")
    assert error.delay == datetime(2026, 11, 29, 21, tzinfo=UTC) - datetime(2026, 11, 29, 12, tzinfo=UTC)
    assert _judged("or-200-error-429-daily").delay == timedelta(milliseconds=1743292800000) - timedelta(
        seconds=datetime(2025, 3, 29, tzinfo=UTC).timestamp()
    )


def test_money_never_carries_a_delay_that_would_resume_it() -> None:
    assert all(
        _judged(str(line["id"])).delay is None
        for line in built(CHAT_SERVICES)
        if line["correct_handling"] == "pause_channel"
    )


def _judged(line_id: str) -> ChannelError:
    with pytest.raises(ChannelError) as raised:
        decode_chat(reply_of(next(line for line in LINES if line["id"] == line_id)))
    return raised.value
