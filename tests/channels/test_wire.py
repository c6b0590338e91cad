"""What happens on the wire, against a server that says exactly the bytes it is told."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

import httpx
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from citeloop.channels.chat import decode_chat
from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.ports import Call
from citeloop.channels.wire import HttpRequest, Wire
from citeloop.channels.writers.openai_chat import OpenAIChatWriter
from tests.channels.servers import Behaviour, Peer, raw_server
from tests.channels.settings import DONE, KEY, MESSAGES, call, chat_body, chunk, spec


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(trust_env=False) as client:
        yield client


async def written(http: httpx.AsyncClient, behaviour: Behaviour, patience: Call) -> str:
    async with raw_server(behaviour) as server:
        channel = spec(server.url)
        writer = OpenAIChatWriter(channel, KEY, Wire(http, "deepseek", secrets=(KEY,)))
        return (await writer.write(MESSAGES, patience)).text


async def failed(http: httpx.AsyncClient, behaviour: Behaviour, patience: Call) -> tuple[ChannelError, float]:
    started = time.monotonic()
    with pytest.raises(ChannelError) as raised:
        await written(http, behaviour, patience)
    return raised.value, time.monotonic() - started


async def test_silence_before_the_first_byte_survives_while_first_byte_allows_it(http: httpx.AsyncClient) -> None:
    async def slow(peer: Peer) -> None:
        await asyncio.sleep(3)
        await peer.reply(200, chat_body())

    assert await written(http, slow, call(first_byte=5, between_chunks=1, total=10)) == "hello"


async def test_silence_beyond_first_byte_is_cut(http: httpx.AsyncClient) -> None:
    async def silent(peer: Peer) -> None:
        await peer.closed.wait()

    error, seconds = await failed(http, silent, call(first_byte=1, between_chunks=5, total=10))
    assert error.fault is Fault.TIMED_OUT
    assert error.sent
    assert seconds == pytest.approx(1, abs=0.3)


async def test_a_stream_that_falls_silent_is_cut_at_between_chunks(http: httpx.AsyncClient) -> None:
    async def stalls(peer: Peer) -> None:
        await peer.start_stream()
        await peer.say(chunk("Once"))
        await peer.closed.wait()

    error, seconds = await failed(http, stalls, call(first_byte=5, between_chunks=1, total=10))
    assert error.fault is Fault.TIMED_OUT
    assert "between_chunks" in error.message
    assert seconds == pytest.approx(1, abs=0.3)


async def test_a_stream_that_trickles_for_ever_is_cut_at_total(http: httpx.AsyncClient) -> None:
    async def trickles(peer: Peer) -> None:
        await peer.start_stream()
        while not peer.closed.is_set():
            await peer.say(chunk("."))
            await asyncio.sleep(0.1)

    error, seconds = await failed(http, trickles, call(first_byte=5, between_chunks=1, total=1.5))
    assert error.fault is Fault.TIMED_OUT
    assert "total" in error.message
    assert seconds == pytest.approx(1.5, abs=0.3)


async def test_comments_of_a_queued_call_keep_it_alive_beyond_first_byte(http: httpx.AsyncClient) -> None:
    async def queued(peer: Peer) -> None:
        await peer.start_stream()
        for _ in range(6):
            await peer.say(b": keep-alive\n\n")
            await asyncio.sleep(0.3)
        await peer.say(chunk("hi", "stop") + DONE)

    assert await written(http, queued, call(first_byte=1, between_chunks=0.2, total=10)) == "hi"


async def test_blank_lines_before_a_whole_reply_keep_it_alive(http: httpx.AsyncClient) -> None:
    async def queued(peer: Peer) -> None:
        await peer.start_stream("application/json")
        for _ in range(5):
            await peer.say(b"\n")
            await asyncio.sleep(0.3)
        await peer.say(chat_body())

    assert await written(http, queued, call(first_byte=1, between_chunks=0.2, total=10)) == "hello"


async def test_a_stream_that_is_done_but_never_closed_is_taken_at_once(http: httpx.AsyncClient) -> None:
    async def never_closes(peer: Peer) -> None:
        await peer.start_stream()
        await peer.say(chunk("hi", "stop") + DONE)
        await peer.closed.wait()

    started = time.monotonic()
    assert await written(http, never_closes, call(first_byte=5, between_chunks=5, total=10)) == "hi"
    assert time.monotonic() - started < 2


async def test_cancelling_in_mid_stream_closes_the_connection_at_once(http: httpx.AsyncClient) -> None:
    async def streams(peer: Peer) -> None:
        await peer.start_stream()
        while not peer.closed.is_set():
            await peer.say(chunk("."))
            await asyncio.sleep(0.05)

    async with raw_server(streams) as server:
        writer = OpenAIChatWriter(spec(server.url), KEY, Wire(http, "deepseek"))
        writing = asyncio.create_task(writer.write(MESSAGES, call(total=60)))
        await asyncio.sleep(0.3)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        await asyncio.wait_for(server.peers[0].closed.wait(), 1)


async def test_a_redirect_is_an_error_and_never_followed(http: httpx.AsyncClient) -> None:
    async def redirects(peer: Peer) -> None:
        await peer.reply(307, b"", location="http://127.0.0.1:1/elsewhere?key=secret")

    error, _ = await failed(http, redirects, call())
    assert error.fault is Fault.INVALID
    assert "http://127.0.0.1:1/elsewhere" in error.message
    assert "secret" not in error.message


async def test_a_refused_connection_is_unavailable_and_nothing_was_sent(http: httpx.AsyncClient) -> None:
    writer = OpenAIChatWriter(spec("http://127.0.0.1:1"), KEY, Wire(http, "deepseek"))
    with pytest.raises(ChannelError) as raised:
        await writer.write(MESSAGES, call())
    assert raised.value.fault is Fault.UNAVAILABLE
    assert not raised.value.sent
    assert raised.value.message == "cannot reach 127.0.0.1:1: connection refused"


async def test_a_connection_reset_after_the_request_is_unavailable_and_was_sent(http: httpx.AsyncClient) -> None:
    async def resets(peer: Peer) -> None:
        peer.writer.transport.abort()

    error, _ = await failed(http, resets, call())
    assert error.fault is Fault.UNAVAILABLE
    assert error.sent


async def test_a_reply_cut_in_the_middle_is_no_text(http: httpx.AsyncClient) -> None:
    async def cuts(peer: Peer) -> None:
        await peer.say(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n" + chat_body()[:40])

    error, _ = await failed(http, cuts, call())
    assert error.fault is Fault.UNAVAILABLE


async def test_an_endless_reply_is_refused_by_its_size(http: httpx.AsyncClient) -> None:
    async def floods(peer: Peer) -> None:
        await peer.start_stream("application/json")
        while not peer.closed.is_set():
            await peer.say(b"[" * 500_000)

    error, _ = await failed(http, floods, call(total=20))
    assert error.fault is Fault.GARBLED
    assert "larger than" in error.message


async def test_a_server_that_does_not_speak_http_is_unavailable(http: httpx.AsyncClient) -> None:
    async def babbles(peer: Peer) -> None:
        await peer.say(b"220 mail.example ESMTP\r\n")

    error, _ = await failed(http, babbles, call())
    assert error.fault is Fault.UNAVAILABLE


async def test_a_key_with_a_line_break_never_leaves(http: httpx.AsyncClient) -> None:
    writer = OpenAIChatWriter(spec("http://127.0.0.1:1"), "sk-one\r\nx: two", Wire(http, "deepseek"))
    with pytest.raises(ChannelError) as raised:
        await writer.write(MESSAGES, call())
    assert raised.value.fault in {Fault.INVALID, Fault.UNAVAILABLE}
    assert "sk-one" not in str(raised.value)


async def test_the_purchase_id_and_the_key_travel_in_headers(http: httpx.AsyncClient) -> None:
    async def answers(peer: Peer) -> None:
        await peer.reply(200, chat_body())

    async with raw_server(answers) as server:
        await OpenAIChatWriter(spec(server.url), KEY, Wire(http, "deepseek")).write(MESSAGES, call())
        head = server.peers[0].head.lower()
    assert "x-client-request-id: tenant/article/generate/0\r\n" in head
    assert f"authorization: bearer {KEY}\r\n".lower() in head
    assert "accept-encoding: identity\r\n" in head


async def _spans(http: httpx.AsyncClient, behaviour: Behaviour) -> ReadableSpan:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    async with raw_server(behaviour) as server:
        wire = Wire(http, "deepseek", secrets=("hunter2-hunter2",), tracer=provider.get_tracer("test"))
        request = HttpRequest("POST", f"{server.url}/v1/chat?key=hidden", {"Content-Type": "application/json"}, b"{}")
        with contextlib.suppress(ChannelError):
            await wire.exchange(request, call(), decode_chat)
    (span,) = exporter.get_finished_spans()
    return span


async def test_a_call_is_one_client_span_without_query_or_secret(http: httpx.AsyncClient) -> None:
    async def refuses(peer: Peer) -> None:
        await peer.reply(400, b'{"error":{"message":"no such thing as hunter2-hunter2"}}')

    span = await _spans(http, refuses)
    assert span.name == "HTTP POST"
    assert span.kind is trace.SpanKind.CLIENT
    assert span.attributes is not None
    assert span.attributes["http.request.method"] == "POST"
    assert span.attributes["server.address"] == "127.0.0.1"
    assert span.attributes["url.path"] == "/v1/chat"
    assert span.attributes["http.response.status_code"] == 400
    assert span.attributes["citeloop.channel"] == "deepseek"
    assert span.attributes["error.type"] == "invalid"
    assert span.status.status_code is trace.StatusCode.ERROR
    told = f"{span.attributes} {span.status.description} {[event.attributes for event in span.events]}"
    assert "hidden" not in told
    assert "hunter2" not in told


async def test_a_good_call_leaves_a_span_without_error(http: httpx.AsyncClient) -> None:
    async def answers(peer: Peer) -> None:
        await peer.reply(200, chat_body())

    span = await _spans(http, answers)
    assert span.status.status_code is trace.StatusCode.UNSET
    assert not span.events
