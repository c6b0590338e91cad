"""A cause one level down, in plain words, or under a good status is found before a reply is called broken."""

import json
from datetime import UTC, datetime

import pytest

from citeloop.channels.chat import decode_chat
from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.generation import decode_generation
from citeloop.channels.grounding import decode_gemini
from citeloop.channels.reply import HttpReply
from citeloop.channels.responses import decode_responses
from citeloop.channels.turns import decode_turn

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
JSON = {"content-type": "application/json"}
EVENTS = {"content-type": "text/event-stream"}
DECODERS = (decode_chat, decode_gemini, decode_generation, decode_responses, decode_turn)
SAID = b'data: {"choices":[{"index":0,"delta":{"content":"Te"}}]}'
REST = b'data: {"choices":[{"index":0,"delta":{"content":"a."},"finish_reason":"stop"}]}'


def failure(body: bytes, headers: dict[str, str], decode: object = decode_chat) -> ChannelError:
    assert callable(decode)
    with pytest.raises(ChannelError) as raised:
        decode(HttpReply(200, headers, body, NOW))
    return raised.value


def choice(error: object, **fields: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "error": error, "message": {"content": ""}, **fields}]}


RAW = {
    "message": "Provider returned error",
    "code": 429,
    "metadata": {"raw": '{"error":{"message":"insufficient balance"}}'},
}


@pytest.mark.parametrize(
    ("payload", "fault"),
    [
        (choice({"code": 402, "message": "Insufficient credits"}, finish_reason="error"), Fault.EXHAUSTED),
        (choice({"code": 429, "message": "slow"}), Fault.RATE_LIMITED),
        (choice({"code": 502, "message": "upstream failed"}), Fault.UNAVAILABLE),
        (choice("invalid api key"), Fault.UNAUTHORIZED),
        (choice(RAW), Fault.EXHAUSTED),
        ({"error": {"error": {"message": "insufficient balance"}}}, Fault.EXHAUSTED),
        ({"error": [{"message": "insufficient balance"}]}, Fault.EXHAUSTED),
        ({"detail": {"error": {"message": "Invalid API key"}}}, Fault.UNAUTHORIZED),
        ({"status": "439", "msg": "Your API Token has expired.", "body": None}, Fault.UNAUTHORIZED),
        ({"status": 429, "message": "slow"}, Fault.RATE_LIMITED),
        ({"statusCode": 503, "message": "later"}, Fault.OVERLOADED),
        ({"status": "error", "message": "insufficient balance"}, Fault.EXHAUSTED),
        ({"status": "failed", "message": "something broke"}, Fault.UNAVAILABLE),
        ({"ok": False, "error": "Too many requests"}, Fault.RATE_LIMITED),
        ({"ok": False, "description": "Invalid API key"}, Fault.UNAUTHORIZED),
        ({"success": "false", "message": "账户已欠费"}, Fault.EXHAUSTED),
        ({"errno": 6, "errmsg": "insufficient balance"}, Fault.EXHAUSTED),
        ({"message": "insufficient balance"}, Fault.EXHAUSTED),
        ({"msg": "content policy violation"}, Fault.REFUSED),
        ({"choices": [], "message": "insufficient balance"}, Fault.EXHAUSTED),
        ({"message": "hello"}, Fault.GARBLED),
        ({"choices": [], "id": "x"}, Fault.REFUSED),
    ],
)
def test_a_body_under_a_good_status_is_judged_by_its_words(payload: object, fault: Fault) -> None:
    assert failure(json.dumps(payload).encode(), JSON).fault is fault


@pytest.mark.parametrize(
    ("events", "fault"),
    [
        (b'event: error\ndata: {"message":"insufficient balance"}\n\n', Fault.EXHAUSTED),
        (b'event:error\ndata:{"code":"DataInspectionFailed","message":"x"}\n\n', Fault.REFUSED),
        (b'event: error\ndata: {"error":{"message":"Too many requests"}}\n\n', Fault.RATE_LIMITED),
        (b'event: error\ndata: {"message":"something broke"}\n\n', Fault.UNAVAILABLE),
        (b"event: error\ndata: insufficient balance\n\n", Fault.EXHAUSTED),
        (b"event: error\ndata: {}\n\n", Fault.UNAVAILABLE),
        (b"error: insufficient balance\n\n", Fault.EXHAUSTED),
        (b"data: upstream error: insufficient balance\n\n", Fault.EXHAUSTED),
        (b'data: "insufficient balance"\n\n', Fault.EXHAUSTED),
        (b'data: {"message":"insufficient balance"}\n\n', Fault.EXHAUSTED),
        (b'data: {"type":"billing","message":"insufficient balance"}\n\n', Fault.EXHAUSTED),
        (b'data: {"type":"source","title":"What a rate limit is"}\n\n', Fault.GARBLED),
        (b'data: {"error":{"message":"insufficient balance"\n\n', Fault.EXHAUSTED),
        (SAID + b'\n\ndata: {"id":"x"\ndata: {"error":{"message":"Too many requests"}}\n\n', Fault.RATE_LIMITED),
        (SAID + b"\n\ndata: upstream error: rate limit\n\n", Fault.RATE_LIMITED),
        (SAID + b"\n\ndata: upstream error: who knows\n\n", Fault.GARBLED),
        (b"upstream error: insufficient balance", Fault.EXHAUSTED),
        (b"event: end\ndata: [DONE]\n\n", Fault.GARBLED),
    ],
)
def test_a_stream_is_judged_by_the_words_in_it(events: bytes, fault: Fault) -> None:
    assert failure(events, EVENTS).fault is fault


@pytest.mark.parametrize("decode", DECODERS)
@pytest.mark.parametrize(
    ("body", "headers", "fault"),
    [
        (b'{"message":"insufficient balance"}', JSON, Fault.EXHAUSTED),
        (b"insufficient balance", {"content-type": "text/plain"}, Fault.EXHAUSTED),
        (b"<html><title>Too many requests</title>", {"content-type": "text/html"}, Fault.RATE_LIMITED),
        (b'data: {"message":"insufficient balance"}\n\n', EVENTS, Fault.EXHAUSTED),
        (b"<html><title>Login</title>", {"content-type": "text/html"}, Fault.GARBLED),
        (b"<html><meta content='rate limit'>", {"content-type": "text/html"}, Fault.GARBLED),
        (b"who knows", {"content-type": "text/plain"}, Fault.GARBLED),
    ],
)
def test_no_dialect_calls_a_named_cause_broken(
    decode: object, body: bytes, headers: dict[str, str], fault: Fault
) -> None:
    assert failure(body, headers, decode).fault is fault


@pytest.mark.parametrize(
    "torn",
    [
        b'data: {"choices":[{"index":0,"delta":{"content":"Insufficient balance means that\n\n',
        b'data: {"output":{"text":"Rate limit reached\n\n',
        b"data: " + b"An essay on rate limits. " * 40 + b"\n\n",
    ],
)
def test_a_torn_piece_of_an_article_about_money_is_no_complaint_about_ours(torn: bytes) -> None:
    assert failure(torn, EVENTS).fault is Fault.GARBLED


@pytest.mark.parametrize("between", [b"\n", b"\r\n", b"\n\n", b"\ndata:\n"])
def test_lines_without_the_blank_ones_between_them_are_a_stream_all_the_same(between: bytes) -> None:
    stream = between.join([SAID, REST, b"data: [DONE]", b"data: trailing noise"]) + b"\n"
    assert decode_chat(HttpReply(200, EVENTS, stream, NOW)).text == "Tea."


@pytest.mark.parametrize(
    "beside",
    [
        {"error": None},
        {"status": "completed"},
        {"ok": True},
        {"success": True},
        {"code": 0},
        {"message": "Too many requests"},
    ],
)
def test_what_stands_beside_a_good_answer_does_not_spoil_it(beside: dict[str, object]) -> None:
    whole = {
        "choices": [{"index": 0, "error": None, "message": {"content": "Tea."}, "finish_reason": "stop"}],
        **beside,
    }
    assert decode_chat(HttpReply(200, JSON, json.dumps(whole).encode(), NOW)).text == "Tea."
