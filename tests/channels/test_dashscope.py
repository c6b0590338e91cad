"""DashScope's native dialect: the form of it that names its sources."""

import json
from typing import Any

import httpx
import pytest

from citeloop.channels.engines.dashscope import DashScopeEngine
from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.writers.dashscope import DashScopeWriter
from citeloop.models.channel import ChannelSpec
from citeloop.models.measure import Answer
from tests.channels.provider import EVENTS, Provider
from tests.channels.settings import KEY, MESSAGES, call, spec

BASE = "https://dashscope.example/api/v1"
FOUND = [
    {"index": 1, "title": "一", "url": "https://a.example/1", "site_name": "S"},
    {"index": 2, "title": "二", "url": "https://b.example/2", "site_name": "S"},
]
USAGE = {
    "input_tokens": 90,
    "output_tokens": 9,
    "prompt_tokens_details": {"cached_tokens": 40},
    "output_tokens_details": {"reasoning_tokens": 3},
    "plugins": {"search": {"count": 2, "strategy": "max"}},
}


def channel(**changes: object) -> ChannelSpec:
    return spec(BASE, dialect="dashscope", model="qwen3-max", **{"stream": False, "provider": "dashscope", **changes})


def output(text: object, finish: str = "stop", **fields: object) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    choices = [{"finish_reason": finish, "message": message}]
    return {"output": {"choices": choices, **fields}, "usage": USAGE, "request_id": "r-1"}


async def ask(body: object) -> Answer:
    using = channel()
    async with Provider(httpx.Response(200, json=body)) as provider:
        return await DashScopeEngine(using, KEY, provider.wire(using)).ask("哪个好？", "zh-CN", call())


async def refused(response: httpx.Response) -> ChannelError:
    using = channel()
    async with Provider(response) as provider:
        with pytest.raises(ChannelError) as raised:
            await DashScopeWriter(using, KEY, provider.wire(using)).write(MESSAGES, call())
    return raised.value


async def test_an_engine_asks_for_sources_and_marks() -> None:
    using = channel(extra={"parameters": {"search_options": {"search_strategy": "max"}}})
    async with Provider(httpx.Response(200, json=output("茶。"))) as provider:
        await DashScopeEngine(using, KEY, provider.wire(using)).ask("哪个好？", "zh-CN", call())
        sent, request = provider.body(), provider.requests[0]
    assert request.url.path == "/api/v1/services/aigc/text-generation/generation"
    assert sent["parameters"]["enable_search"] is True
    assert sent["parameters"]["search_options"]["enable_source"] is True
    assert sent["parameters"]["search_options"]["search_strategy"] == "max"
    assert sent["input"]["messages"] == [{"role": "user", "content": "哪个好？"}]


async def test_marks_name_what_is_cited_and_read_like_everyone_elses() -> None:
    info = {"search_results": FOUND, "search_queries": ["茶"]}
    answer = await ask(output("乙更好[ref_2]。", search_info=info))
    assert answer.text == "乙更好[2]。"
    assert [one.title for one in answer.cited] == ["二"]
    assert [one.title for one in answer.retrieved] == ["一", "二"]
    assert (answer.searched, answer.queries, answer.usage.searches) == (True, ("茶",), 2)
    assert (answer.usage.cached_tokens, answer.usage.reasoning_tokens, answer.request_id) == (40, 3, "r-1")


async def test_without_search_info_it_was_not_searched() -> None:
    answer = await ask({**output("乙更好[ref_2]。"), "usage": {}})
    assert not answer.searched
    assert not answer.cited


async def test_a_stream_adds_up_and_its_word_null_is_no_end() -> None:
    using = channel(stream=True)
    events = [output("乙", "null", search_info={"search_results": FOUND}), output("更好[ref_1]。", "null"), output("")]
    body = "".join(f"id:1\nevent:result\n:HTTP_STATUS/200\ndata:{json.dumps(one)}\n\n" for one in events)
    async with Provider(httpx.Response(200, headers=EVENTS, content=body.encode())) as provider:
        answer = await DashScopeEngine(using, KEY, provider.wire(using)).ask("哪个好？", "zh-CN", call())
        assert provider.requests[0].headers["x-dashscope-sse"] == "enable"
        assert provider.body()["parameters"]["incremental_output"] is True
    assert (answer.text, answer.cited[0].title) == ("乙更好[1]。", "一")


async def test_the_multimodal_endpoint_takes_and_gives_parts() -> None:
    using = channel(extra={"endpoint": "multimodal-generation"})
    async with Provider(httpx.Response(200, json=output([{"text": "茶"}, {"text": "。"}]))) as provider:
        done = await DashScopeWriter(using, KEY, provider.wire(using)).write(MESSAGES, call())
        sent, request = provider.body(), provider.requests[0]
    assert request.url.path.endswith("/multimodal-generation/generation")
    assert sent["input"]["messages"][1] == {"role": "user", "content": [{"text": MESSAGES.user}]}
    assert "endpoint" not in sent
    assert done.text == "茶。"


async def test_the_older_text_form_is_read_too() -> None:
    body = {"output": {"text": "茶。", "finish_reason": "stop"}, "usage": USAGE}
    assert (await ask(body)).text == "茶。"


@pytest.mark.parametrize(
    ("response", "fault"),
    [
        (httpx.Response(200, json=output("half", "length")), Fault.GARBLED),
        (httpx.Response(200, json=output("half", "null")), Fault.GARBLED),
        (httpx.Response(200, json=output("x", "content_filter")), Fault.REFUSED),
        (httpx.Response(200, json=output("")), Fault.GARBLED),
        (httpx.Response(200, json={"request_id": "r"}), Fault.GARBLED),
        (httpx.Response(400, json={"code": "DataInspectionFailed", "message": "no"}), Fault.REFUSED),
        (httpx.Response(400, json={"code": "Arrearage", "message": "no"}), Fault.EXHAUSTED),
        (httpx.Response(429, json={"code": "Throttling.RateQuota", "message": "no"}), Fault.RATE_LIMITED),
    ],
)
async def test_only_a_complete_text_is_taken(response: httpx.Response, fault: Fault) -> None:
    assert (await refused(response)).fault is fault
