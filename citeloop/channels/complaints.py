"""What a reply says went wrong, gathered from all the places where providers put it."""

import re
from collections.abc import Iterator
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
    ("errorMessage",),
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
    ("error", 0, "message"),
    ("error", "detail"),
    ("error", "description"),
    ("error_description",),
    ("description",),
    ("data", "message"),
    ("data", "error"),
    ("title",),
)
_CODE_PATHS: tuple[tuple[str | int, ...], ...] = (
    ("error", "code"),
    ("error", "type"),
    ("error", "status"),
    ("code",),
    ("Code",),
    ("errcode",),
    ("errno",),
    ("error_code",),
    ("errorCode",),
    ("retcode",),
    ("header", "code"),
    ("output", "code"),
    ("response", "error", "code"),
    ("response", "error", "type"),
    ("Response", "Error", "Code"),
    ("errors", 0, "extensions", "code"),
    ("errors", 0, "code"),
    ("error", "errors", 0, "reason"),
)
_HIDDEN_PATHS: tuple[tuple[str | int, ...], ...] = (
    ("choices", 0, "error"),
    ("error", "error"),
    ("detail", "error"),
    ("result", "error"),
)
"""Where an error stands one level down."""
_FINE_CODES = frozenset({"", "0", "0000", "00000", "200", "ok", "success"})
_FAILING_CODES = (("errcode",), ("error_code",), ("header", "code"), ("base_resp", "status_code"))
_CODE_NAMES = ("code", "errno", "errorCode", "retcode")
_STATUS_NAMES = ("status", "statusCode", "status_code")
_FAILED = frozenset({"error", "fail", "failed", "failure"})
_HTTP_ERROR = re.compile(r"[45]\d\d")
_DELAY_PLACES: tuple[tuple[str, ...], ...] = (
    (),
    ("error",),
    ("error", "metadata"),
    ("error", "details"),
    ("parameters",),
    ("detail",),
    ("data",),
)
_DELAY_NAMES = {
    "retry_after": "retry-after",
    "retryAfter": "retry-after",
    "retry-after": "retry-after",
    "retry_after_seconds": "retry-after",
    "retryAfterSeconds": "retry-after",
    "resets_in_seconds": "retry-after",
    "resets_at": "retry-after",
    "retry_after_ms": "retry-after-ms",
    "retryAfterMs": "retry-after-ms",
}
"""Fields of a body by the header that says the same."""
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
    return Complaint(reply.status, plain_message(body) or body.text[:2000], headers=dict(reply.headers))


def complaint_of(payload: JsonValue, reply: HttpReply) -> Complaint | None:
    """What one JSON payload, a whole body or one event, complains of."""
    payload = payload[0] if isinstance(payload, list) and payload else payload
    hidden = next((found for path in _HIDDEN_PATHS if (found := at(payload, *path))), None)
    if reply.ok and not hidden and not _says_failure(payload):
        return None
    complaint = Complaint(reply.status, headers=dict(reply.headers))
    if hidden:
        _gather(complaint, {"error": hidden}, _DEEPEST)
    _gather(complaint, payload, _DEEPEST)
    if not complaint.message and payload is not None:
        complaint.message = str(hidden or payload)[:200]
    complaint.message = complaint.message[:_LONGEST_MESSAGE]
    if reply.ok:
        complaint.status = next((int(c) for c in complaint.codes if _HTTP_ERROR.fullmatch(c)), reply.status)
    return complaint


def message_in(payload: JsonValue, reply: HttpReply) -> Complaint:
    """What a payload says that nothing marks as a failure; the message is empty where it says nothing."""
    complaint = Complaint(reply.status, headers=dict(reply.headers))
    _gather(complaint, payload, _DEEPEST)
    return complaint


def _says_failure(payload: JsonValue) -> bool:
    if not isinstance(payload, dict):
        return False
    if payload.get("error") or payload.get("type") == "error" or payload.get("cloudflare_error"):
        return True
    if at(payload, "Response", "Error") or at(payload, "response", "error"):
        return True
    if any(str(payload.get(name)).lower() == "false" for name in ("success", "ok")):
        return True
    if any(text_at(payload, *path).lower() not in _FINE_CODES for path in _FAILING_CODES):
        return True
    return _looks_failed(payload) and not any(payload.get(key) for key in _RESULT_KEYS)


def _looks_failed(payload: JsonValue) -> bool:
    """Fields that good replies have too, so they mean a failure only where there is no result beside them."""
    if any(text_at(payload, name).lower() not in _FINE_CODES for name in _CODE_NAMES):
        return True
    named = [text_at(payload, name).lower() for name in _STATUS_NAMES]
    failed = any(one in _FAILED or _HTTP_ERROR.fullmatch(one) for one in named)
    return failed and any(text_at(payload, *path) for path in _MESSAGE_PATHS)


def _gather(complaint: Complaint, payload: JsonValue, depth: int) -> None:
    messages = (text_at(payload, *path) for path in _MESSAGE_PATHS)
    complaint.message = complaint.message or next((m for m in messages if m), "")
    for place in _DELAY_PLACES:
        for name, header in _DELAY_NAMES.items():
            if delay := text_at(payload, *place, name):
                complaint.headers.setdefault(header, delay)
    complaint.codes.extend(_codes(payload))
    for name, value in _mapping(at(payload, "error", "metadata", "headers")):
        complaint.headers.setdefault(name.lower(), text_at(value))
    for detail in items_at(payload, "error", "details"):
        if delay := text_at(detail, "retryDelay"):
            complaint.message += f" (retry in {delay})"
        complaint.codes.extend(text_at(v, "quotaId") for v in items_at(detail, "violations"))
        complaint.codes.append(text_at(detail, "reason"))
    raw = text_at(payload, "error", "metadata", "raw") or _quoted_json(complaint.message)
    if raw and depth:
        _gather_raw(complaint, raw, depth)


def _codes(payload: JsonValue) -> Iterator[str]:
    yield from (code for path in _CODE_PATHS if (code := text_at(payload, *path)))
    # MiniMax numbers its errors as Zhipu does, with other meanings: the table knows them by this prefix.
    if (code := text_at(payload, "base_resp", "status_code")) not in _FINE_CODES:
        yield f"base_resp:{code}"
    yield from (code for name in _STATUS_NAMES if _HTTP_ERROR.fullmatch(code := text_at(payload, name)))
    if (bare := text_at(payload, "error")) and not _BLANK.search(bare):
        yield bare


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


def plain_message(body: Body) -> str:
    """The first words of a text, the title of a page; empty for a page without one."""
    if body.shape is Shape.HTML:
        title = _TITLE.search(body.text[:20_000])
        return _TAG.sub(" ", title[1] or title[2] or "") if title else ""
    return body.text[:2000]
