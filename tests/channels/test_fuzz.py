"""Any status, any headers, any bytes: a reply or a ChannelError, and never the key.

`HYPOTHESIS_PROFILE=thorough pytest tests/channels/test_fuzz.py --timeout 0` runs 20,000 examples.
"""

import asyncio
import copy
import dataclasses
import gzip
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

import httpx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from citeloop.channels import engines, illustrators, writers
from citeloop.channels.chat import decode_chat
from citeloop.channels.errors import ChannelError
from citeloop.channels.fibers import decode_fiber, decode_tools, decode_wanted
from citeloop.channels.generation import decode_generation
from citeloop.channels.grounding import decode_gemini
from citeloop.channels.illustrators.ark_seedream import decode_seedream
from citeloop.channels.illustrators.openai_images import decode_image
from citeloop.channels.judging import judged_json
from citeloop.channels.ports import PictureBrief, Post, Undecidable
from citeloop.channels.probing import decode_probe
from citeloop.channels.publishers.webhook import WebhookSite
from citeloop.channels.publishers.wordpress import WordPress
from citeloop.channels.publishers.wordpress_rest import wordpress_json
from citeloop.channels.reply import HttpReply
from citeloop.channels.responses import decode_responses
from citeloop.channels.services import SERVICES, judgement
from citeloop.channels.stock import decode_pexels, decode_unsplash
from citeloop.channels.tasks import decode_task
from citeloop.channels.turns import decode_turn
from citeloop.channels.wire import Wire
from citeloop.models.channel import SiteKind, SiteSpec
from tests.channels.settings import KEY, MESSAGES, call, chat_body, spec
from tests.channels.shapes import SHAPES
from tests.channels.test_wire_faults import LINES

settings.register_profile("quick", max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
settings.register_profile("thorough", parent=settings.get_profile("quick"), max_examples=20_000)
PROFILE = settings.get_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
DECODERS = (
    decode_chat, decode_fiber, decode_gemini, decode_generation, decode_image, decode_pexels, decode_probe,
    decode_responses, decode_seedream, decode_task, decode_tools, decode_turn, decode_unsplash, decode_wanted,
    judged_json, wordpress_json,
)  # fmt: skip
Json = Any
NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
WORD = "correct.horse.battery"
"""A secret that looks like none: only its owner can mask it."""
SECRET = "whsec_Y2l0ZWxvb3Agc2FuZGJveCwgMzIgYnl0ZXMgbG9uZyE="
POST = Post(marker="m-1", slug="s", title="T", html="<p>x</p>")
BRIEF = PictureBrief(prompt="p", title="t", alt="a")
WORDS = (
    "error", "code", "message", "type", "choices", "delta", "content", "finish_reason", "data", "usage", "index",
    "url", "b64_json", "citations", "search_info", "search_results", "id", "slug", "status", "metadata", "raw",
    "details", "retryDelay", "headers", "annotations", "errcode", "Response", "Error", "found", "refusal",
    "output", "text", "candidates", "parts", "blocks", "results", "queries", "stop_reason", "object", "action",
    "groundingMetadata", "groundingChunks", "groundingSupports", "segment", "startIndex", "endIndex", "context",
    "references", "incomplete_details", "task_status", "task_id", "image", "input", "tool_calls", "photos", "urls",
)  # fmt: skip
FREE = {
    "content",
    "text",
    "title",
    "url",
    "uri",
    "query",
    "queries",
    "webSearchQueries",
    "search_queries",
    "citations",
    "citation",
    "id",
    "model",
    "message",
    "errmsg",
    "request_id",
    "task_id",
    "partial_json",
    "output",
    "photographer",
    "name",
    "image",
    "large",
    "regular",
    "arguments",
    "modelVersion",
}
"""Where providers write what they like."""
TEXTS = st.one_of(
    st.text(max_size=20),
    st.text(st.sampled_from("a茶\x00\ud83d\ude00"), max_size=6),
    st.just(KEY),
    st.just(f"Bearer {KEY}\n"),
    st.just(f"try again in {'9' * 30} hours, key {KEY}"),
    st.sampled_from(["stop", "429", "per day, reset at 9999-99-99 99:99:99", "insufficient balance", "[1] 【2】"]),
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXTS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.one_of(st.sampled_from(WORDS), TEXTS), inner, max_size=5)
    ),
    max_leaves=12,
)


@st.composite
def bent(draw: st.DrawFn) -> Json:
    """A good reply of some dialect, in which one value became something else, or was lost."""
    shape = copy.deepcopy(draw(st.sampled_from(SHAPES)))
    place: Json = shape
    while isinstance(place, (dict, list)) and place:
        key = draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        inner = place[key]
        if not isinstance(inner, (dict, list)) or not inner or draw(st.booleans()):
            if isinstance(place, dict) and draw(st.booleans()):
                del place[key]
            else:
                place[key] = draw(VALUES)
            break
        place = inner
    return shape


@st.composite
def unstorable(draw: st.DrawFn) -> Json:
    """A good reply of some dialect in which every free text has characters that cannot be stored, or half of one."""
    mark = draw(st.text(st.sampled_from("\x00\ud83d\ude00"), min_size=1, max_size=3))
    first = draw(st.booleans())

    def spoiled(value: Json, name: str = "") -> Json:
        if isinstance(value, dict):
            return {key: spoiled(one, key) for key, one in value.items()}
        if isinstance(value, list):
            return [spoiled(one, name) for one in value]
        if not isinstance(value, str) or name not in FREE:
            return value
        return value[:9] + mark + value[9:] if first else value + mark

    return spoiled(draw(st.sampled_from(SHAPES)))


def events(payloads: list[Json]) -> bytes:
    return b"".join(f"data: {json.dumps(one)}\n\n".encode() for one in payloads)


KNOWN = st.sampled_from([line["body"].encode() for line in LINES] + [chat_body()])
PLAIN = st.one_of(
    st.binary(max_size=200),
    VALUES.map(lambda value: json.dumps(value).encode()),
    KNOWN,
    st.tuples(KNOWN, st.integers(0, 400), st.binary(max_size=4)).map(
        lambda cut: cut[0][: cut[1]] + cut[2] + cut[0][cut[1] :]
    ),
    st.lists(VALUES, max_size=4).map(events),
    bent().map(lambda value: json.dumps(value).encode()),
    st.lists(bent(), min_size=1, max_size=4).map(events),
    unstorable().map(lambda value: json.dumps(value).encode()),
    st.lists(unstorable(), min_size=1, max_size=4).map(events),
    st.builds(lambda shape, mark: json.dumps({"error": {"message": mark, "code": shape}}).encode(), TEXTS, TEXTS),
    st.just(b"[" * 5_000),
    st.just(b'{"a":' * 5_000),
)
BODIES = st.one_of(PLAIN, PLAIN.map(lambda raw: b"\xef\xbb\xbf\n\n" + raw), PLAIN.map(gzip.compress))
HEADERS = st.dictionaries(
    st.sampled_from(
        [
            "content-type", "content-encoding", "retry-after", "retry-after-ms", "date", "x-should-retry",
            "x-ratelimit-reset", "x-request-id", "location",
        ]
    ),
    st.one_of(
        st.sampled_from(
            ["text/event-stream", "application/json", "text/html", "gzip", "deflate", "br", "-1", "nan", "inf", "1e400",
             "Tue, 17 Feb 2026 12:00:00 GMT", "Tue, 99 Feb 99999 12:00:00 GMT", "true", "false", f"/{KEY}", "3"]
        ),
        st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=20),
    ),
    max_size=4,
)  # fmt: skip
STATUSES = st.one_of(st.sampled_from([200, 201, 204, 301, 400, 401, 403, 404, 429, 500, 503]), st.integers(200, 599))


class Bytes(httpx.AsyncByteStream):
    def __init__(self, data: bytes) -> None:
        self._data = data

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self._data), 64_000):
            yield self._data[start : start + 64_000]


def _client(status: int, headers: dict[str, str], body: bytes) -> httpx.AsyncClient:
    def answer(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(status, headers=headers, stream=Bytes(body))

    return httpx.AsyncClient(transport=httpx.MockTransport(answer))


def _uses(http: httpx.AsyncClient) -> list[Callable[[], Awaitable[object]]]:
    channel = spec("https://api.example/v1", provider="openai")
    wire = Wire(http, channel.name, secrets=(WORD,))
    blog = WordPress(SiteSpec(name="b", kind=SiteKind.WORDPRESS, base_url="https://b.example"), "me", WORD, wire)
    hook = WebhookSite(SiteSpec(name="h", kind=SiteKind.WEBHOOK, base_url="https://h.example"), SECRET, wire)
    patience = call(total=0.2)
    uses: list[Callable[[], Awaitable[object]]] = [
        lambda: blog.publish(POST, call()),
        lambda: blog.look_up(POST, call()),
        lambda: hook.publish(POST, call()),
        lambda: hook.look_up(POST, call()),
    ]
    uses += [partial(kind(channel, WORD, wire).write, MESSAGES, patience) for kind in writers.DIALECTS.values()]
    uses += [partial(kind(channel, WORD, wire).ask, "Which?", "en", patience) for kind in engines.DIALECTS.values()]
    uses += [
        partial(kind(channel, WORD, wire, wire).illustrate, BRIEF, patience) for kind in illustrators.DIALECTS.values()
    ]
    return uses


def _texts(value: object) -> Iterator[str]:
    """Every string in a reply, whatever records and lists it is wrapped in."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, BaseModel):
        yield from _texts(dict(value))
    elif dataclasses.is_dataclass(value):
        yield from _texts([getattr(value, one.name) for one in dataclasses.fields(value)])
    elif isinstance(value, dict):
        yield from _texts([*value, *value.values()])
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _texts(one)


def _storable(value: object) -> None:
    for text in _texts(value):
        text.encode()
        assert "\x00" not in text


def _check(error: ChannelError, secret: str) -> None:
    _storable([error.message, error.request_id, error.change, *error.args])
    assert secret not in f"{error} {error.request_id} {error.args}"
    assert len(error.message) <= 330
    assert "\n" not in error.message


async def _outcome(use: Callable[[], Awaitable[object]]) -> ChannelError | None:
    try:
        _storable(await use())
    except ChannelError as error:
        return error
    except Undecidable:
        return None
    return None


async def _used(status: int, headers: dict[str, str], body: bytes) -> list[ChannelError | None]:
    async with _client(status, headers, body) as http:
        return [await _outcome(use) for use in _uses(http)]


def _decoded(decode: Callable[[HttpReply], object], reply: HttpReply) -> ChannelError | None:
    try:
        _storable(decode(reply))
    except ChannelError as error:
        return error
    return None


@settings(PROFILE)
@given(STATUSES, HEADERS, BODIES)
def test_any_bytes_decode_to_a_reply_or_a_channel_error(status: int, headers: dict[str, str], body: bytes) -> None:
    for decode in DECODERS:
        error = _decoded(decode, HttpReply(status, headers, body, NOW))
        if error is not None:
            _check(error, KEY)


@settings(PROFILE)
@given(st.sampled_from(sorted(SERVICES)), STATUSES, HEADERS, BODIES)
def test_every_service_judges_any_bytes_in_one_line(
    service: str, status: int, headers: dict[str, str], body: bytes
) -> None:
    found = judgement(service, HttpReply(status, headers, body, NOW))
    assert KEY not in found.model_dump_json()
    assert found.handling
    _storable(found)
    assert "\n" not in found.why
    assert found.delay_s is None or found.delay_s > 0


@settings(PROFILE, max_examples=PROFILE.max_examples // 20)
@given(STATUSES, HEADERS, BODIES)
def test_no_dialect_breaks_on_any_reply_or_shows_its_secret(status: int, headers: dict[str, str], body: bytes) -> None:
    plain = body.replace(KEY.encode(), WORD.encode())
    for error in asyncio.run(_used(status, headers, plain)):
        if error is not None:
            _check(error, WORD)
