"""The OpenAI chat shape, decoded: one message and the evidence of a search, from a body or from a stream.

Shared by the writer and the answer engine of the `openai_chat` dialect. Pure: bytes in, reply or ChannelError out.
"""

import re
from dataclasses import dataclass, field

from pydantic import JsonValue

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
from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.foreign import at, count_at, first_count, items_at, text_at
from citeloop.channels.judging import fault, judge, pointless, request_id, unreadable
from citeloop.channels.reply import HttpReply, Shape, read_body
from citeloop.channels.streams import payloads
from citeloop.models.money import Money
from citeloop.models.usage import Usage

EVIDENCE = ("citations", "search_results", "search_info", "web_search", "references")
"""Top-level fields in which vendors put what they found: Perplexity, Perplexity, Hunyuan, GLM, Qianfan and Ark bots."""
_BROKEN = {
    "insufficient_system_resource": Fault.OVERLOADED,
    "overloaded": Fault.OVERLOADED,
    "network_error": Fault.UNAVAILABLE,
    "server_error": Fault.UNAVAILABLE,
    "error": Fault.UNAVAILABLE,
    "failed": Fault.UNAVAILABLE,
    "abort": Fault.UNAVAILABLE,
    "aborted": Fault.UNAVAILABLE,
    "cancelled": Fault.UNAVAILABLE,
    "timeout": Fault.TIMED_OUT,
}
_THOUGHT = re.compile(r"\A\s*<think>.*?(?:</think>|\Z)", re.DOTALL)
_LARGEST_COST = 1_000_000


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A complete, non-empty answer. `evidence` holds the vendor's own search fields, as they came."""

    text: str
    model: str
    request_id: str
    usage: Usage
    evidence: dict[str, JsonValue]
    annotations: tuple[JsonValue, ...]


@dataclass(slots=True)
class _Draft:
    """What has been gathered of a reply; `finish` is empty until the provider says why it stopped."""

    text: list[str] = field(default_factory=list)
    thought: bool = False
    refusal: str = ""
    finish: str = ""
    moderation: str = ""
    model: str = ""
    usage: JsonValue = None
    identity: str = ""
    choices_seen: bool = False
    filtered: bool = False
    evidence: dict[str, JsonValue] = field(default_factory=dict)
    annotations: list[JsonValue] = field(default_factory=list)

    def take(self, payload: JsonValue, part: str) -> None:
        """Add one body (`part` is message) or one chunk of a stream (delta)."""
        self.model = text_at(payload, "model") or self.model
        self.identity = self.identity or text_at(payload, "id")
        self.usage = at(payload, "usage") or self.usage
        for name in EVIDENCE:
            if value := at(payload, name):
                self.evidence[name] = value
        if at(payload, "prompt_filter_results") or at(payload, "content_filter_results"):
            self.filtered = True
        for choice in items_at(payload, "choices"):
            if count_at(choice, "index") == 0:
                self.choices_seen = True
                self._take_choice(choice, part)

    def _take_choice(self, choice: JsonValue, part: str) -> None:
        message = at(choice, part)
        if not message and not any(self.text):
            # Some gateways stream whole messages; Sonar repeats the whole text beside its deltas.
            message = at(choice, "message")
        self.text.append(_content(at(message, "content")))
        self.thought = self.thought or bool(text_at(message, "reasoning_content") or text_at(message, "reasoning"))
        self.refusal += text_at(message, "refusal")
        self.annotations.extend(items_at(message, "annotations"))
        self.finish = ending(choice, "finish_reason") or self.finish
        self.moderation = text_at(choice, "moderation_hit_type") or self.moderation
        for name in EVIDENCE:
            if value := at(message, name):
                self.evidence.setdefault(name, value)


def decode_chat(reply: HttpReply) -> ChatReply:
    """The answer in `reply`, streamed or whole. Raises ChannelError for everything that is not publishable."""
    body = read_body(reply)
    if error := judge(reply, body):
        raise error
    draft = _Draft()
    if body.shape is Shape.EVENTS:
        _take_stream(draft, body.raw, reply)
    elif isinstance(body.json, dict):
        draft.take(body.json, "message")
    else:
        raise unreadable(reply, body, "a chat reply")
    if not draft.choices_seen:
        raise _without_choices(body.json, reply)
    return _settled(draft, reply)


def _without_choices(payload: JsonValue, reply: HttpReply) -> ChannelError:
    error = pointless(reply, payload, "the reply has no choices")
    if error.fault is Fault.GARBLED and at(payload, "choices") == []:
        # Azure's way to say that the prompt was filtered.
        return fault(Fault.REFUSED, reply, "the reply has an empty list of choices, as content filters send it")
    return error


def _take_stream(draft: _Draft, raw: bytes, reply: HttpReply) -> None:
    for payload in payloads(raw, reply):
        draft.take(payload, "delta")
    if not draft.choices_seen and draft.filtered:
        raise fault(Fault.REFUSED, reply, "the prompt was filtered")


def _settled(draft: _Draft, reply: HttpReply) -> ChatReply:
    text = _THOUGHT.sub("", "".join(draft.text)).strip()
    if draft.refusal and not text:
        raise fault(Fault.REFUSED, reply, f"the model refused: {draft.refusal}")
    if draft.moderation:
        raise fault(Fault.REFUSED, reply, f"filtered: {draft.moderation}")
    if draft.finish in FILTERED:
        raise filtered(reply, draft.finish)
    if draft.finish in _BROKEN:
        raise fault(_BROKEN[draft.finish], reply, f"the provider gave up: {draft.finish}")
    if not text and (draft.thought or "".join(draft.text).strip()):
        raise thought_only(reply)
    if draft.finish in TRUNCATED:
        raise truncated(reply, draft.finish)
    if not text:
        raise empty(reply)
    if draft.finish not in COMPLETE:
        raise unfinished(reply, "finish_reason", draft.finish)
    return ChatReply(
        text=text,
        model=draft.model[:200],
        request_id=request_id(reply, {"id": draft.identity}),
        usage=usage_of(draft.usage),
        evidence=draft.evidence,
        annotations=tuple(draft.annotations),
    )


def stated_cost(usage: JsonValue) -> Money | None:
    """Perplexity's `usage.cost.total_cost`, in US dollars."""
    total = at(usage, "cost", "total_cost")
    if not isinstance(total, (int, float)) or isinstance(total, bool) or not 0 <= total <= _LARGEST_COST:
        return None
    return Money(micros=round(total * 1_000_000), currency="USD")


def usage_of(usage: JsonValue) -> Usage:
    """Each count where its vendor puts it; the first that is there counts (providers.md A.1-A.10)."""
    return Usage(
        input_tokens=count_at(usage, "prompt_tokens"),
        cached_tokens=first_count(
            usage, ("prompt_tokens_details", "cached_tokens"), ("prompt_cache_hit_tokens",), ("cached_tokens",)
        ),
        cache_written_tokens=first_count(
            usage, ("prompt_tokens_details", "cache_write_tokens"), ("cache_write_tokens",)
        ),
        output_tokens=count_at(usage, "completion_tokens"),
        reasoning_tokens=first_count(usage, ("completion_tokens_details", "reasoning_tokens"), ("reasoning_tokens",)),
        searches=first_count(
            usage,
            ("num_search_queries",),
            ("plugins", "search", "count"),
            ("server_tool_use", "web_search_requests"),
        ),
        stated=stated_cost(usage),
    )


def _content(value: JsonValue) -> str:
    """Text, or a list of parts of which some are text."""
    if isinstance(value, str):
        return value
    return "".join(text_at(part, "text") for part in items_at(value))
