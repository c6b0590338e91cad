"""The Responses dialect: OpenAI, Ark with doubao_app, Perplexity's agent; queued replies are polled for."""

from typing import Any

import httpx
import pytest

from citeloop.channels.engines.openai_responses import OpenAIResponsesEngine
from citeloop.channels.errors import ChannelError, Fault, Remedy
from citeloop.channels.ports import Completion
from citeloop.channels.writers.openai_responses import OpenAIResponsesWriter
from citeloop.models.channel import ChannelSpec, Price
from citeloop.models.measure import Answer, Citation
from tests.channels.provider import Answer as Reply
from tests.channels.provider import Provider, stream
from tests.channels.settings import KEY, MESSAGES, call, spec

BASE = "https://api.example/v1"
A, B, C = (Citation(url=f"https://{name}.example/1", title=name.upper()) for name in "abc")
USAGE = {
    "input_tokens": 1000,
    "input_tokens_details": {"cached_tokens": 400},
    "output_tokens": 100,
    "output_tokens_details": {"reasoning_tokens": 30},
}


def channel(**changes: object) -> ChannelSpec:
    return spec(BASE, dialect="openai_responses", model="m", **{"stream": False, **changes})


def message(text: str, *annotations: dict[str, Any]) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": list(annotations)}
    return {"type": "message", "role": "assistant", "content": [part]}


def note(source: Citation) -> dict[str, Any]:
    return {"type": "url_citation", "url": source.url, "title": source.title, "start_index": 0, "end_index": 1}


def search(*sources: Citation, status: str = "completed", **action: object) -> dict[str, Any]:
    found = [{"type": "url", "url": one.url} for one in sources]
    return {"type": "web_search_call", "status": status, "action": {"type": "search", "sources": found, **action}}


def response(*output: dict[str, Any], status: str = "completed", **fields: object) -> dict[str, Any]:
    return {"id": "resp_1", "object": "response", "model": "m-1", "status": status, "output": list(output), **fields}


async def write(*replies: Reply, using: ChannelSpec | None = None) -> Completion:
    using = using or channel()
    async with Provider(*replies) as provider:
        return await OpenAIResponsesWriter(using, KEY, provider.wire(using)).write(MESSAGES, call(total=5))


async def ask(reply: dict[str, Any], **changes: object) -> Answer:
    using = channel(**changes)
    async with Provider(httpx.Response(200, json=reply)) as provider:
        return await OpenAIResponsesEngine(using, KEY, provider.wire(using)).ask("Which?", "en", call(total=5))


async def refused(reply: Reply, *, using: ChannelSpec | None = None) -> ChannelError:
    with pytest.raises(ChannelError) as raised:
        await write(reply, using=using)
    return raised.value


async def test_a_writer_asks_with_instructions_and_a_limit() -> None:
    using = channel(extra={"reasoning": {"effort": "low"}}, provider="openai")
    async with Provider(httpx.Response(200, json=response(message("Tea."), usage=USAGE))) as provider:
        done = await OpenAIResponsesWriter(using, KEY, provider.wire(using)).write(MESSAGES, call())
        sent = provider.body()
    assert provider.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert sent["instructions"] == MESSAGES.system
    assert (sent["input"], sent["max_output_tokens"], sent["store"]) == (MESSAGES.user, 4000, False)
    assert sent["reasoning"] == {"effort": "low"}
    assert "stream" not in sent
    assert "tools" not in sent
    assert (done.text, done.model, done.request_id) == ("Tea.", "m-1", "resp_1")
    assert (done.usage.cached_tokens, done.usage.reasoning_tokens) == (400, 30)


async def test_a_stream_is_taken_from_its_last_event() -> None:
    done = await write(
        stream(
            {"type": "response.created", "response": response(status="in_progress")},
            {"type": "response.output_text.delta", "delta": "T"},
            {"type": "response.completed", "response": response(message("Tea."), usage=USAGE)},
        ),
        using=channel(stream=True),
    )
    assert (done.text, done.input_tokens) == ("Tea.", 1000)


async def test_a_stream_whose_last_event_left_the_output_out_is_put_together() -> None:
    whole = response(usage=USAGE)
    by_items = stream(
        {"type": "response.output_item.done", "item": message("Tea.")},
        {"type": "response.completed", "response": whole},
    )
    by_deltas = stream(
        {"type": "response.output_text.delta", "delta": "Te"},
        {"type": "response.output_text.delta", "delta": "a."},
        {"type": "response.completed", "response": whole},
    )
    assert [(await write(one)).text for one in (by_items, by_deltas)] == ["Tea.", "Tea."]


async def test_a_stream_that_breaks_off_or_fails_is_no_text() -> None:
    broken = await refused(stream({"type": "response.output_text.delta", "delta": "Te"}))
    assert broken.fault is Fault.GARBLED
    failed = response(status="failed", error={"code": "rate_limit_exceeded", "message": "slow down"})
    assert (await refused(stream({"type": "response.failed", "response": failed}))).fault is Fault.RATE_LIMITED
    perplexitys = stream({"type": "response.failed", "error": {"message": "no", "code": "insufficient_quota"}})
    assert (await refused(perplexitys)).fault is Fault.EXHAUSTED


async def test_a_queued_response_is_asked_for_until_it_is_there() -> None:
    queued, running = response(status="queued"), response(status="in_progress")
    using = channel()
    replies = (
        httpx.Response(200, json=queued),
        httpx.Response(200, json=running),
        httpx.Response(502, text="bad gateway"),
        httpx.Response(200, json=response(message("Tea."))),
    )
    async with Provider(*replies) as provider:
        done = await OpenAIResponsesWriter(using, KEY, provider.wire(using)).write(MESSAGES, call(total=30))
    assert done.text == "Tea."
    assert [one.method for one in provider.requests] == ["POST", "GET", "GET", "GET"]
    assert provider.requests[1].url.path.endswith("/responses/resp_1")


async def test_a_queued_response_that_fails_is_not_asked_for_again() -> None:
    failed = response(status="failed", error={"code": "server_error", "message": "no"})
    with pytest.raises(ChannelError) as raised:
        await write(httpx.Response(200, json=response(status="queued")), httpx.Response(200, json=failed))
    assert raised.value.fault is Fault.UNAVAILABLE


async def test_a_response_that_stays_queued_times_out_within_the_calls_total() -> None:
    with pytest.raises(ChannelError) as raised:
        await OpenAIResponsesWriter(channel(), KEY, Provider(queued()).wire(channel())).write(MESSAGES, call(total=2))
    assert raised.value.fault is Fault.TIMED_OUT


def queued() -> httpx.Response:
    return httpx.Response(200, json=response(status="queued"))


@pytest.mark.parametrize(
    ("reply", "fault", "change"),
    [
        (response(message("half"), status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
         Fault.GARBLED, "raise_max_tokens"),
        (response({"type": "reasoning"}, status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
         Fault.GARBLED, "raise_max_tokens_or_disable_thinking"),
        (response(message("x"), status="incomplete", incomplete_details={"reason": "content_filter"}),
         Fault.REFUSED, ""),
        (response({"type": "message", "content": [{"type": "refusal", "refusal": "I can't"}]}), Fault.REFUSED, ""),
        (response({"type": "reasoning", "summary": [{"text": "I think"}]}), Fault.GARBLED,
         "raise_max_tokens_or_disable_thinking"),
        (response(message("half"), status="requires_action"), Fault.GARBLED, ""),
        (response(message(" ")), Fault.GARBLED, ""),
        ({"id": "r", "object": "response", "status": "completed"}, Fault.GARBLED, ""),
    ],
)  # fmt: skip
async def test_only_a_complete_text_is_taken(reply: dict[str, Any], fault: Fault, change: str) -> None:
    error = await refused(httpx.Response(200, json=reply))
    assert (error.fault, error.change) == (fault, change)


async def test_a_cancelled_response_is_to_be_given_anew() -> None:
    error = await refused(httpx.Response(200, json=response(status="cancelled")))
    assert (error.fault, error.remedy) == (Fault.UNAVAILABLE, Remedy.RESUBMIT)


async def test_openais_annotations_are_cited_and_its_sources_retrieved() -> None:
    answer = await ask(response(search(A, B, queries=["tea", "tea"]), message("A is best.", note(A)), usage=USAGE))
    assert answer.searched
    assert answer.cited == (A,)
    assert [one.url for one in answer.retrieved] == [A.url, B.url]
    assert answer.queries == ("tea",)
    assert (answer.model, answer.usage.searches) == ("m-1", 1)
    assert '"web_search_call"' in answer.raw


@pytest.mark.parametrize("output", [(), (search(A, status="failed"),)])
async def test_no_search_or_a_failed_one_is_not_searched(output: tuple[dict[str, Any], ...]) -> None:
    answer = await ask(response(*output, message("I think so.")))
    assert not answer.searched
    assert answer.usage.searches == 0


async def test_opening_a_page_shows_that_there_was_a_search_but_is_not_billed_as_one() -> None:
    opened = {"type": "web_search_call", "status": "completed", "action": {"type": "open_page", "url": A.url}}
    answer = await ask(response(opened, message("So it is.")))
    assert answer.searched
    assert (answer.usage.searches, answer.retrieved[0].url) == (0, A.url)


async def test_doubaos_marks_count_every_result_repeats_and_gaps_included() -> None:
    def card(source: Citation | None) -> dict[str, Any]:
        return {"text_card": {"url": source.url, "title": source.title} if source else {"title": "no address"}}

    blocks = [
        {"type": "reasoning_text", "text": "let me think"},
        {"type": "search", "queries": ["最好的茶"], "results": [card(A), card(A), card(None)]},
        {"type": "search", "queries": ["茶 推荐"], "results": [card(B), card(C)]},
        {"type": "output_text", "text": "B 更好[4]，A 次之[1]。"},
    ]
    usage = {**USAGE, "tool_usage": {"web_search": 3}}
    answer = await ask(response({"type": "doubao_app_call", "status": "completed", "blocks": blocks}, usage=usage))
    assert answer.text == "B 更好[4]，A 次之[1]。"
    assert answer.cited == (B, A)
    assert answer.retrieved == (A, B, C)
    assert answer.queries == ("最好的茶", "茶 推荐")
    assert answer.usage.searches == 3


async def test_perplexitys_agent_names_its_results_and_its_own_price() -> None:
    results = [{"id": 1, "url": A.url, "title": "A"}, {"id": 2, "url": B.url, "title": "B"}]
    usage = {
        "input_tokens": 10,
        "output_tokens": 20,
        "cost": {"currency": "USD", "total_cost": 0.005123},
        "tool_calls_details": {"web_search": {"invocation": 2}},
    }
    reply = response(
        {"type": "search_results", "queries": ["q"], "results": results}, message("A.", note(A)), usage=usage
    )
    answer = await ask(reply, price=None)
    assert answer.cited == (A,)
    assert answer.retrieved == (A, B)
    assert (answer.cost.micros, answer.cost.currency, answer.usage.searches) == (5123, "USD", 2)
    priced = await ask(reply, price=Price(call=7, currency="CNY"))
    assert (priced.cost.micros, priced.cost.currency) == (7, "CNY")


@pytest.mark.parametrize(
    ("provider", "tools"),
    [
        ("openai", [{"type": "web_search"}]),
        ("ark", [{"type": "web_search"}]),
        ("perplexity", [{"type": "web_search"}]),
        ("", None),
    ],
)
async def test_an_engine_searches_as_its_provider_does(provider: str, tools: list[object] | None) -> None:
    using = channel(provider=provider)
    async with Provider(httpx.Response(200, json=response(message("Tea.")))) as fake:
        await OpenAIResponsesEngine(using, KEY, fake.wire(using)).ask("Which?", "en", call())
        assert fake.body().get("tools") == tools


async def test_the_operators_tools_take_the_place_of_the_providers() -> None:
    app: list[object] = [{"type": "doubao_app", "feature": {"ai_search": {"type": "enabled"}}}]
    using = channel(provider="ark", extra={"tools": app})
    async with Provider(httpx.Response(200, json=response(message("Tea.")))) as fake:
        await OpenAIResponsesEngine(using, KEY, fake.wire(using)).ask("Which?", "en", call())
        assert fake.body()["tools"] == app
