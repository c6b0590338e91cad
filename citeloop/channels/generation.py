"""DashScope's native shape, decoded: `output`, with the sources in `search_info` that its other forms leave out. Pure.

Shared by the writer and the answer engine of the `dashscope` dialect. Read from Model Studio's web-search page
(2026-10-23) and dashscope-sdk-python c0d7a0b (2026-07-02).
"""

import re
from dataclasses import dataclass, field

from pydantic import JsonValue

from citeloop.channels.citations import distinct, listed, marked, numbered, strings
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
from citeloop.channels.errors import ChannelError
from citeloop.channels.foreign import at, count_at, first_count, items_at, text_at
from citeloop.channels.judging import judge, pointless, request_id, unreadable
from citeloop.channels.reply import HttpReply, Shape, read_body
from citeloop.channels.said import Said
from citeloop.channels.streams import payloads
from citeloop.models.usage import Usage

_REF = re.compile(r"\[ref_(\d{1,3})\]")
_UNFINISHED = frozenset({"", "null"})
"""DashScope streams the word `null` until the last event."""


@dataclass(slots=True)
class _Draft:
    text: list[str] = field(default_factory=list)
    thought: bool = False
    finish: str = ""
    usage: JsonValue = None
    identity: JsonValue = None
    output_seen: bool = False
    results: JsonValue = None
    queries: list[JsonValue] = field(default_factory=list)

    def take(self, payload: JsonValue) -> None:
        output = at(payload, "output")
        self.usage = at(payload, "usage") or self.usage
        self.identity = self.identity or payload
        if not isinstance(output, dict):
            return
        self.output_seen = True
        info = at(output, "search_info")
        self.results = at(info, "search_results") or self.results
        self.queries.extend(items_at(info, "search_queries"))
        choice = at(output, "choices", 0)
        if choice is None:
            # result_format "text", the older of the two.
            self.text.append(text_at(output, "text"))
            self.finish = _finish(output) or self.finish
            return
        message = at(choice, "message")
        self.text.append(_content(at(message, "content")))
        self.thought = self.thought or bool(text_at(message, "reasoning_content"))
        self.finish = _finish(choice) or self.finish


def decode_generation(reply: HttpReply) -> Said:
    """Raises ChannelError for everything that is not publishable."""
    body = read_body(reply)
    if error := judge(reply, body):
        raise error
    draft = _Draft()
    if body.shape is Shape.EVENTS:
        for payload in payloads(body.raw, reply):
            draft.take(payload)
    elif isinstance(body.json, dict):
        draft.take(body.json)
    else:
        raise unreadable(reply, body, "an output")
    text = "".join(draft.text).strip()
    if problem := _problem(draft, text, body.json, reply):
        raise problem
    retrieved = distinct(listed(draft.results))
    searches = first_count(draft.usage, ("plugins", "search", "count")) or int(bool(retrieved))
    return Said(
        # [ref_1] is this vendor's own spelling of [1].
        text=_REF.sub(r"[\1]", text),
        model=text_at(draft.identity, "model")[:200],
        request_id=request_id(reply, draft.identity),
        usage=_usage(draft.usage, searches),
        cited=distinct(marked(text, numbered(draft.results))),
        retrieved=retrieved,
        queries=strings(draft.queries),
        searched=bool(retrieved),
    )


def _problem(draft: _Draft, text: str, payload: JsonValue, reply: HttpReply) -> ChannelError | None:
    if draft.finish in FILTERED:
        return filtered(reply, draft.finish)
    if not draft.output_seen:
        return pointless(reply, payload, "the reply has no output")
    if not text and draft.thought:
        return thought_only(reply)
    if draft.finish in TRUNCATED:
        return truncated(reply, draft.finish)
    if not text:
        return empty(reply)
    return None if draft.finish in COMPLETE else unfinished(reply, "finish_reason", draft.finish)


def _finish(place: JsonValue) -> str:
    found = ending(place, "finish_reason")
    return "" if found in _UNFINISHED else found


def _content(value: JsonValue) -> str:
    """Text, or the parts of the multimodal endpoint that newer models answer at."""
    if isinstance(value, str):
        return value
    return "".join(text_at(part, "text") for part in items_at(value))


def _usage(usage: JsonValue, searches: int) -> Usage:
    return Usage(
        input_tokens=count_at(usage, "input_tokens"),
        cached_tokens=first_count(
            usage, ("prompt_tokens_details", "cached_tokens"), ("input_tokens_details", "cached_tokens")
        ),
        output_tokens=count_at(usage, "output_tokens"),
        reasoning_tokens=first_count(usage, ("output_tokens_details", "reasoning_tokens")),
        searches=searches,
    )
