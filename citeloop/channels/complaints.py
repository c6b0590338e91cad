"""What a reply says went wrong, gathered from all the places where providers put it."""

import re
from dataclasses import dataclass, field

from pydantic import JsonValue

from citeloop.channels.events import parse_events
from citeloop.channels.foreign import at, items_at, text_at
from citeloop.channels.reply import Body, HttpReply, Shape, parse_json

_TITLE = re.compile(r"(?is)<title[^>]*>(.*?)</title>|<h1[^>]*>(.*?)</h1>")
_BLANK = re.compile(r"\s")
_TAG = re.compile(r"<[^>]{0,200}>")
_MESSAGE_PATHS: tuple[tuple[str | int, ...], ...] = (
    ("error", "message"),
    ("error", "msg"),
    ("error",),
    ("message",),
    ("Message",),
    ("message", "message"),
    ("msg",),
    ("err",),
    ("error_msg",),
    ("errmsg",),
    ("header", "message"),
    ("base_resp", "status_msg"),
    ("response", "error", "message"),
    ("Response", "Error", "Message"),
    ("errors", 0, "message"),
    ("errors", 0, "detail"),
    ("errors", 0),
    ("output", "message"),
    ("detail", "message"),
    ("detail", 0, "msg"),
    ("detail",),
    ("title",),
)
_CODE_PATHS: tuple[tuple[str | int, ...], ...] = (
    ("error", "code"),
    ("error", "type"),
    ("error", "status"),
    ("code",),
    ("Code",),
    ("errcode",),
    ("error_code",),
    ("header", "code"),
    ("base_resp", "status_code"),
    ("output", "code"),
    ("response", "error", "code"),
    ("response", "error", "type"),
    ("Response", "Error", "Code"),
    ("errors", 0, "extensions", "code"),
    ("errors", 0, "code"),
)
_FINE_CODES = frozenset({"", "0", "200", "ok", "success"})
_DELAY_PATHS: tuple[tuple[str | int, ...], ...] = (
    ("retry_after",),
    ("error", "retry_after"),
    ("error", "metadata", "retry_after_seconds"),
    ("parameters", "retry_after"),
)
_RESULT_KEYS = ("choices", "data", "output", "candidates", "content", "results")
_DEEPEST = 3
_LONGEST_MESSAGE = 4000


@dataclass(slots=True)
class Complaint:
    """`status` is the HTTP status, or the one the body names when HTTP said 2xx."""

    status: int
    message: str = ""
    codes: list[str] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    """The reply's headers, with those that a gateway passed on inside the body."""

    def has_code(self, pattern: re.Pattern[str]) -> bool:
        return any(pattern.search(code) for code in self.codes)

    @property
    def headline(self) -> str:
        code = next((c for c in self.codes if c and not c.isdigit() and c.lower() != "unknown_error"), "")
        parts = [f"HTTP {self.status}" if self.status else "", code, self.message]
        return ": ".join(part for part in parts if part)


def find_complaint(reply: HttpReply, body: Body) -> Complaint | None:
    """None when neither the status nor the body complains. Events are judged one by one, not here."""
    if body.shape is Shape.JSON:
        return complaint_of(body.json, reply)
    if reply.ok:
        return None
    if body.shape is Shape.EVENTS and (payload := _first_event(body)) is not None:
        return complaint_of(payload, reply)
    return Complaint(reply.status, _plain_message(body), headers=dict(reply.headers))


def complaint_of(payload: JsonValue, reply: HttpReply) -> Complaint | None:
    """What one JSON payload, a whole body or one event, complains of."""
    payload = payload[0] if isinstance(payload, list) and payload else payload
    if reply.ok and not _says_failure(payload):
        return None
    complaint = Complaint(reply.status, headers=dict(reply.headers))
    _gather(complaint, payload, _DEEPEST)
    complaint.message = complaint.message or ("" if payload is None else str(payload)[:200])
    complaint.message = complaint.message[:_LONGEST_MESSAGE]
    if reply.ok:
        complaint.status = next((int(c) for c in complaint.codes if re.fullmatch(r"[45]\d\d", c)), reply.status)
    return complaint


def _says_failure(payload: JsonValue) -> bool:
    if not isinstance(payload, dict):
        return False
    if payload.get("error") or payload.get("type") == "error" or payload.get("cloudflare_error"):
        return True
    if at(payload, "Response", "Error") or at(payload, "response", "error"):
        return True
    if payload.get("success") is False:
        return True
    codes = (("errcode",), ("error_code",), ("header", "code"), ("base_resp", "status_code"))
    if any(text_at(payload, *path) not in _FINE_CODES for path in codes):
        return True
    named = text_at(payload, "code").lower() not in _FINE_CODES
    return named and not any(payload.get(key) for key in _RESULT_KEYS)


def _gather(complaint: Complaint, payload: JsonValue, depth: int) -> None:
    messages = (text_at(payload, *path) for path in _MESSAGE_PATHS)
    complaint.message = complaint.message or next((m for m in messages if m), "")
    for path in _DELAY_PATHS:
        if seconds := text_at(payload, *path):
            complaint.headers.setdefault("retry-after", seconds)
    for path in _CODE_PATHS:
        if code := text_at(payload, *path):
            complaint.codes.append(code)
    if (bare := text_at(payload, "error")) and not _BLANK.search(bare):
        complaint.codes.append(bare)
    for name, value in _mapping(at(payload, "error", "metadata", "headers")):
        complaint.headers.setdefault(name.lower(), text_at(value))
    for detail in items_at(payload, "error", "details"):
        if delay := text_at(detail, "retryDelay"):
            complaint.message += f" (retry in {delay})"
        complaint.codes.extend(text_at(v, "quotaId") for v in items_at(detail, "violations"))
    raw = text_at(payload, "error", "metadata", "raw") or _quoted_json(complaint.message)
    if raw and depth:
        _gather_raw(complaint, raw, depth)


def _gather_raw(complaint: Complaint, raw: str, depth: int) -> None:
    """A gateway passes on the upstream's own reply as text: the true cause stands first."""
    inner = Complaint(complaint.status)
    try:
        _gather(inner, parse_json(raw), depth - 1)
    except ValueError:
        inner.message = raw
    complaint.message = f"{inner.message or raw} ({complaint.message})"
    complaint.codes[:0] = inner.codes


def _quoted_json(message: str) -> str:
    """The JSON object within a message such as `upstream said: {"error": …}`, if it is one."""
    start, end = message.find("{"), message.rfind("}")
    if start < 0 or end < start:
        return ""
    try:
        return message[start : end + 1] if isinstance(parse_json(message[start : end + 1]), dict) else ""
    except ValueError:
        return ""


def _first_event(body: Body) -> JsonValue:
    """The JSON of the first event, None where there is none."""
    try:
        return parse_json(next(parse_events(body.raw)).data)
    except (ValueError, StopIteration):
        return None


def _mapping(value: JsonValue) -> list[tuple[str, JsonValue]]:
    return list(value.items()) if isinstance(value, dict) else []


def _plain_message(body: Body) -> str:
    if body.shape is Shape.HTML:
        title = _TITLE.search(body.text[:20_000])
        return _TAG.sub(" ", (title[1] or title[2] or "") if title else body.text[:2000])
    return body.text[:2000]
