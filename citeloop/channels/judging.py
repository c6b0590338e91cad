"""The judgement of a reply: what kind of complaint it is (kinds.py), and how long it asks us to wait."""

import re
from datetime import UTC, timedelta

from pydantic import JsonValue

from citeloop.channels.complaints import Complaint, complaint_of, find_complaint
from citeloop.channels.delays import (
    BEIJING,
    Due,
    header_delay,
    is_chinese,
    next_day,
    next_hour,
    reset_delay,
    text_delay,
)
from citeloop.channels.errors import ChannelError, Fault, Remedy
from citeloop.channels.kinds import DAILY, HOURLY, MONEY, any_of, rule_for
from citeloop.channels.reply import Body, HttpReply, read_body
from citeloop.channels.scrubbing import looks_like_key, scrub

_WINDOW_RESET = timedelta(hours=1)
_RETRIED = frozenset({Fault.RATE_LIMITED, Fault.OVERLOADED, Fault.TIMED_OUT, Fault.UNAVAILABLE})
_STANDING_QUOTA = any_of(r"\bquota\b", r"额度|配额")
_MINUTE_LIMIT = any_of(r"per[- ]minute", r"\b[rt]pm\b", r"throttl", r"rate", r"每分钟")
_MINUTE_CODE = any_of(r"throttl", r"rate", r"RESOURCE_EXHAUSTED")


def judge(reply: HttpReply, body: Body) -> ChannelError | None:
    """The error that a reply amounts to, or None where nothing complains. Redirects are errors: never followed."""
    if 300 <= reply.status < 400:  # noqa: PLR2004 - the redirect class
        return _redirected(reply)
    complaint = find_complaint(reply, body)
    return _judged(complaint, reply) if complaint else None


def judge_event(payload: JsonValue, reply: HttpReply) -> ChannelError | None:
    """The same for one event of a stream: providers fail in mid-stream under a 200."""
    complaint = complaint_of(payload, reply)
    return _judged(complaint, reply) if complaint else None


def judged_json(reply: HttpReply, limit: int | None = None) -> JsonValue:
    """The JSON body of a good reply. Raises the judgement otherwise, GARBLED for a body that is no JSON object."""
    body = read_body(reply, limit) if limit else read_body(reply)
    if error := judge(reply, body):
        raise error
    if not isinstance(body.json, dict):
        raise garbled(reply, f"expected a JSON object and got {body.shape}: {body.text[:200]}")
    return body.json


def garbled(reply: HttpReply, problem: str, *, change: str = "", remedy: Remedy | None = None) -> ChannelError:
    return fault(Fault.GARBLED, reply, problem, change=change, remedy=remedy)


def fault(
    kind: Fault, reply: HttpReply, problem: str, *, change: str = "", remedy: Remedy | None = None
) -> ChannelError:
    """A ChannelError about `reply`, its message scrubbed."""
    return ChannelError(
        kind, scrub(problem), status=reply.status, request_id=request_id(reply), change=change, remedy=remedy
    )


def request_id(reply: HttpReply, payload: JsonValue = None) -> str:
    """The provider's name for this call, by which its support finds it."""
    names = ("x-request-id", "x-deepseek-request-id", "request-id", "x-trace-id", "x-dashscope-request-id", "cf-ray")
    found = next((reply.headers[name] for name in names if reply.headers.get(name)), "")
    if not found and isinstance(payload, dict):
        found = next((v for k in ("request_id", "id") if isinstance(v := payload.get(k), str) and v), "")
    found = re.sub(r"[^\w.:/+=-]", "", found)[:100]
    return "" if looks_like_key(found) else found


def _judged(complaint: Complaint, reply: HttpReply) -> ChannelError:
    rule = rule_for(complaint)
    kind = _kind(rule.fault, complaint)
    due = None if rule is MONEY or kind.final else _due(complaint, reply)
    if due is None and rule is DAILY:
        due = _reset(complaint, reply)
    elif due is None and rule is HOURLY:
        due = next_hour(reply.received_at)
    elif due is None and kind is Fault.RATE_LIMITED and _is_standing_quota(complaint):
        kind = Fault.EXHAUSTED
    return ChannelError(
        kind,
        scrub(complaint.headline),
        delay=due.delay if due else None,
        until=due.named if due else "",
        status=reply.status,
        request_id=request_id(reply),
        change=rule.change_for(complaint),
        remedy=rule.remedy,
    )


def _kind(kind: Fault, complaint: Complaint) -> Fault:
    """`x-should-retry` overrides what the status says (OpenAI, Ark and Zhipu SDKs)."""
    should_retry = complaint.headers.get("x-should-retry", "").lower()
    if should_retry == "false" and kind in _RETRIED:
        return Fault.EXHAUSTED if kind is Fault.RATE_LIMITED else Fault.INVALID
    if should_retry == "true" and kind is Fault.INVALID:
        return Fault.UNAVAILABLE
    return kind


def _due(complaint: Complaint, reply: HttpReply) -> Due | None:
    delay = header_delay(complaint.headers, reply.received_at) or text_delay(complaint.message)
    return Due(delay) if delay else None


def _is_standing_quota(complaint: Complaint) -> bool:
    """A 429 that names a quota and no delay needs a person (OpenAI's schema says so of a missing Retry-After)."""
    if complaint.status != 429 or not _STANDING_QUOTA.search(complaint.message):  # noqa: PLR2004
        return False
    return not _MINUTE_LIMIT.search(complaint.message) and not complaint.has_code(_MINUTE_CODE)


def _reset(complaint: Complaint, reply: HttpReply) -> Due:
    named = reset_delay(complaint.headers, complaint.message, reply.received_at)
    if named is not None:
        return named
    if "小时" in complaint.message or "hour" in complaint.message.lower():
        return Due(_WINDOW_RESET)
    return next_day(reply.received_at, BEIJING if is_chinese(complaint.message) else UTC)


def _redirected(reply: HttpReply) -> ChannelError:
    target = reply.headers.get("location", "").split("?")[0].split("#")[0]
    return fault(
        Fault.INVALID,
        reply,
        f"HTTP {reply.status}: redirected to {target or 'nowhere'}; redirects are not followed, "
        "so set base_url to the final address",
    )
