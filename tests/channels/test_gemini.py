"""Gemini's native dialect: byte offsets, redirects for sources, and every way in which it says no."""

from typing import Any

import httpx
import pytest

from citeloop.channels.engines.gemini import GeminiEngine
from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.writers.gemini import GeminiWriter
from citeloop.models.channel import ChannelSpec, Price
from citeloop.models.measure import Answer, Citation
from tests.channels.provider import Provider, stream
from tests.channels.settings import KEY, MESSAGES, call, spec

BASE = "https://api.example/v1beta"
REDIRECT = "https://vertexaisearch.cloud.google.com/grounding-api-redirect/"
USAGE = {
    "promptTokenCount": 100,
    "toolUsePromptTokenCount": 20,
    "cachedContentTokenCount": 60,
    "candidatesTokenCount": 30,
    "thoughtsTokenCount": 10,
}


def channel(**changes: object) -> ChannelSpec:
    return spec(BASE, dialect="gemini", model="gemini-3.8-flash", **{"stream": False, "provider": "gemini", **changes})


def candidate(*parts: dict[str, Any], finish: str | None = "STOP", grounding: object = None) -> dict[str, Any]:
    made: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}}
    if finish:
        made["finishReason"] = finish
    if grounding:
        made["groundingMetadata"] = grounding
    return {"candidates": [made], "modelVersion": "gemini-3.8-flash", "usageMetadata": USAGE, "responseId": "g-1"}


def chunk(uri: str, title: str) -> dict[str, Any]:
    return {"web": {"uri": uri, "title": title}}


def support(start: int, end: int, words: str, *indices: int) -> dict[str, Any]:
    segment = {"startIndex": start, "endIndex": end, "text": words}
    return {"segment": segment, "groundingChunkIndices": list(indices)}


def grounding(chunks: list[Any], supports: list[Any], queries: list[str] | None = None) -> dict[str, Any]:
    return {"groundingChunks": chunks, "groundingSupports": supports, "webSearchQueries": queries or ["q"]}


async def ask(body: object, **changes: object) -> Answer:
    using = channel(**changes)
    async with Provider(httpx.Response(200, json=body)) as provider:
        return await GeminiEngine(using, KEY, provider.wire(using)).ask("Which?", "en", call())


async def refused(response: httpx.Response) -> ChannelError:
    using = channel()
    async with Provider(response) as provider:
        with pytest.raises(ChannelError) as raised:
            await GeminiWriter(using, KEY, provider.wire(using)).write(MESSAGES, call())
    return raised.value


async def test_a_writer_asks_with_the_key_in_a_header_only() -> None:
    using = channel(extra={"generationConfig": {"temperature": 0.5}})
    async with Provider(httpx.Response(200, json=candidate({"text": "Tea."}))) as provider:
        done = await GeminiWriter(using, KEY, provider.wire(using)).write(MESSAGES, call())
        sent, request = provider.body(), provider.requests[0]
    assert str(request.url) == f"{BASE}/models/gemini-3.8-flash:generateContent"
    assert request.headers["x-goog-api-key"] == KEY
    assert sent["generationConfig"] == {"maxOutputTokens": 4000, "temperature": 0.5}
    assert sent["systemInstruction"] == {"parts": [{"text": MESSAGES.system}]}
    assert sent["contents"] == [{"role": "user", "parts": [{"text": MESSAGES.user}]}]
    assert "tools" not in sent
    assert (done.text, done.model, done.request_id) == ("Tea.", "gemini-3.8-flash", "g-1")
    assert (done.input_tokens, done.output_tokens) == (120, 40)
    assert (done.usage.cached_tokens, done.usage.reasoning_tokens) == (60, 10)


async def test_a_stream_is_put_together_and_thoughts_are_left_out() -> None:
    using = channel(stream=True)
    chunks = stream(
        candidate({"text": "I wonder", "thought": True}, finish=None),
        candidate({"text": "Te"}, finish=None),
        candidate({"text": "a."}),
    )
    async with Provider(chunks) as provider:
        done = await GeminiWriter(using, KEY, provider.wire(using)).write(MESSAGES, call())
    assert str(provider.requests[0].url).endswith(":streamGenerateContent?alt=sse")
    assert done.text == "Tea."


@pytest.mark.parametrize(
    ("body", "fault", "change"),
    [
        (candidate({"text": "half"}, finish="MAX_TOKENS"), Fault.GARBLED, "raise_max_tokens"),
        (candidate({"text": "half"}, finish="SAFETY"), Fault.REFUSED, ""),
        (candidate({"text": "half"}, finish="RECITATION"), Fault.REFUSED, "rephrase"),
        (candidate({"text": "half"}, finish="OTHER"), Fault.GARBLED, ""),
        (candidate({"text": "half"}, finish=None), Fault.GARBLED, ""),
        (candidate(), Fault.GARBLED, ""),
        (candidate({"text": "hm", "thought": True}), Fault.GARBLED, "raise_max_tokens_or_disable_thinking"),
        ({"promptFeedback": {"blockReason": "SAFETY"}}, Fault.REFUSED, ""),
        ({"usageMetadata": USAGE}, Fault.GARBLED, ""),
        ([{"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}],
         Fault.OVERLOADED, ""),
    ],
)  # fmt: skip
async def test_only_a_complete_text_is_taken(body: object, fault: Fault, change: str) -> None:
    error = await refused(httpx.Response(200, json=body))
    assert (error.fault, error.change) == (fault, change)


async def test_an_error_array_is_unwrapped() -> None:
    body = [{"error": {"code": 429, "message": "Resource has been exhausted", "status": "RESOURCE_EXHAUSTED"}}]
    assert (await refused(httpx.Response(429, json=body))).fault is Fault.RATE_LIMITED


async def test_offsets_count_bytes_and_marks_stand_behind_the_supported_words() -> None:
    words = "豆包很好，Kimi 也行。"
    end = len("豆包很好".encode())
    sources = [chunk("https://a.example/1", "A"), chunk("https://b.example/2", "B"), chunk("https://c.example/3", "C")]
    supports = [support(0, end, "豆包很好", 1), support(end + 3, end + 7, "Kimi", 0, 1)]
    answer = await ask(candidate({"text": words}, grounding=grounding(sources, supports, ["豆包", "Kimi"])))
    assert answer.text == "豆包很好[1]，Kimi[2][1] 也行。"
    assert [one.title for one in answer.cited] == ["B", "A"]
    assert [one.title for one in answer.retrieved] == ["A", "B", "C"]
    assert (answer.searched, answer.queries, answer.usage.searches) == (True, ("豆包", "Kimi"), 2)


async def test_a_source_that_supports_no_word_of_the_answer_is_not_cited() -> None:
    sources = [chunk("https://a.example/1", "A")]
    answer = await ask(candidate({"text": "Tea."}, grounding=grounding(sources, [support(90, 99, "coffee", 0)])))
    assert not answer.cited
    assert len(answer.retrieved) == 1


async def test_wrong_offsets_are_set_right_by_the_quoted_words() -> None:
    sources = [chunk("https://a.example/1", "A")]
    answer = await ask(candidate({"text": "Tea is hot."}, grounding=grounding(sources, [support(90, 99, "Tea", 0)])))
    assert answer.text == "Tea[1] is hot."


async def test_without_grounding_it_was_not_searched() -> None:
    answer = await ask(candidate({"text": "I think so."}))
    assert not answer.searched
    assert answer.usage.searches == 0


async def test_redirects_are_asked_where_they_lead_and_named_by_their_domain_otherwise() -> None:
    sources = [
        chunk(f"{REDIRECT}one", "a.example"),
        chunk(f"{REDIRECT}two", "b.example"),
        chunk(f"{REDIRECT}x", "Page"),
    ]
    answered = candidate({"text": "Tea."}, grounding=grounding(sources, [support(0, 4, "Tea.", 0, 1)]))

    def provider(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            return httpx.Response(200, json=answered)
        assert "x-goog-api-key" not in request.headers
        if request.url.path.endswith("/one"):
            return httpx.Response(302, headers={"location": "https://a.example/guide?x=1"})
        return httpx.Response(500)

    using = channel(price=Price(search=14_000, currency="USD"))
    async with Provider(provider) as fake:
        answer = await GeminiEngine(using, KEY, fake.wire(using)).ask("Which?", "en", call())
    assert answer.cited == (
        Citation(url="https://a.example/guide?x=1", title="a.example"),
        Citation(url="https://b.example/", title="b.example"),
    )
    assert answer.retrieved[2] == Citation(url=f"{REDIRECT}x", title="Page")
    assert answer.cost.micros == 14_000
    assert REDIRECT in answer.raw


async def test_an_engine_brings_google_search() -> None:
    using = channel()
    async with Provider(httpx.Response(200, json=candidate({"text": "Tea."}))) as fake:
        await GeminiEngine(using, KEY, fake.wire(using)).ask("Which?", "en", call())
        assert fake.body()["tools"] == [{"google_search": {}}]
