"""Each dialect's stream over a real connection, in pieces that respect no event's borders."""

import asyncio
import json
from collections.abc import Callable

import httpx
import pytest

from citeloop.channels import writers
from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.wire import Wire
from tests.channels.servers import Behaviour, Peer, raw_server
from tests.channels.settings import DONE, KEY, MESSAGES, call, chunk, spec


def events(*payloads: object) -> bytes:
    return b"".join(f"data: {json.dumps(one, ensure_ascii=False)}\r\n\r\n".encode() for one in payloads)


def candidate(text: str, finish: str | None = None) -> dict[str, object]:
    return {"candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": finish}]}


def output(text: str, finish: str) -> dict[str, object]:
    return {"output": {"choices": [{"message": {"content": text}, "finish_reason": finish}]}}


RESPONSE = {
    "id": "r",
    "status": "completed",
    "output": [{"type": "message", "content": [{"type": "output_text", "text": "绿茶很好。"}]}],
}
STREAMS = {
    "openai_chat": chunk("绿茶") + b": keep-alive\n\n" + chunk("很好。", "stop") + DONE,
    "openai_responses": events({"type": "response.created"}, {"type": "response.completed", "response": RESPONSE}),
    "anthropic_messages": events(
        {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 1}}},
        {"type": "ping"},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "绿茶"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "很好。"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ),
    "gemini": events(candidate("绿茶"), candidate("很好。", "STOP")),
    "dashscope": b"id:1\nevent:result\n:HTTP_STATUS/200\n" + events(output("绿茶", "null"), output("很好。", "stop")),
}


def saying(data: bytes, cut: Callable[[bytes], list[bytes]]) -> Behaviour:
    async def behave(peer: Peer) -> None:
        await peer.start_stream()
        for piece in cut(data):
            await peer.say(piece)
            await asyncio.sleep(0.005)

    return behave


async def written(url: str, dialect: str) -> str:
    channel = spec(url, dialect=dialect)
    async with httpx.AsyncClient(trust_env=False) as http:
        writer = writers.DIALECTS[dialect](channel, KEY, Wire(http, channel.name, secrets=(KEY,)))
        return (await writer.write(MESSAGES, call(first_byte=2, between_chunks=2, total=10))).text


@pytest.mark.parametrize("dialect", STREAMS)
async def test_a_stream_in_pieces_of_seven_bytes_is_the_whole_text(dialect: str) -> None:
    data = STREAMS[dialect]
    pieces = [data[start : start + 7] for start in range(0, len(data), 7)]
    async with raw_server(saying(data, lambda _: pieces)) as server:
        assert await written(server.url, dialect) == "绿茶很好。"


@pytest.mark.parametrize("dialect", STREAMS)
async def test_a_stream_that_is_cut_off_is_no_text(dialect: str) -> None:
    data = STREAMS[dialect]
    async with raw_server(saying(data, lambda whole: [whole[: len(whole) * 2 // 3]])) as server:
        with pytest.raises(ChannelError) as raised:
            await written(server.url, dialect)
    assert raised.value.fault is Fault.GARBLED


def test_every_dialect_that_writes_streams_here() -> None:
    assert set(STREAMS) == set(writers.DIALECTS)
