"""A chat answer on the wire: one JSON body, or server-sent events, whole or broken as luck has it."""

import hashlib
import time
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from sandbox.config import ServiceSettings
from sandbox.dialects import Dialect
from sandbox.luck import Draw
from sandbox.wire import Voice, to_json

Json = dict[str, object]
_JSON_HEADERS = {"content-type": "application/json"}
_SSE_HEADERS = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}


@dataclass(frozen=True)
class Reply:
    """What a model says. `extra` are the provider's own top-level fields, such as its sources."""

    text: str
    prompt_tokens: int
    finish_reason: str = "stop"
    extra: Json = field(default_factory=dict)

    @cached_property
    def usage(self) -> Json:
        completion = tokens(self.text)
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": completion,
            "total_tokens": self.prompt_tokens + completion,
        }

    def at_most(self, max_tokens: int | None) -> "Reply":
        """Cut as a real service cuts: the text ends, and finish_reason says `length`."""
        if max_tokens is None or (said := tokens(self.text)) <= max_tokens:
            return self
        kept = len(self.text) * max_tokens // said
        return replace(self, text=self.text[:kept], finish_reason="length")

    def truncated(self) -> "Reply":
        return replace(self, text=self.text[: len(self.text) * 2 // 5], finish_reason="length")

    def emptied(self) -> "Reply":
        return replace(self, text="")


def tokens(text: str) -> int:
    """Roughly: three tokens to five CJK characters, one to four others."""
    wide = 0
    if not text.isascii():
        points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
        wide = int(np.count_nonzero(points > ord("\u2e7f")))
    return 1 + (wide * 3) // 5 + (len(text) - wide) // 4


@dataclass(frozen=True)
class Envelope:
    """What surrounds a reply."""

    model: str
    request_id: str

    def body(self, reply: Reply) -> Json:
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": reply.text},
            "finish_reason": reply.finish_reason,
        }
        return {**self._head("chat.completion"), "choices": [choice], "usage": reply.usage, **reply.extra}

    def chunk(self, delta: Json, finish_reason: str | None = None, extra: Json | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return _event({**self._head("chat.completion.chunk"), "choices": [choice], **(extra or {})})

    def usage_chunk(self, reply: Reply) -> bytes:
        return _event({**self._head("chat.completion.chunk"), "choices": [], "usage": reply.usage})

    def _head(self, kind: str) -> Json:
        name = hashlib.sha256(self.request_id.encode()).hexdigest()[:24]
        return {"id": f"chatcmpl-{name}", "object": kind, "created": int(time.time()), "model": self.model}


def _event(value: Json) -> bytes:
    return b"data: " + to_json(value) + b"\n\n"


def _pieces(text: str) -> list[str]:
    """At most some twenty chunks, so that a long text costs no more writes than a short one."""
    size = max(24, len(text) // 20 + 1)
    return [text[start : start + size] for start in range(0, len(text), size)]


@dataclass(frozen=True)
class Speaker:
    """Says replies as one service's settings and one attempt's luck want it."""

    settings: ServiceSettings
    dialect: Dialect
    draw: Draw
    voice: Voice

    @property
    def patience(self) -> float:
        """Seconds to the first word."""
        return self.draw.between("first_byte", self.settings.first_byte)

    async def stream(self, reply: Reply, envelope: Envelope, *, broken: bool) -> None:
        """`broken`: the connection is reset in the middle of the text."""
        voice = self.voice
        headers = {**_SSE_HEADERS, "x-request-id": envelope.request_id}
        await voice.wire.sleep(self.settings.first_byte_silence)
        if self.draw.happens("keep_alive", self.settings.keep_alive):
            await voice.start(200, headers)
            for _ in range(2):
                await voice.write(b": keep-alive\n\n")
                await voice.wire.sleep(self.patience / 2)
        else:
            await voice.wire.sleep(self.patience)
            await voice.start(200, headers)
        await voice.write(envelope.chunk({"role": "assistant", "content": ""}))
        pieces = _pieces(reply.text)
        for place, piece in enumerate(pieces):
            if place == (len(pieces) + 1) // 2:
                await voice.wire.sleep(self.settings.mid_stream_silence)
                if broken:
                    await voice.wire.reset()
            await voice.write(envelope.chunk({"content": piece}))
            await voice.wire.sleep(self.draw.between(f"chunk {place}", self.settings.per_chunk))
        if broken:
            await voice.wire.reset()
        await voice.write(envelope.chunk({}, reply.finish_reason, reply.extra))
        await voice.write(envelope.usage_chunk(reply))
        await voice.end(b"data: [DONE]\n\n")

    async def whole(self, reply: Reply, envelope: Envelope, *, broken: bool) -> None:
        voice = self.voice
        chunks = len(_pieces(reply.text))
        saying = sum(self.draw.between(f"chunk {n}", self.settings.per_chunk) for n in range(chunks))
        await voice.wire.sleep(self.settings.first_byte_silence)
        await voice.wire.sleep(self.patience + saying)
        body = to_json(envelope.body(reply))
        if self.dialect.blank_lines and self.draw.happens("keep_alive", self.settings.keep_alive):
            body = b"\n\n\n" + body
        headers = {**_JSON_HEADERS, "x-request-id": envelope.request_id, "content-length": str(len(body))}
        await voice.start(200, headers)
        middle = len(body) // 2
        await voice.write(body[:middle])
        await voice.wire.sleep(self.settings.mid_stream_silence)
        if broken:
            await voice.wire.reset()
        await voice.end(body[middle:])
