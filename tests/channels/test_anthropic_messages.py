"""The Anthropic Messages dialect: turns, pauses, citations, and searches that fail inside a good reply."""

import json
from typing import Any

import httpx
import pytest

from citeloop.channels.engines.anthropic_messages import AnthropicMessagesEngine
from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.ports import Completion
from citeloop.channels.writers.anthropic_messages import AnthropicMessagesWriter
from citeloop.models.channel import ChannelSpec, Price
from citeloop.models.measure import Answer, Citation
from tests.channels.provider import Answer as Reply
from tests.channels.provider import Provider, stream
from tests.channels.settings import KEY, MESSAGES, call, spec

BASE = "https://api.example/v1"
A, B = Citation(url="https://a.example/1", title="A"), Citation(url="https://b.example/2", title="B")
USAGE = {
    "input_tokens": 100,
    "cache_read_input_tokens": 800,
    "cache_creation_input_tokens": 50,
    "output_tokens": 40,
    "server_tool_use": {"web_search_requests": 2},
}


def channel(**changes: object) -> ChannelSpec:
    return spec(BASE, dialect="anthropic_messages", model="m", **{"stream": False, **changes})


def text(words: str, *sources: Citation) -> dict[str, Any]:
    notes = [{"type": "web_search_result_location", "url": one.url, "title": one.title} for one in sources]
    return {"type": "text", "text": words, **({"citations": notes} if notes else {})}


def searching(query: str) -> dict[str, Any]:
    return {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": query}}


def results(*sources: Citation) -> dict[str, Any]:
    found = [{"type": "web_search_result", "url": one.url, "title": one.title} for one in sources]
    return {"type": "web_search_tool_result", "tool_use_id": "s1", "content": found}


def failed_search(code: str) -> dict[str, Any]:
    content = {"type": "web_search_tool_result_error", "error_code": code}
    return {"type": "web_search_tool_result", "tool_use_id": "s1", "content": content}


def turn(*content: dict[str, Any], stop: str = "end_turn", usage: object = USAGE) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "model": "m-1",
        "content": list(content),
        "stop_reason": stop,
        "usage": usage,
    }


def grown(index: int, kind: str, **piece: object) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **piece}}


async def write(*replies: Reply, using: ChannelSpec | None = None) -> Completion:
    using = using or channel()
    async with Provider(*replies) as provider:
        return await AnthropicMessagesWriter(using, KEY, provider.wire(using)).write(MESSAGES, call())


async def ask(*replies: Reply, **changes: object) -> Answer:
    using = channel(**changes)
    async with Provider(*replies) as provider:
        return await AnthropicMessagesEngine(using, KEY, provider.wire(using)).ask("Which?", "en", call())


async def refused(reply: dict[str, Any]) -> ChannelError:
    with pytest.raises(ChannelError) as raised:
        await ask(httpx.Response(200, json=reply))
    return raised.value


async def test_a_writer_asks_as_the_api_wants_it() -> None:
    using = channel(extra={"thinking": "disabled"})
    async with Provider(httpx.Response(200, json=turn(text("Tea.")))) as provider:
        done = await AnthropicMessagesWriter(using, KEY, provider.wire(using)).write(MESSAGES, call())
        sent, headers = provider.body(), provider.requests[0].headers
    assert (headers["x-api-key"], headers["anthropic-version"]) == (KEY, "2023-06-01")
    assert "authorization" not in headers
    assert (sent["system"], sent["max_tokens"]) == (MESSAGES.system, 4000)
    assert sent["messages"] == [{"role": "user", "content": MESSAGES.user}]
    assert sent["thinking"] == {"type": "disabled"}
    assert "tools" not in sent
    assert (done.text, done.model, done.request_id) == ("Tea.", "m-1", "msg_1")


async def test_tokens_of_the_cache_are_part_of_the_input_at_their_own_price() -> None:
    price = Price(input=4_000_000, cached=200_000, cache_write=5_000_000, output=20_000_000, currency="USD")
    done = await write(httpx.Response(200, json=turn(text("Tea."))), using=channel(price=price))
    assert (done.input_tokens, done.usage.cached_tokens, done.usage.cache_written_tokens) == (950, 800, 50)
    assert done.cost.micros == 100 * 4 + 160 + 50 * 5 + 40 * 20


async def test_a_stream_is_put_together_block_by_block() -> None:
    done = await ask(
        stream(
            {"type": "message_start", "message": {"id": "msg_1", "model": "m-1", "usage": {"input_tokens": 9}}},
            {"type": "ping"},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
            grown(0, "thinking_delta", thinking="hm"),
            {"type": "content_block_start", "index": 1, "content_block": {"type": "server_tool_use", "input": {}}},
            grown(1, "input_json_delta", partial_json='{"que'),
            grown(1, "input_json_delta", partial_json='ry":"q"}'),
            {"type": "content_block_start", "index": 2, "content_block": results(A, B)},
            {"type": "content_block_start", "index": 3, "content_block": {"type": "text", "text": ""}},
            grown(3, "text_delta", text="Tea"),
            grown(3, "citations_delta", citation={"url": A.url, "title": "A"}),
            grown(3, "text_delta", text="."),
            {"type": "content_block_stop", "index": 3},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}},
            {"type": "message_stop"},
        ),
        stream=True,
    )  # fmt: skip
    assert done.text == "Tea.[1]"
    assert (done.cited, done.retrieved, done.queries) == ((A,), (A, B), ("q",))
    assert (done.usage.input_tokens, done.usage.output_tokens) == (9, 7)


async def test_a_stream_that_breaks_off_is_garbled_and_an_error_in_it_is_judged() -> None:
    start = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "half"}}
    with pytest.raises(ChannelError) as raised:
        await write(stream(start))
    assert raised.value.fault is Fault.GARBLED
    overloaded = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    with pytest.raises(ChannelError) as raised:
        await write(stream(start, overloaded))
    assert raised.value.fault is Fault.OVERLOADED


@pytest.mark.parametrize(
    ("reply", "fault", "change"),
    [
        (turn(text("half"), stop="max_tokens"), Fault.GARBLED, "raise_max_tokens"),
        (turn({"type": "thinking", "thinking": "hm"}, stop="max_tokens"), Fault.GARBLED,
         "raise_max_tokens_or_disable_thinking"),
        (turn(text("half"), stop="model_context_window_exceeded"), Fault.GARBLED, "shorten_input"),
        (turn(text("I can't."), stop="refusal"), Fault.REFUSED, ""),
        (turn(text("half"), stop="tool_use"), Fault.GARBLED, ""),
        (turn(text("half"), stop=""), Fault.GARBLED, ""),
        (turn(), Fault.GARBLED, ""),
        (turn({"type": "thinking", "thinking": "hm"}), Fault.GARBLED, "raise_max_tokens_or_disable_thinking"),
        (turn(failed_search("too_many_requests"), text("I could not search.")), Fault.RATE_LIMITED, ""),
        (turn(failed_search("unavailable"), text("I could not search.")), Fault.UNAVAILABLE, ""),
        (turn(failed_search("query_too_long"), text("I could not search.")), Fault.GARBLED, ""),
    ],
)  # fmt: skip
async def test_only_a_complete_text_whose_search_worked_is_taken(
    reply: dict[str, Any], fault: Fault, change: str
) -> None:
    error = await refused(reply)
    assert (error.fault, error.change) == (fault, change)


async def test_a_search_too_many_after_good_ones_is_still_an_answer() -> None:
    reply = turn(searching("q"), results(A), failed_search("max_uses_exceeded"), text("A."))
    answer = await ask(httpx.Response(200, json=reply))
    assert answer.searched
    assert answer.retrieved == (A,)


async def test_marks_stand_behind_the_words_that_a_source_supports() -> None:
    reply = turn(
        text("First. "),
        searching("tea"),
        results(A, B),
        text("B leads", B),
        text(", then "),
        text("A", A, B),
        text("."),
    )
    answer = await ask(httpx.Response(200, json=reply))
    assert answer.text == "First. B leads[1], then A[2][1]."
    assert answer.cited == (B, A)
    assert (answer.queries, answer.usage.searches) == (("tea",), 2)


async def test_an_answer_without_a_result_block_was_not_searched() -> None:
    answer = await ask(httpx.Response(200, json=turn(text("I think so."), usage={"input_tokens": 1})))
    assert not answer.searched
    assert answer.usage.searches == 0


async def test_a_search_that_found_nothing_is_still_a_search() -> None:
    answer = await ask(httpx.Response(200, json=turn(searching("q"), results(), text("Nothing."))))
    assert answer.searched
    assert not answer.retrieved


async def test_a_paused_turn_goes_on_with_its_own_words_and_both_are_paid() -> None:
    first = turn(text("Let me see. "), searching("tea"), results(A), stop="pause_turn")
    using = channel(price=Price(call=10, search=1))
    async with Provider(httpx.Response(200, json=first), httpx.Response(200, json=turn(text("A.", A)))) as provider:
        answer = await AnthropicMessagesEngine(using, KEY, provider.wire(using)).ask("Which?", "en", call())
        again = provider.body(1)["messages"]
    assert answer.text == "Let me see. A.[1]"
    assert (answer.cited, answer.retrieved, answer.searched) == ((A,), (A,), True)
    assert (answer.usage.input_tokens, answer.usage.searches) == (1900, 4)
    assert [one["role"] for one in again] == ["user", "assistant"]
    assert again[1]["content"] == first["content"]
    ids = [one.headers["x-client-request-id"] for one in provider.requests]
    assert len(set(ids)) == 2


async def test_a_model_that_only_pauses_is_given_up() -> None:
    paused = httpx.Response(200, json=turn(text("wait "), stop="pause_turn"))
    async with Provider(paused) as provider:
        with pytest.raises(ChannelError) as raised:
            await AnthropicMessagesWriter(channel(), KEY, provider.wire(channel())).write(MESSAGES, call())
    assert raised.value.fault is Fault.GARBLED
    assert len(provider.requests) == 5


@pytest.mark.parametrize("provider", ["anthropic", "deepseek"])
async def test_an_engine_brings_the_search_tool(provider: str) -> None:
    using = channel(provider=provider)
    async with Provider(httpx.Response(200, json=turn(text("Tea.")))) as fake:
        await AnthropicMessagesEngine(using, KEY, fake.wire(using)).ask("Which?", "en", call())
        sent = fake.body()
    assert sent["tools"] == [{"type": "web_search_20250305", "name": "web_search", "max_uses": 5}]
    assert sent["max_tokens"] == 4096
    assert json.dumps(sent["messages"]) == json.dumps([{"role": "user", "content": "Which?"}])
