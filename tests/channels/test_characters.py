"""What UTF-8 or Postgres cannot hold never leaves a decoder: not in a text, not in a source, not in an error."""

import json
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from citeloop.channels.characters import Halves, storable, storable_json
from citeloop.channels.chat import ChatReply, decode_chat
from citeloop.channels.errors import ChannelError
from citeloop.channels.generation import decode_generation
from citeloop.channels.grounding import decode_gemini
from citeloop.channels.reply import HttpReply
from citeloop.channels.responses import Pending, decode_responses
from citeloop.channels.said import Said, received
from citeloop.channels.scrubbing import scrub
from citeloop.channels.turns import Paused, decode_turn
from tests.channels.settings import chat_body

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
EVENTS = {"content-type": "text/event-stream"}
HIGH, LOW, LOST = "\ud83d", "\ude00", "\ufffd"
Decode = Callable[[HttpReply], Said | Paused | Pending | ChatReply]


def reply(*payloads: object) -> HttpReply:
    return HttpReply(200, EVENTS, b"".join(f"data: {json.dumps(one)}\n\n".encode() for one in payloads), NOW)


def chat(*pieces: str) -> list[object]:
    deltas: list[object] = [{"choices": [{"index": 0, "delta": {"content": one}}]} for one in pieces]
    return [*deltas, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}]


def gemini(*pieces: str) -> list[object]:
    return [{"candidates": [{"content": {"parts": [{"text": one}]}, "finishReason": "STOP"}]} for one in pieces]


def generation(*pieces: str) -> list[object]:
    return [{"output": {"choices": [{"message": {"content": one}, "finish_reason": "stop"}]}} for one in pieces]


def turn(*pieces: str) -> list[object]:
    started = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    return [
        started,
        *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": one}} for one in pieces),
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
    ]


def responses(*pieces: str) -> list[object]:
    deltas = [{"type": "response.output_text.delta", "delta": one} for one in pieces]
    return [*deltas, {"type": "response.completed", "response": {"object": "response", "status": "completed"}}]


DIALECTS: list[tuple[Decode, Callable[..., list[object]]]] = [
    (decode_chat, chat),
    (decode_gemini, gemini),
    (decode_generation, generation),
    (decode_turn, turn),
    (decode_responses, responses),
]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("tea", "tea"),
        ("茶😀", "茶😀"),
        (HIGH + LOW, "😀"),
        (f"{HIGH}\x00{LOW}", "😀"),
        (f"a{HIGH}b", f"a{LOST}b"),
        (LOW + HIGH, LOST + LOST),
        (HIGH + HIGH + LOW, f"{LOST}😀"),
        ("a\x00b", "ab"),
        ("\x00", ""),
    ],
)
def test_halves_are_joined_lone_ones_replaced_and_nul_is_dropped(text: str, kept: str) -> None:
    assert storable(text) == kept


def test_every_text_of_a_document_is_mended_and_the_names_of_its_fields_too() -> None:
    assert storable_json({f"a{HIGH}": [{"b": f"x\x00{LOW}"}, 1, None]}) == {f"a{LOST}": [{"b": f"x{LOST}"}, 1, None]}


def test_a_half_waits_for_the_text_at_its_own_place_and_for_no_other() -> None:
    halves = Halves()
    payloads: list[dict[str, str | int]] = [{"a": f"x{HIGH}", "b": "y"}, {"b": f"{LOW}z"}, {"id": 1}, {"a": f"{LOW}!"}]
    assert [halves.joined(dict(one)) for one in payloads] == [
        {"a": "x", "b": "y"},
        {"b": f"{LOST}z"},
        {"id": 1},
        {"a": "😀!"},
    ]


@pytest.mark.parametrize(("decode", "told"), DIALECTS)
def test_an_emoji_that_a_stream_cut_in_two_is_whole_again(decode: Decode, told: Callable[..., list[object]]) -> None:
    said = decode(reply(*told(f"Tea {HIGH}", f"{LOW} is\x00 hot{LOW}.")))
    assert isinstance(said, (Said, ChatReply))
    assert said.text == f"Tea 😀 is hot{LOST}."


@pytest.mark.parametrize(("decode", "told"), DIALECTS)
def test_half_an_emoji_at_the_end_of_a_stream_harms_nobody(decode: Decode, told: Callable[..., list[object]]) -> None:
    said = decode(reply(*told("Tea", f" is hot.{HIGH}")))
    assert isinstance(said, (Said, ChatReply))
    assert said.text == "Tea is hot."


def test_a_source_and_a_model_with_such_characters_are_kept_without_them() -> None:
    candidate = {
        "content": {"parts": [{"text": "Tea."}]},
        "finishReason": "STOP",
        "groundingMetadata": {
            "webSearchQueries": [f"q\x00{HIGH}?"],
            "groundingChunks": [{"web": {"uri": "https://a.example/\x001", "title": f"A{HIGH}B"}}],
            "groundingSupports": [{"segment": {"endIndex": 4}, "groundingChunkIndices": [0]}],
        },
    }
    whole = HttpReply(200, {}, json.dumps({"candidates": [candidate], "modelVersion": f"m{LOW}"}).encode(), NOW)
    said = decode_gemini(whole)
    assert (said.model, said.queries) == (f"m{LOST}", (f"q{LOST}?",))
    assert [(one.url, one.title) for one in said.cited] == [("https://a.example/1", f"A{LOST}B")]


def test_the_raw_reply_that_is_kept_holds_no_nul() -> None:
    chunk = json.dumps(chat("hi")[0])
    whole = f"data: {chunk}\n\n: \x00\n\n".encode()
    assert "\x00" not in received(Said("hi", "m", "r"), HttpReply(200, EVENTS, whole, NOW)).raw


def test_an_error_text_can_be_kept() -> None:
    assert scrub(f"bad\x00 {HIGH}{LOW} {HIGH} end") == f"bad 😀 {LOST} end"
    body = json.dumps({"error": {"message": f"no \x00{HIGH} such model"}}).encode()
    with pytest.raises(ChannelError) as raised:
        decode_chat(HttpReply(404, {}, body, NOW))
    assert raised.value.message == f"HTTP 404: no {LOST} such model"


def test_a_whole_reply_is_mended_like_a_stream() -> None:
    body = chat_body(f"Tea {HIGH}{LOW}\x00{HIGH}.", evidence={"citations": [f"https://a.example/{LOW}"]})
    said = decode_chat(HttpReply(200, {}, body, NOW))
    assert (said.text, said.evidence) == (f"Tea 😀{LOST}.", {"citations": [f"https://a.example/{LOST}"]})
