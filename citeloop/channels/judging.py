"""The judgement of a reply: one table, read from top to bottom, money before status.

The order and the words come from real replies; tests/channels/wire_faults.jsonl holds them with their sources.
"""

import re
from dataclasses import dataclass
from datetime import timedelta

from pydantic import JsonValue

from citeloop.channels.complaints import Complaint, complaint_of, find_complaint
from citeloop.channels.delays import header_delay, reset_delay, text_delay, until_next_day
from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.reply import Body, HttpReply, read_body
from citeloop.channels.scrubbing import looks_like_key, scrub

_NEVER = re.compile(r"(?!)")
_WINDOW_RESET = timedelta(hours=1)
_SERVER_ERRORS = frozenset(range(500, 600))


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Rule:
    """Fits when a code or the words or the status match, and the status is one of `within` (if given)."""

    fault: Fault
    codes: re.Pattern[str] = _NEVER
    words: re.Pattern[str] = _NEVER
    statuses: frozenset[int] = frozenset()
    within: frozenset[int] | None = None
    change: str = ""

    def fits(self, complaint: Complaint) -> bool:
        if self.within is not None and complaint.status not in self.within:
            return False
        return (
            complaint.status in self.statuses
            or complaint.has_code(self.codes)
            or bool(self.words.search(complaint.message))
        )


_BELOW_500 = frozenset(range(500))
_LIMITING = frozenset({200, 403, 429})
_DAILY = _Rule(
    Fault.EXHAUSTED,
    codes=_any(r"^13(04|08|10)$", r"daily", r"perday", r"^QUOTA_USER"),
    words=_any(r"\bper[- ]?(day|week|month)\b", r"\bdaily\b", r"\bweekly\b", r"每日|每天|当日|今日|每周|每月|使用上限"),
    within=_LIMITING,
)
_MONEY = _Rule(
    Fault.EXHAUSTED,
    codes=_any(
        r"^insufficient_(quota|balance|user_quota|credits?)$",
        r"^credit_balance_exhausted$",
        r"^exceeded_current_quota",
        r"arrearage",
        r"overdue",
        r"^(InvalidSubscription|InvalidAccountStatus|SetLimitExceeded)$",
        r"insufficient_balance",
        r"^billing_(error|hard_limit)",
        r"^1113$",
    ),
    words=_any(
        r"insufficient (account )?(balance|funds|credits?)",
        r"balance is (too low|not enough|insufficient)",
        r"(credits?|balance) (is |are |has |have )?(been )?(exhausted|depleted|used up)",
        r"\bno (prepaid )?credits\b",
        r"out of credits",
        r"no budget left",
        r"spending (cap|limit)",
        r"plan and billing details",
        r"overdue balance",
        r"in good standing",
        r"payment required",
        r"please recharge",
        r"free allocated quota exceeded",
        r"欠费|余额不足|余额为|余量已用尽|请充值|账户异常",
    ),
    statuses=frozenset({402}),
)
_RULES: tuple[_Rule, ...] = (
    # Gemini words every limit as "You exceeded your current quota … plan and billing".
    _Rule(Fault.INVALID, words=_any(r"\blimit: 0\b"), within=frozenset({429})),
    _DAILY,
    _Rule(Fault.RATE_LIMITED, codes=_any(r"^RESOURCE_EXHAUSTED$"), words=_any(r"allocated quota exceeded, please")),
    _MONEY,
    _Rule(
        Fault.REFUSED,
        codes=_any(
            r"content_?(filter|policy)",
            r"data_?inspection",
            r"sensitive",
            r"riskdetection",
            r"policyviolation",
            r"moderation",
            r"privacyinformation",
            r"safety",
            r"^1301$",
        ),
        words=_any(
            r"content (management )?polic",
            r"inappropriate content",
            r"sensitive (content|information|words?)",
            r"content ?security",
            r"content exists risk",
            r"safety system",
            r"敏感(内容|信息|词)|不安全或敏感|违规内容",
        ),
        within=_BELOW_500,
    ),
    _Rule(
        Fault.UNAUTHORIZED,
        codes=_any(r"invalid_(api_key|iam_token)", r"^authentication", r"^100[0-4]$", r"^InvalidApiKey$"),
        words=_any(r"(invalid|incorrect) api[- ]?key", r"api key not valid", r"authentication fail"),
        statuses=frozenset({401}),
    ),
    _Rule(
        Fault.OVERLOADED,
        codes=_any(r"overload", r"^13(05|12)$", r"insufficient_system_resource"),
        words=_any(r"\boverloaded\b", r"at capacity", r"(系统|服务|模型)繁忙"),
    ),
    _Rule(
        Fault.RATE_LIMITED,
        codes=_any(
            r"rate_?limit",
            r"throttl",
            r"too_?many",
            r"burst",
            r"requestlimitexceeded",
            r"^limit_requests$",
            r"^slow_down$",
            r"^130[23]$",
            r"inflight",
        ),
        words=_any(r"rate limit", r"too many requests", r"max rpm", r"请求过于频繁|频率上限|并发数过高"),
        statuses=frozenset({429}),
    ),
    _Rule(Fault.OVERLOADED, statuses=frozenset({503, 529})),
    _Rule(
        Fault.INVALID,
        codes=_any(r"context_length", r"^1261$", r"(tokens|characters)_too_long"),
        words=_any(r"context (length|window|overflow)", r"too (long|many tokens)", r"range of input length", r"超长"),
        statuses=frozenset({413}),
        within=_BELOW_500,
        change="shorten_input",
    ),
    _Rule(
        Fault.INVALID,
        words=_any(r"max_completion_tokens.{0,20} instead"),
        within=_BELOW_500,
        change="max_completion_tokens",
    ),
    _Rule(
        Fault.INVALID,
        words=_any(r"enable_thinking.{0,60}non-streaming"),
        within=_BELOW_500,
        change="stream_or_disable_thinking",
    ),
    _Rule(Fault.INVALID, words=_any(r"invalid temperature"), within=_BELOW_500, change="drop_temperature"),
    _Rule(Fault.UNAUTHORIZED, codes=_any(r"permissiondenied", r"accessdenied"), statuses=frozenset({403, 407})),
    _Rule(Fault.INVALID, codes=_any(r"invalid", r"missingparameter", r"^12(11|14)$"), within=_BELOW_500),
    _Rule(Fault.TIMED_OUT, statuses=frozenset({408, 504, 522, 524})),
    _Rule(Fault.UNAVAILABLE, statuses=_SERVER_ERRORS | {409, 425}),
    _Rule(Fault.INVALID, within=frozenset(range(400, 500)), words=_any(r"")),
    _Rule(Fault.UNAVAILABLE, words=_any(r"")),
)
_RETRIED = frozenset({Fault.RATE_LIMITED, Fault.OVERLOADED, Fault.TIMED_OUT, Fault.UNAVAILABLE})
_STANDING_QUOTA = _any(r"\bquota\b")
_MINUTE_LIMIT = _any(r"per[- ]minute", r"\b[rt]pm\b", r"throttl", r"rate")


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


def garbled(reply: HttpReply, problem: str, *, change: str = "") -> ChannelError:
    return fault(Fault.GARBLED, reply, problem, change=change)


def fault(kind: Fault, reply: HttpReply, problem: str, *, change: str = "") -> ChannelError:
    """A ChannelError about `reply`, its message scrubbed."""
    return ChannelError(kind, scrub(problem), status=reply.status, request_id=request_id(reply), change=change)


def request_id(reply: HttpReply, payload: JsonValue = None) -> str:
    """The provider's name for this call, by which its support finds it."""
    names = ("x-request-id", "x-deepseek-request-id", "request-id", "x-trace-id", "x-dashscope-request-id", "cf-ray")
    found = next((reply.headers[name] for name in names if reply.headers.get(name)), "")
    if not found and isinstance(payload, dict):
        found = next((v for k in ("request_id", "id") if isinstance(v := payload.get(k), str) and v), "")
    found = re.sub(r"[^\w.:/+=-]", "", found)[:100]
    return "" if looks_like_key(found) else found


def _judged(complaint: Complaint, reply: HttpReply) -> ChannelError:
    rule = next(rule for rule in _RULES if rule.fits(complaint))
    kind = rule.fault
    delay = header_delay(complaint.headers, reply.received_at) or text_delay(complaint.message)
    should_retry = complaint.headers.get("x-should-retry", "").lower()
    if rule is _DAILY:
        delay = delay or _until_reset(complaint, reply)
    elif rule is _MONEY:
        delay = None
    elif kind is Fault.RATE_LIMITED and delay is None and _is_standing_quota(complaint):
        kind = Fault.EXHAUSTED
    elif should_retry == "false" and kind in _RETRIED:
        kind = Fault.EXHAUSTED if kind is Fault.RATE_LIMITED else Fault.INVALID
    elif should_retry == "true" and kind is Fault.INVALID:
        kind = Fault.UNAVAILABLE
    return ChannelError(
        kind,
        scrub(complaint.headline),
        delay=delay,
        status=reply.status,
        request_id=request_id(reply),
        change=rule.change,
    )


def _is_standing_quota(complaint: Complaint) -> bool:
    """A 429 that names a quota and no delay needs a person (OpenAI's schema says so of a missing Retry-After)."""
    if complaint.status != 429 or not _STANDING_QUOTA.search(complaint.message):  # noqa: PLR2004
        return False
    return not _MINUTE_LIMIT.search(complaint.message) and not complaint.has_code(
        _any(r"throttl", r"rate", r"RESOURCE_EXHAUSTED")
    )


def _until_reset(complaint: Complaint, reply: HttpReply) -> timedelta:
    named = reset_delay(complaint.headers, complaint.message, reply.received_at)
    if named is not None:
        return named
    if "小时" in complaint.message or "hour" in complaint.message.lower():
        return _WINDOW_RESET
    return until_next_day(reply.received_at)


def _redirected(reply: HttpReply) -> ChannelError:
    target = reply.headers.get("location", "").split("?")[0].split("#")[0]
    return fault(
        Fault.INVALID,
        reply,
        f"HTTP {reply.status}: redirected to {target or 'nowhere'}; redirects are not followed, "
        "so set base_url to the final address",
    )
