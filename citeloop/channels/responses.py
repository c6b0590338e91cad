"""The Responses shape, decoded: OpenAI, Ark (web_search, doubao_app), Perplexity's agent, DashScope's form of it.

Shared by the writer and the answer engine of the `openai_responses` dialect. Pure.
"""

from dataclasses import dataclass, field

from pydantic import JsonValue

from citeloop.channels.chat import stated_cost
from citeloop.channels.citations import citation, distinct, listed, marked, strings
from citeloop.channels.endings import (
    COMPLETE,
    FILTERED,
    TRUNCATED,
    empty,
    ending,
    filtered,
    thought_only,
    truncated,
    unfinished,
)
from citeloop.channels.errors import ChannelError, Fault, Remedy
from citeloop.channels.foreign import at, count_at, first_count, items_at, text_at
from citeloop.channels.judging import fault, garbled, judge, pointless, request_id, unreadable
from citeloop.channels.reply import HttpReply, Shape, read_body
from citeloop.channels.said import Said
from citeloop.channels.streams import payloads
from citeloop.models.measure import Citation
from citeloop.models.usage import Usage

_PENDING = frozenset({"queued", "in_progress"})
_ENDED_BADLY = frozenset({"failed", "cancelled", "requires_action"})
_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed", "response.cancelled"})


@dataclass(frozen=True, slots=True)
class Pending:
    """Accepted and not finished: ask again for this id."""

    id: str


@dataclass(slots=True)
class _Output:
    """What the items of one reply hold. `sources` are Doubao's results in the order that its marks count."""

    text: list[str] = field(default_factory=list)
    refusal: str = ""
    thought: bool = False
    cited: list[Citation] = field(default_factory=list)
    retrieved: list[Citation] = field(default_factory=list)
    queries: list[JsonValue] = field(default_factory=list)
    sources: dict[int, Citation] = field(default_factory=dict)
    counted: int = 0
    searches: int = 0

    def take(self, item: JsonValue) -> None:
        kind = text_at(item, "type")
        if kind == "message":
            self._take_message(item)
        elif kind == "web_search_call":
            self._take_search(item)
        elif kind == "search_results":
            self.searches += max(1, len(strings(at(item, "queries"))))
            self.queries.extend(items_at(item, "queries"))
            self.retrieved.extend(listed(at(item, "results")))
        elif kind == "fetch_url_results":
            self.retrieved.extend(listed(at(item, "contents")))
        elif kind == "doubao_app_call":
            for block in items_at(item, "blocks"):
                self._take_block(block)
        elif kind == "reasoning":
            self.thought = True

    def _take_message(self, item: JsonValue) -> None:
        for part in items_at(item, "content"):
            self.text.append(text_at(part, "text") if text_at(part, "type") in {"output_text", "text"} else "")
            self.refusal += text_at(part, "refusal")
            self.cited.extend(listed(at(part, "annotations")))

    def _take_search(self, item: JsonValue) -> None:
        """A failed call is no evidence. Opening a page is no search of its own, but it shows that there was one."""
        if text_at(item, "status") == "failed":
            return
        action = at(item, "action")
        self.searches += text_at(action, "type") in {"search", ""}
        self.queries.extend(items_at(action, "queries"))
        self.queries.append(text_at(action, "query"))
        self.retrieved.extend(listed(at(action, "sources")))
        if opened := citation({"url": text_at(action, "url")}):
            self.retrieved.append(opened)

    def _take_block(self, block: JsonValue) -> None:
        kind = text_at(block, "type")
        if kind == "output_text":
            self.text.append(text_at(block, "text"))
        elif "search" in kind:
            self.searches += 1
            self.queries.extend(items_at(block, "queries"))
            for result in items_at(block, "results"):
                # The marks of the text count every result, repeats and those without an address included.
                self.counted += 1
                if source := citation(at(result, "text_card")):
                    self.sources[self.counted] = source
                    self.retrieved.append(source)
        elif "reasoning" in kind:
            self.thought = True


def decode_responses(reply: HttpReply) -> Said | Pending:
    """Raises ChannelError for everything that is neither a publishable text nor on its way to become one."""
    body = read_body(reply)
    if error := judge(reply, body):
        raise error
    if body.shape is Shape.EVENTS:
        return _settled(_streamed(body.raw, reply), reply)
    if not isinstance(body.json, dict):
        raise unreadable(reply, body, "a response")
    return _settled(body.json, reply)


def _streamed(raw: bytes, reply: HttpReply) -> dict[str, JsonValue]:
    """The response that the last event holds. Where its output was left out, the finished items take its place."""
    final: JsonValue = None
    items: list[JsonValue] = []
    deltas: list[str] = []
    for payload in payloads(raw, reply):
        kind = text_at(payload, "type")
        if kind in _ENDS:
            final = at(payload, "response")
        elif kind == "response.output_item.done":
            items.append(at(payload, "item"))
        elif kind == "response.output_text.delta":
            deltas.append(text_at(payload, "delta"))
    if not isinstance(final, dict):
        raise garbled(reply, "the stream ended before the response was complete")
    if not at(final, "output"):
        message: JsonValue = {"type": "message", "content": [{"type": "output_text", "text": "".join(deltas)}]}
        final = {**final, "output": items or [message]}
    return final


def _settled(response: dict[str, JsonValue], reply: HttpReply) -> Said | Pending:
    status = ending(response, "status")
    if status in _PENDING:
        identity = text_at(response, "id")
        if not identity:
            raise garbled(reply, f"the response is {status} but has no id to ask for")
        return Pending(identity)
    output = _Output()
    for item in items_at(response, "output"):
        output.take(item)
    text = "".join(output.text).strip()
    if problem := _problem(response, status, output, text, reply):
        raise problem
    cited = distinct(output.cited) or distinct(marked(text, output.sources))
    retrieved = distinct(output.retrieved)
    usage = _usage(at(response, "usage"), output.searches)
    return Said(
        text=text,
        model=text_at(response, "model")[:200],
        request_id=request_id(reply, response),
        usage=usage,
        cited=cited,
        retrieved=retrieved,
        queries=strings(output.queries),
        searched=bool(output.searches or cited or retrieved),
    )


def _problem(
    response: dict[str, JsonValue], status: str, output: _Output, text: str, reply: HttpReply
) -> ChannelError | None:
    reason = ending(response, "incomplete_details", "reason")
    problem: ChannelError | None = None
    if status in _ENDED_BADLY:
        problem = _ended_badly(status, reply)
    elif reason in FILTERED:
        problem = filtered(reply, reason)
    elif output.refusal and not text:
        problem = fault(Fault.REFUSED, reply, f"the model refused: {output.refusal}")
    elif not text and output.thought:
        problem = thought_only(reply)
    elif status == "incomplete":
        problem = _cut_short(reason, reply)
    elif not isinstance(at(response, "output"), list):
        problem = pointless(reply, response, "the reply holds no output")
    elif not text:
        problem = empty(reply)
    elif status and status not in COMPLETE:
        problem = unfinished(reply, "status", status)
    return problem


def _cut_short(reason: str, reply: HttpReply) -> ChannelError:
    if not reason or reason in TRUNCATED:
        return truncated(reply, reason)
    return garbled(reply, f"incomplete: {reason}")


def _ended_badly(status: str, reply: HttpReply) -> ChannelError:
    if status == "failed":
        return fault(Fault.UNAVAILABLE, reply, "the response failed without saying why")
    if status == "cancelled":
        return fault(Fault.UNAVAILABLE, reply, "the response was cancelled", remedy=Remedy.RESUBMIT)
    return garbled(reply, "the model asks for a tool that this product does not offer")


def _usage(usage: JsonValue, searches: int) -> Usage:
    """Searches as the provider bills them (Ark, Perplexity), else as the output shows them."""
    return Usage(
        input_tokens=count_at(usage, "input_tokens"),
        cached_tokens=first_count(
            usage, ("input_tokens_details", "cached_tokens"), ("input_tokens_details", "cache_read_input_tokens")
        ),
        cache_written_tokens=first_count(
            usage,
            ("input_tokens_details", "cache_write_tokens"),
            ("input_tokens_details", "cache_creation_input_tokens"),
        ),
        output_tokens=count_at(usage, "output_tokens"),
        reasoning_tokens=count_at(usage, "output_tokens_details", "reasoning_tokens"),
        searches=first_count(usage, ("tool_usage", "web_search"), ("tool_calls_details", "web_search", "invocation"))
        or searches,
        stated=stated_cost(usage),
    )
