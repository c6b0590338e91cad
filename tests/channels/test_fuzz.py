"""Any status, any headers, any bytes: a reply or a ChannelError, and never the key."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime

import httpx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from citeloop.channels.chat import decode_chat
from citeloop.channels.engines.openai_chat import OpenAIChatEngine
from citeloop.channels.errors import ChannelError
from citeloop.channels.illustrators.openai_images import OpenAIImages, decode_image
from citeloop.channels.judging import judged_json
from citeloop.channels.ports import PictureBrief, Post, Undecidable
from citeloop.channels.publishers.webhook import WebhookSite
from citeloop.channels.publishers.wordpress import WordPress, wordpress_json
from citeloop.channels.reply import HttpReply
from citeloop.channels.wire import Wire
from citeloop.channels.writers.openai_chat import OpenAIChatWriter
from citeloop.models.channel import SiteKind, SiteSpec
from tests.channels.settings import KEY, MESSAGES, call, chat_body, spec
from tests.channels.test_wire_faults import LINES

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
)  # fmt: skip
TEXTS = st.one_of(
    st.text(max_size=20),
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
KNOWN = st.sampled_from([line["body"].encode() for line in LINES] + [chat_body()])
PLAIN = st.one_of(
    st.binary(max_size=200),
    VALUES.map(lambda value: json.dumps(value).encode()),
    KNOWN,
    st.tuples(KNOWN, st.integers(0, 400), st.binary(max_size=4)).map(
        lambda cut: cut[0][: cut[1]] + cut[2] + cut[0][cut[1] :]
    ),
    st.lists(VALUES, max_size=4).map(lambda all_: b"".join(f"data: {json.dumps(v)}\n\n".encode() for v in all_)),
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
    channel = spec("https://api.example/v1")
    wire = Wire(http, channel.name, secrets=(WORD,))
    blog = WordPress(SiteSpec(name="b", kind=SiteKind.WORDPRESS, base_url="https://b.example"), "me", WORD, wire)
    hook = WebhookSite(SiteSpec(name="h", kind=SiteKind.WEBHOOK, base_url="https://h.example"), SECRET, wire)
    return [
        lambda: OpenAIChatWriter(channel, WORD, wire).write(MESSAGES, call()),
        lambda: OpenAIChatEngine(channel, WORD, wire).ask("Which?", "en", call()),
        lambda: OpenAIImages(channel, WORD, wire, wire).illustrate(BRIEF, call()),
        lambda: blog.publish(POST, call()),
        lambda: blog.look_up(POST, call()),
        lambda: hook.publish(POST, call()),
        lambda: hook.look_up(POST, call()),
    ]


def _check(error: ChannelError, secret: str) -> None:
    assert secret not in f"{error} {error.request_id} {error.args}"
    assert len(error.message) <= 330
    assert "\n" not in error.message


async def _outcome(use: Callable[[], Awaitable[object]]) -> ChannelError | None:
    try:
        await use()
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
        decode(reply)
    except ChannelError as error:
        return error
    return None


@settings(max_examples=2000, deadline=None, suppress_health_check=list(HealthCheck))
@given(STATUSES, HEADERS, BODIES)
def test_any_bytes_decode_to_a_reply_or_a_channel_error(status: int, headers: dict[str, str], body: bytes) -> None:
    for decode in (decode_chat, decode_image, wordpress_json, judged_json):
        error = _decoded(decode, HttpReply(status, headers, body, NOW))
        if error is not None:
            _check(error, KEY)


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(STATUSES, HEADERS, BODIES)
def test_no_dialect_breaks_on_any_reply_or_shows_its_secret(status: int, headers: dict[str, str], body: bytes) -> None:
    plain = body.replace(KEY.encode(), WORD.encode())
    for error in asyncio.run(_used(status, headers, plain)):
        if error is not None:
            _check(error, WORD)
