"""The chat dialect: what is asked, what counts as an article, what it costs, and what an engine cites."""

import json
from collections.abc import AsyncIterator, Callable

import httpx
import pytest

from citeloop.channels.engines.openai_chat import OpenAIChatEngine
from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.ports import Completion, Messages
from citeloop.channels.wire import Wire
from citeloop.channels.writers.openai_chat import OpenAIChatWriter, chat_request
from citeloop.models.channel import ChannelSpec, Price
from citeloop.models.measure import Answer, Citation
from tests.channels.settings import DONE, KEY, MESSAGES, call, chat_body, chunk, spec

BASE = "https://api.example/v1"
EVENTS = {"content-type": "text/event-stream"}
Clients = Callable[[httpx.Response], httpx.AsyncClient]


@pytest.fixture
async def client_for() -> AsyncIterator[Clients]:
    made: list[httpx.AsyncClient] = []

    def build(response: httpx.Response) -> httpx.AsyncClient:
        made.append(httpx.AsyncClient(transport=httpx.MockTransport(lambda _request: response)))
        return made[-1]

    yield build
    for client in made:
        await client.aclose()


async def write(client: httpx.AsyncClient, channel: ChannelSpec | None = None) -> Completion:
    channel = channel or spec(BASE)
    return await OpenAIChatWriter(channel, KEY, Wire(client, channel.name, secrets=(KEY,))).write(MESSAGES, call())


async def ask(client: httpx.AsyncClient) -> Answer:
    channel = spec(BASE, price=Price(call=5_000, currency="USD"))
    return await OpenAIChatEngine(channel, KEY, Wire(client, channel.name)).ask("Which one?", "en", call())


async def refusal(client: httpx.AsyncClient) -> ChannelError:
    with pytest.raises(ChannelError) as raised:
        await write(client)
    return raised.value


def sent(channel: ChannelSpec, max_tokens: int | None = 10) -> dict[str, object]:
    request = chat_request(channel, KEY, [{"role": "user", "content": "hi"}], max_tokens=max_tokens)
    body = json.loads(request.body)
    assert isinstance(body, dict)
    return body


async def test_a_whole_reply_is_a_completion_with_its_cost(client_for: Clients) -> None:
    done = await write(client_for(httpx.Response(200, content=chat_body(), headers={"x-request-id": "r-1"})))
    assert (done.text, done.model, done.request_id) == ("hello", "m", "r-1")
    assert (done.input_tokens, done.output_tokens) == (100, 50)
    assert done.cost.micros == 200 + 400
    assert done.cost.currency == "CNY"


async def test_a_streamed_reply_is_put_together_with_its_usage(client_for: Clients) -> None:
    usage = b'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}\n\n'
    stream = chunk("你") + chunk("好") + chunk("", "stop") + usage + DONE
    done = await write(client_for(httpx.Response(200, content=stream, headers=EVENTS)))
    assert (done.text, done.input_tokens, done.output_tokens) == ("你好", 3, 1)


async def test_line_separators_inside_the_text_do_not_cut_the_stream(client_for: Clients) -> None:
    payload = {"choices": [{"index": 0, "delta": {"content": "a\u2028b\x85c"}, "finish_reason": "stop"}]}
    stream = f"data: {json.dumps(payload, ensure_ascii=False)}\n\n".encode()
    done = await write(client_for(httpx.Response(200, content=stream, headers=EVENTS)))
    assert done.text == "a\u2028b\x85c"


async def test_thinking_is_never_the_article(client_for: Clients) -> None:
    body = chat_body("<think>first I plan</think>\nThe article.")
    assert (await write(client_for(httpx.Response(200, content=body)))).text == "The article."
    error = await refusal(client_for(httpx.Response(200, content=chat_body("<think>and on and on", "stop"))))
    assert (error.fault, error.change) == (Fault.GARBLED, "raise_max_tokens_or_disable_thinking")


async def test_a_whole_message_beside_the_deltas_is_not_taken_twice(client_for: Clients) -> None:
    last = {"choices": [{"index": 0, "delta": {}, "message": {"content": "Tea."}, "finish_reason": "stop"}]}
    stream = chunk("Te") + chunk("a.") + f"data: {json.dumps(last)}\n\n".encode() + DONE
    assert (await write(client_for(httpx.Response(200, content=stream, headers=EVENTS)))).text == "Tea."


async def test_a_truncated_text_is_garbled(client_for: Clients) -> None:
    error = await refusal(client_for(httpx.Response(200, content=chat_body("half", "length"))))
    assert error.fault is Fault.GARBLED
    assert error.message.startswith("truncated")


async def test_a_stream_that_ends_without_a_reason_is_garbled(client_for: Clients) -> None:
    error = await refusal(client_for(httpx.Response(200, content=chunk("half"), headers=EVENTS)))
    assert error.fault is Fault.GARBLED
    assert "not finished" in error.message


@pytest.mark.parametrize(
    ("finish", "fault"),
    [
        ("content_filter", Fault.REFUSED),
        ("sensitive", Fault.REFUSED),
        ("insufficient_system_resource", Fault.OVERLOADED),
        ("network_error", Fault.UNAVAILABLE),
        ("tool_calls", Fault.GARBLED),
        (None, Fault.GARBLED),
    ],
)
async def test_only_a_text_that_came_to_its_end_is_taken(client_for: Clients, finish: str | None, fault: Fault) -> None:
    assert (await refusal(client_for(httpx.Response(200, content=chat_body("half", finish))))).fault is fault


async def test_a_whole_reply_to_a_streamed_request_is_taken(client_for: Clients) -> None:
    response = httpx.Response(200, content=chat_body(), headers=EVENTS)
    assert (await write(client_for(response))).text == "hello"


async def test_the_key_never_stands_in_an_error(client_for: Clients) -> None:
    body = json.dumps({"error": {"message": f"bad key {KEY} in\nBearer {KEY}", "code": "invalid_api_key"}})
    error = await refusal(client_for(httpx.Response(401, text=body, headers={"x-request-id": KEY})))
    assert error.fault is Fault.UNAUTHORIZED
    assert KEY not in f"{error} {error.request_id} {error.args}"
    assert "\n" not in error.message


async def test_a_long_error_is_cut(client_for: Clients) -> None:
    error = await refusal(client_for(httpx.Response(500, text="word " * 1000)))
    assert len(error.message) <= 300


def test_a_stream_asks_for_its_usage() -> None:
    body = sent(spec(BASE))
    assert (body["stream"], body["stream_options"]) == (True, {"include_usage": True})
    assert "stream_options" not in sent(spec(BASE, extra={"include_usage": False}))
    assert "stream" not in sent(spec(BASE, stream=False))


def test_openai_itself_gets_max_completion_tokens_and_others_what_they_know() -> None:
    assert sent(spec("https://api.openai.com/v1"))["max_completion_tokens"] == 10
    assert sent(spec(BASE))["max_tokens"] == 10
    chosen = sent(spec(BASE, extra={"token_limit_field": "max_completion_tokens"}))
    assert chosen["max_completion_tokens"] == 10
    assert "token_limit_field" not in chosen


def test_extra_fields_are_sent_as_they_are_and_thinking_as_the_object_it_must_be() -> None:
    body = sent(spec(BASE, extra={"temperature": 0.7, "thinking": "disabled", "search_options": {"forced": True}}))
    assert (body["temperature"], body["search_options"]) == (0.7, {"forced": True})
    assert body["thinking"] == {"type": "disabled"}


def test_text_that_cannot_be_encoded_is_still_sent() -> None:
    request = chat_request(spec(BASE), KEY, [{"role": "user", "content": Messages(system="", user="a\ud800b").user}])
    assert b"a?b" in request.body


SONAR = {
    "citations": ["https://a.example/1", "https://b.example/2", "https://c.example/3"],
    "search_results": [
        {"title": "A", "url": "https://a.example/1"},
        {"title": "B", "url": "https://b.example/2"},
        {"title": "C", "url": "https://c.example/3"},
        {"title": "D", "url": "https://d.example/4"},
    ],
}
HUNYUAN = {
    "search_info": {
        "search_results": [
            {"index": 1, "title": "一", "url": "https://a.example/1"},
            {"index": 2, "title": "二", "url": "https://b.example/2"},
        ]
    }
}


async def test_sonars_marks_name_what_is_cited(client_for: Clients) -> None:
    answer = await ask(client_for(httpx.Response(200, content=chat_body("B leads[2], then A[1][2].", evidence=SONAR))))
    assert answer.searched
    assert [one.url for one in answer.cited] == ["https://b.example/2", "https://a.example/1"]
    assert answer.cited[0].title == "B"
    assert len(answer.retrieved) == 4
    assert (answer.cost.micros, answer.cost.currency) == (5_000, "USD")
    assert '"citations"' in answer.raw


async def test_sonar_without_marks_cites_its_list(client_for: Clients) -> None:
    answer = await ask(client_for(httpx.Response(200, content=chat_body("B leads.", evidence=SONAR))))
    assert [one.title for one in answer.cited] == ["A", "B", "C"]


async def test_sources_that_come_with_the_last_chunk_are_kept(client_for: Clients) -> None:
    last = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], **SONAR}
    stream = chunk("A[1]") + f"data: {json.dumps(last)}\n\n".encode() + DONE
    answer = await ask(client_for(httpx.Response(200, content=stream, headers=EVENTS)))
    assert [one.url for one in answer.cited] == ["https://a.example/1"]


@pytest.mark.parametrize("mark", ["[2](@ref)", "[2]", "[ref_2]", "[citation:2]", "^[2]^", "【2】"])
async def test_hunyuans_marks_name_what_is_cited(client_for: Clients, mark: str) -> None:
    answer = await ask(client_for(httpx.Response(200, content=chat_body(f"乙更好{mark}。", evidence=HUNYUAN))))
    assert answer.cited == (Citation(url="https://b.example/2", title="二"),)


async def test_hunyuan_without_marks_retrieved_but_cited_nothing(client_for: Clients) -> None:
    answer = await ask(client_for(httpx.Response(200, content=chat_body("乙更好。", evidence=HUNYUAN))))
    assert answer.searched
    assert not answer.cited
    assert len(answer.retrieved) == 2


async def test_openais_annotations_are_what_is_cited(client_for: Clients) -> None:
    note = {"type": "url_citation", "url_citation": {"url": "https://a.example/1", "title": "A", "start_index": 0}}
    body = json.loads(chat_body("A."))
    body["choices"][0]["message"]["annotations"] = [note, note]
    answer = await ask(client_for(httpx.Response(200, json=body)))
    assert answer.cited == (Citation(url="https://a.example/1", title="A"),)
    assert answer.searched


async def test_links_in_the_text_cite_what_was_retrieved_and_nothing_else(client_for: Clients) -> None:
    text = "See [A](https://a.example/1) and [mine](https://evil.example/)."
    answer = await ask(client_for(httpx.Response(200, content=chat_body(text, evidence=HUNYUAN))))
    assert [one.url for one in answer.cited] == ["https://a.example/1"]


@pytest.mark.parametrize("evidence", [{}, {"citations": [], "search_results": []}, {"citations": ["javascript:x"]}])
async def test_no_evidence_of_a_search_means_not_searched(client_for: Clients, evidence: dict[str, object]) -> None:
    answer = await ask(client_for(httpx.Response(200, content=chat_body("I think so [1].", evidence=evidence))))
    assert not answer.searched
    assert not answer.cited
