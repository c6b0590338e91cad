"""Gemini's native shape, decoded: candidates, and the grounding that tells which page supports which bytes. Pure.

Shared by the writer and the answer engine of the `gemini` dialect. Read from python-genai 66807187 (2026-08-21) and
Canonry d87aa309 (2026-08-20).
"""

import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from pydantic import JsonValue

from citeloop.channels.citations import citation, distinct, strings
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
from citeloop.channels.foreign import at, count_at, items_at, text_at
from citeloop.channels.judging import fault, judge, pointless, request_id, unreadable
from citeloop.channels.reply import HttpReply, Shape, read_body
from citeloop.channels.said import Said
from citeloop.channels.streams import payloads
from citeloop.models.measure import Citation
from citeloop.models.usage import Usage

REDIRECTOR = "vertexaisearch.cloud.google.com"
"""The host of the opaque addresses that stand for the cited pages."""
_DOMAIN = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,24}", re.IGNORECASE)


@dataclass(slots=True)
class _Draft:
    text: list[str] = field(default_factory=list)
    thought: bool = False
    finish: str = ""
    blocked: str = ""
    model: str = ""
    identity: str = ""
    usage: JsonValue = None
    candidates_seen: bool = False
    chunks: list[JsonValue] = field(default_factory=list)
    supports: list[JsonValue] = field(default_factory=list)
    queries: list[JsonValue] = field(default_factory=list)

    def take(self, payload: JsonValue) -> None:
        self.model = text_at(payload, "modelVersion") or self.model
        self.identity = text_at(payload, "responseId") or self.identity
        self.usage = at(payload, "usageMetadata") or self.usage
        self.blocked = text_at(payload, "promptFeedback", "blockReason") or self.blocked
        candidate = at(payload, "candidates", 0)
        if not isinstance(candidate, dict):
            return
        self.candidates_seen = True
        for part in items_at(candidate, "content", "parts"):
            if at(part, "thought") is True:
                self.thought = True
            else:
                self.text.append(text_at(part, "text"))
        self.finish = ending(candidate, "finishReason") or self.finish
        grounding = at(candidate, "groundingMetadata")
        self.chunks.extend(items_at(grounding, "groundingChunks"))
        self.supports.extend(items_at(grounding, "groundingSupports"))
        self.queries.extend(items_at(grounding, "webSearchQueries"))


def decode_gemini(reply: HttpReply) -> Said:
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
    elif isinstance(body.json, list):
        # Without alt=sse a stream is one JSON array.
        for payload in body.json:
            draft.take(payload)
    else:
        raise unreadable(reply, body, "candidates")
    text = "".join(draft.text)
    if problem := _problem(draft, text.strip(), body.json, reply):
        raise problem
    return _said(draft, text, reply)


def _problem(draft: _Draft, text: str, payload: JsonValue, reply: HttpReply) -> ChannelError | None:
    problem: ChannelError | None = None
    if draft.blocked and not (text and draft.finish):
        problem = fault(Fault.REFUSED, reply, f"the prompt was blocked: {draft.blocked}")
    elif not draft.candidates_seen:
        problem = pointless(reply, payload, "the reply has no candidates")
    elif draft.finish in FILTERED:
        problem = filtered(reply, draft.finish)
    elif draft.finish in TRUNCATED:
        problem = truncated(reply, draft.finish)
    elif draft.finish and draft.finish not in COMPLETE:
        problem = unfinished(reply, "finishReason", draft.finish, Remedy.RETRY_FAST)
    elif not text:
        problem = thought_only(reply) if draft.thought else empty(reply)
    elif not draft.finish:
        problem = unfinished(reply, "finishReason", "")
    return problem


def _said(draft: _Draft, text: str, reply: HttpReply) -> Said:
    raw = text.encode("utf-8", "replace")
    sources = [_source(chunk) for chunk in draft.chunks]
    supports = [one for one in map(_Support.read, draft.supports) if one.end_in(raw)]
    cited = distinct(
        source
        for support in supports
        for n in support.chunks
        if n < len(sources) and (source := sources[n]) is not None
    )
    numbers = {one.url: n for n, one in enumerate(cited, start=1)}
    retrieved = distinct(one for one in sources if one is not None)
    queries = strings(draft.queries)
    searched = bool(retrieved or queries)
    return Said(
        text=_with_marks(raw, supports, sources, numbers).strip(),
        model=draft.model[:200],
        request_id=request_id(reply, {"id": draft.identity}),
        usage=_usage(draft.usage, len(queries) or int(searched)),
        cited=cited,
        retrieved=retrieved,
        queries=queries,
        searched=searched,
    )


@dataclass(frozen=True, slots=True)
class _Support:
    """Which chunks support the text up to `end`, a count of BYTES of its UTF-8."""

    start: int
    end: int
    quote: str
    chunks: tuple[int, ...]

    @classmethod
    def read(cls, support: JsonValue) -> "_Support":
        indices = items_at(support, "groundingChunkIndices")
        return cls(
            start=count_at(support, "segment", "startIndex"),
            end=count_at(support, "segment", "endIndex"),
            quote=text_at(support, "segment", "text"),
            chunks=tuple(n for n in indices if isinstance(n, int) and not isinstance(n, bool) and n >= 0),
        )

    def end_in(self, raw: bytes) -> int:
        """Where the segment ends in the answer's bytes, 0 if it is no part of it: such a support cites nothing here.

        The quoted words are believed before the offsets, which count within one part of several.
        """
        quote = self.quote.encode("utf-8", "replace")
        if quote and raw[self.start : self.end] != quote:
            found = raw.find(quote)
            return found + len(quote) if found >= 0 else 0
        return self.end if self.end <= len(raw) else 0


def _with_marks(raw: bytes, supports: list[_Support], sources: list[Citation | None], numbers: dict[str, int]) -> str:
    """`[n]` behind every supported segment, n counting the cited pages from 1."""
    marks: dict[int, list[int]] = {}
    for support in supports:
        end = support.end_in(raw)
        while 0 < end < len(raw) and raw[end] & 0xC0 == 0x80:  # noqa: PLR2004 - never inside a character
            end += 1
        for n in support.chunks:
            source = sources[n] if n < len(sources) else None
            if source is not None and source.url in numbers:
                marks.setdefault(end, []).append(numbers[source.url])
    made, start = bytearray(), 0
    for end in sorted(marks):
        made += raw[start:end] + "".join(f"[{n}]" for n in dict.fromkeys(marks[end])).encode()
        start = end
    return (made + raw[start:]).decode("utf-8", "replace")


def _source(chunk: JsonValue) -> Citation | None:
    return citation({"url": text_at(chunk, "web", "uri"), "title": text_at(chunk, "web", "title")})


def is_redirect(source: Citation) -> bool:
    return source.url.startswith("https://") and urlsplit(source.url).hostname == REDIRECTOR


def settled_at(source: Citation, target: str = "") -> Citation:
    """A redirect's real page, else its site by the domain in the title, else as it was."""
    if found := citation({"url": target, "title": source.title}):
        return found if not is_redirect(found) else source
    domain = source.title.strip().lower()
    return Citation(url=f"https://{domain}/", title=source.title) if _DOMAIN.fullmatch(domain) else source


def _usage(usage: JsonValue, searches: int) -> Usage:
    thoughts = count_at(usage, "thoughtsTokenCount")
    return Usage(
        input_tokens=count_at(usage, "promptTokenCount") + count_at(usage, "toolUsePromptTokenCount"),
        cached_tokens=count_at(usage, "cachedContentTokenCount"),
        output_tokens=count_at(usage, "candidatesTokenCount") + thoughts,
        reasoning_tokens=thoughts,
        searches=searches,
    )
