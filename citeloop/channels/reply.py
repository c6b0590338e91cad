"""An HTTP reply as bytes, and the first look at what kind of body it is."""

import json
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from pydantic import JsonValue

from citeloop.channels.characters import storable, storable_json
from citeloop.channels.errors import ChannelError, Fault

BODY_LIMIT = 8 * 1024 * 1024
"""Bytes; far above any article, far below what would hurt a worker."""
_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_SSE_START = re.compile(rb"(?:data|event|id|retry|error)?:")
_SSE_LINE = re.compile(rb"(?m)^(?:data|event|error|\{)")
_HTML_START = re.compile(rb"<(?:!doctype|html|head|body|h1|p|center|title|\?xml|br|div)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class HttpReply:
    """Header names in lower case; the body as it came, still packed."""

    status: int
    headers: dict[str, str]
    body: bytes
    received_at: datetime

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300  # noqa: PLR2004 - the success class


class Shape(StrEnum):
    JSON = "json"
    EVENTS = "events"
    HTML = "html"
    TEXT = "text"
    EMPTY = "empty"


@dataclass(frozen=True, slots=True)
class Body:
    shape: Shape
    raw: bytes
    json: JsonValue = None

    @property
    def text(self) -> str:
        return storable(self.raw.decode("utf-8", "replace"))


def read_body(reply: HttpReply, limit: int = BODY_LIMIT) -> Body:
    """Unpack gzip, drop BOM and leading blank lines, tell the shape. Raises GARBLED for a broken packing."""
    raw = _unpack(reply, limit).removeprefix(_BOM).strip(b"\r\n\t \x00")
    if not raw:
        return Body(Shape.EMPTY, raw)
    declared = reply.headers.get("content-type", "").lower()
    if raw[:1] in b"{[":
        try:
            return Body(Shape.JSON, raw, parse_json(raw))
        except ValueError:
            return Body(Shape.TEXT, raw)
    if _SSE_START.match(raw) or ("event-stream" in declared and _SSE_LINE.search(raw)):
        return Body(Shape.EVENTS, raw)
    if "html" in declared or _HTML_START.match(raw):
        return Body(Shape.HTML, raw)
    return Body(Shape.TEXT, raw)


def parse_json(raw: bytes | str, fit: Callable[[JsonValue], JsonValue] = storable_json) -> JsonValue:
    """Like json.loads, but every failure is a ValueError, too deep a nesting included, and every text storable.

    fit: makes it so; a part of a stream needs its neighbours for that.
    """
    try:
        value = fit(json.loads(raw))
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return value


def _unpack(reply: HttpReply, limit: int) -> bytes:
    declared = reply.headers.get("content-encoding", "").strip().lower()
    if reply.body.startswith(_GZIP):
        return _inflate(reply, limit, zlib.MAX_WBITS | 16)
    if declared == "deflate" and reply.body:
        return _inflate(reply, limit, zlib.MAX_WBITS)
    if declared and declared != "identity" and reply.body:
        raise ChannelError(
            Fault.GARBLED,
            f"the body is declared {declared[:20]} but is not readable as that",
            status=reply.status,
            change="accept_encoding_identity",
        )
    return reply.body


def _inflate(reply: HttpReply, limit: int, window_bits: int) -> bytes:
    unpacker = zlib.decompressobj(window_bits)
    try:
        raw = unpacker.decompress(reply.body, limit + 1)
    except zlib.error:
        raise ChannelError(
            Fault.GARBLED, "the packed body is damaged", status=reply.status, change="accept_encoding_identity"
        ) from None
    if len(raw) > limit:
        raise ChannelError(Fault.GARBLED, f"the reply unpacks to more than {limit} bytes", status=reply.status)
    if not unpacker.eof:
        raise ChannelError(Fault.GARBLED, "the packed body ends early", status=reply.status)
    return raw
