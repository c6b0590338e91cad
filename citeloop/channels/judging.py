"""The judgement of a reply: what kind of complaint it is (kinds.py), and how long it asks us to wait."""

import re
from datetime import UTC, timedelta

from pydantic import JsonValue

from citeloop.channels.complaints import Complaint, complaint_of, find_complaint, message_in, plain_message
from citeloop.channels.delays import (
    BEIJING,
    Due,
    header_delay,
    is_chinese,
    moment_delay,
    next_day,
    next_hour,
    reset_delay,
    text_delay,
)
from citeloop.channels.errors import ChannelError, Fault, Remedy
from citeloop.channels.kinds import rule_for
from citeloop.channels.limits import DAILY, HOURLY, RATE_CODES, RATE_WORDS, UNPAID
from citeloop.channels.reply import Body, HttpReply, Shape, read_body
from citeloop.channels.ruling import Rule, any_of
from citeloop.channels.scrubbing import looks_like_key, scrub

_WINDOW_RESET = timedelta(hours=1)
_RETRIED = frozenset({Fault.RATE_LIMITED, Fault.OVERLOADED, Fault.TIMED_OUT, Fault.UNAVAILABLE})
_LONGEST_LIMIT = timedelta(days=1)
"""A rate limit that asks for more has mistaken its unit, or our clock: one look a day harms nobody."""
_NAMING = frozenset({Fault.EXHAUSTED, Fault.UNAUTHORIZED, Fault.REFUSED, Fault.RATE_LIMITED, Fault.OVERLOADED})
_LONGEST_CAUSE = 500
"""Characters: an error is told shortly, and a longer text may be somebody's article about rate limits."""
_PART_OF_AN_ANSWER = re.compile(
    r'"(choices|delta|content|text|output|candidates|parts|item|response|reasoning_content|thinking)"\s*:'
)
_RESULTS = frozenset({"choices", "candidates", "output", "content", "delta", "usage", "item", "response"})
_KINDS = frozenset({"type", "object"})
"""Fields by which an event says what it is; only with a message beside them may it be a failure."""
_STANDING_QUOTA = any_of(r"\bquota\b", r"额度|配额")
_PASSING_QUOTA = any_of(r"\brate", r"check quota")
"""Words that name a quota and mean a rate; Google asks to check it under every limit."""


def judge(reply: HttpReply, body: Body) -> ChannelError | None:
    """The error that a reply amounts to, or None where nothing complains. Redirects are errors: never followed."""
    if 300 <= reply.status < 400:  # noqa: PLR2004 - the redirect class
        return _redirected(reply)
    complaint = find_complaint(reply, body)
    return _judged(complaint, reply) if complaint else None


def judge_event(payload: JsonValue, reply: HttpReply) -> ChannelError | None:
    """The same for one event of a stream: providers fail in mid-stream under a 200."""
    if complaint := complaint_of(payload, reply):
        return _judged(complaint, reply)
    return None if _may_be_a_result(payload) else _cause_in(payload, reply)


def _may_be_a_result(payload: JsonValue) -> bool:
    if not isinstance(payload, dict):
        return False
    named = bool(payload.keys() & _KINDS) and not isinstance(payload.get("message"), str)
    return named or bool(payload.keys() & _RESULTS)


def judge_words(text: str, reply: HttpReply) -> ChannelError | None:
    """What plain words in the place of an answer name as the cause, if they name one."""
    if not text or len(text) > _LONGEST_CAUSE or _PART_OF_AN_ANSWER.search(text):
        return None
    return _named(Complaint(reply.status, text, headers=dict(reply.headers)), reply)


def unreadable(reply: HttpReply, body: Body, wanted: str) -> ChannelError:
    """For a good status without `wanted`: the cause that the text or the page's title names, else GARBLED."""
    words = plain_message(body) if body.shape in {Shape.TEXT, Shape.HTML} else ""
    return judge_words(words, reply) or garbled(reply, f"expected {wanted} and got {body.shape}: {body.text[:200]}")


def pointless(reply: HttpReply, payload: JsonValue, problem: str) -> ChannelError:
    """For a payload without its result: the cause that its message names, else GARBLED with `problem`."""
    return _cause_in(payload, reply) or garbled(reply, problem)


def judged_json(reply: HttpReply, limit: int | None = None) -> JsonValue:
    """The JSON body of a good reply. Raises the judgement otherwise, GARBLED for a body that is no JSON object."""
    body = read_body(reply, limit) if limit else read_body(reply)
    if error := judge(reply, body):
        raise error
    if not isinstance(body.json, dict):
        raise unreadable(reply, body, "a JSON object")
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


def _cause_in(payload: JsonValue, reply: HttpReply) -> ChannelError | None:
    if isinstance(payload, str):
        return judge_words(payload, reply)
    complaint = message_in(payload, reply)
    return _named(complaint, reply) if 0 < len(complaint.message) <= _LONGEST_CAUSE else None


def _named(complaint: Complaint, reply: HttpReply) -> ChannelError | None:
    """The judgement where the words or codes name a cause; None where only the status would."""
    return _judged(complaint, reply) if rule_for(complaint).fault in _NAMING else None


def _judged(complaint: Complaint, reply: HttpReply) -> ChannelError:
    rule = rule_for(complaint)
    kind = _kind(rule.fault, complaint)
    if kind is Fault.RATE_LIMITED and rule is not HOURLY and not _delay(complaint, reply):
        kind = Fault.EXHAUSTED if _is_standing_quota(complaint) else kind
    due = None if rule in UNPAID or kind.final else _due(rule, kind, complaint, reply)
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


def _due(rule: Rule, kind: Fault, complaint: Complaint, reply: HttpReply) -> Due | None:
    due = Due(delay) if (delay := _delay(complaint, reply)) else None
    if due is None and rule is DAILY:
        due = _reset(complaint, reply)
    elif due is None and rule is HOURLY:
        due = next_hour(reply.received_at)
    elif due is None and kind is Fault.EXHAUSTED:
        due = reset_delay({}, complaint.message, reply.received_at)
    elif due is None and kind in _RETRIED and (until := moment_delay(complaint.message, reply.received_at)):
        due = Due(until)
    return Due(min(due.delay, _LONGEST_LIMIT), due.named) if due and kind in _RETRIED else due


def _delay(complaint: Complaint, reply: HttpReply) -> timedelta | None:
    return header_delay(complaint.headers, reply.received_at) or text_delay(complaint.message)


def _is_standing_quota(complaint: Complaint) -> bool:
    """A 429 that names a quota and no delay needs a person (OpenAI's schema says so of a missing Retry-After)."""
    if complaint.status != 429 or not _STANDING_QUOTA.search(complaint.message):  # noqa: PLR2004
        return False
    if RATE_WORDS.search(complaint.message) or _PASSING_QUOTA.search(complaint.message):
        return False
    return not complaint.has_code(RATE_CODES)


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
