"""Kimi's search formula: a bounded loop of chat and search."""

import json
from typing import Any

import httpx
import pytest

from citeloop.channels.engines.kimi_search import KimiSearchEngine
from citeloop.channels.errors import ChannelError, Fault
from citeloop.models.channel import ChannelSpec
from citeloop.models.measure import Answer
from tests.channels.provider import Provider
from tests.channels.settings import KEY, call, chat_body, spec

TOOLS: dict[str, Any] = {"tools": [{"type": "function", "function": {"name": "web_search"}}]}
WANTED = {
    "id": "c1",
    "model": "m",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": "",
                "reasoning_content": "I must search",
                "tool_calls": [{"id": "t1", "function": {"name": "web_search", "arguments": '{"query": "茶"}'}}],
            },
        }
    ],
    "usage": {"prompt_tokens": 10, "completion_tokens": 5},
}


def fiber(**context: object) -> dict[str, Any]:
    return {"id": "f1", "object": "fiber", "status": "succeeded", "context": context}


class Kimi:
    """Answers each of the three addresses, and remembers the chats."""

    def __init__(self, *chats: bytes, searched: dict[str, Any] | None = None) -> None:
        self.chats = list(chats)
        self.searched = searched or fiber(
            encrypted_output="----ENC----", references=["https://a.example/1", {"url": "https://b.example/2"}]
        )
        self.asked: list[dict[str, Any]] = []
        self.searches: list[dict[str, Any]] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        assert request.headers["authorization"] == f"Bearer {KEY}"
        if request.url.path.endswith("/tools"):
            return httpx.Response(200, json=TOOLS)
        if request.url.path.endswith("/fibers"):
            self.searches.append(json.loads(request.content))
            return httpx.Response(200, json=self.searched)
        self.asked.append(json.loads(request.content))
        return httpx.Response(200, content=self.chats.pop(0) if len(self.chats) > 1 else self.chats[0])


def channel() -> ChannelSpec:
    return spec("https://api.example/v1", dialect="kimi_search", model="kimi-k3")


async def ask(kimi: Kimi) -> Answer:
    async with Provider(kimi) as provider:
        return await KimiSearchEngine(channel(), KEY, provider.wire(channel())).ask("哪个好？", "zh-CN", call())


async def test_a_search_goes_back_to_the_model_verbatim_and_its_references_were_retrieved() -> None:
    kimi = Kimi(json.dumps(WANTED).encode(), chat_body("A 更好，见 [A](https://a.example/1)。"))
    answer = await ask(kimi)
    assert answer.searched
    assert [one.url for one in answer.cited] == ["https://a.example/1"]
    assert [one.url for one in answer.retrieved] == ["https://a.example/1", "https://b.example/2"]
    assert answer.queries == ("茶",)
    assert (answer.usage.input_tokens, answer.usage.output_tokens, answer.usage.searches) == (110, 55, 1)
    assert kimi.searches == [{"name": "web_search", "arguments": '{"query": "茶"}'}]
    _, assistant, tool = kimi.asked[1]["messages"]
    assert assistant["reasoning_content"] == "I must search"
    assert tool == {"role": "tool", "tool_call_id": "t1", "content": "----ENC----"}


async def test_an_answer_without_a_search_was_not_searched() -> None:
    answer = await ask(Kimi(chat_body("I think so.")))
    assert not answer.searched
    assert not answer.retrieved


async def test_a_failed_search_is_no_answer() -> None:
    with pytest.raises(ChannelError) as raised:
        await ask(Kimi(json.dumps(WANTED).encode(), searched={"object": "fiber", "status": "failed", "context": {}}))
    assert raised.value.fault is Fault.UNAVAILABLE


async def test_a_model_that_only_searches_is_given_up() -> None:
    kimi = Kimi(json.dumps(WANTED).encode())
    with pytest.raises(ChannelError) as raised:
        await ask(kimi)
    assert raised.value.fault is Fault.GARBLED
    assert len(kimi.asked) <= 6
