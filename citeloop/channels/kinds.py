"""The table by which a complaint is told apart: read from top to bottom, money before status.

The order and the words come from real replies; tests/channels/wire_faults.jsonl holds them with their sources.
"""

import re
from dataclasses import dataclass

from citeloop.channels.complaints import Complaint
from citeloop.channels.errors import Fault, Remedy

_NEVER = re.compile(r"(?!)")
_ALWAYS = re.compile(r"")


def any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Rule:
    """Fits when a code or the words or the status match, and the status is one of `within` (if given).

    change: may hold `{}` for the group of `words` that matched.
    """

    fault: Fault
    codes: re.Pattern[str] = _NEVER
    words: re.Pattern[str] = _NEVER
    statuses: frozenset[int] = frozenset()
    within: frozenset[int] | None = None
    change: str = ""
    remedy: Remedy | None = None

    def fits(self, complaint: Complaint) -> bool:
        if self.within is not None and complaint.status not in self.within:
            return False
        return (
            complaint.status in self.statuses
            or complaint.has_code(self.codes)
            or bool(self.words.search(complaint.message))
        )

    def change_for(self, complaint: Complaint) -> str:
        if "{}" not in self.change:
            return self.change
        found = self.words.search(complaint.message)
        named = next((group for group in found.groups() if group), "") if found else ""
        return self.change.format(named.lower()) if named else ""


def rule_for(complaint: Complaint) -> Rule:
    return next(rule for rule in _RULES if rule.fits(complaint))


_BELOW_500 = frozenset(range(500))
_LIMITING = frozenset({200, 403, 429})
DAILY = Rule(
    Fault.EXHAUSTED,
    codes=any_of(r"^13(04|08|10)$", r"daily", r"perday", r"^QUOTA_USER", r"_per_day$"),
    words=any_of(
        r"\bper[- ]?(day|week|month)\b", r"\bdaily\b", r"\bweekly\b", r"\b[rt]pd\b", r"\d+[- ]hour (usage )?limit",
        r"每日|每天|当日|今日|当天|每周|每月|使用上限|小时(内)?的?(用量|额度|限额)",
    ),
    within=_LIMITING,
)  # fmt: skip
HOURLY = Rule(
    Fault.RATE_LIMITED, words=any_of(r"\bper[- ]?hour\b", r"\bhourly\b", r"每小时"), within=frozenset({403, 429})
)
MONEY = Rule(
    Fault.EXHAUSTED,
    codes=any_of(
        r"^insufficient_(user_quota|balance|credits?|funds)$", r"^credit_balance_exhausted$",
        r"arrearage", r"overdue", r"^(InvalidSubscription|InvalidAccountStatus|SetLimitExceeded)$",
        r"insufficient_?balance", r"^billing_(error|hard_limit)", r"^exceeded_current_quota", r"^13(09|13)$",
        r"^11(1[0-3]|21)$", r"FreeTierOnly", r"(ResourcePack|Resource)Exhausted$", r"^CommodityNotPurchased$",
        r"not_?enough_?(credit|balance)", r"^payment_required$",
    ),
    words=any_of(
        r"insufficient (account |user |api )?(balance|funds|credits?)",
        r"balance.{0,12} (too low|not enough|insufficient)",
        r"(credits?|balance|free tier.{0,20}) (is |are |has |have )?(been )?(exhausted|depleted|used up)",
        r"\bno (prepaid |remaining )?credits\b", r"out of credits", r"(more|not enough|need|add|buy) credits",
        r"no budget left", r"spend(ing)? (cap|limit)", r"budget (limit|cap)?.{0,10}(exceeded|reached)",
        r"regain access", r"reached your specified api usage", r"\boverdue\b",
        r"in good standing", r"payment (is )?required", r"(please |^)(recharge|top[- ]?up)",
        r"free (allocated )?quota.{0,12}(exceeded|exhausted|used up)", r"in arrears", r"unpaid",
        r"欠费|余额不足|余额为|余额已|余量已用尽|请(先)?(充值|续费)|账户异常|额度(不足|已用[尽完]|已耗尽|用[尽完])|预扣费|逾期|停服"
        r"|资源包.{0,8}(用[尽完]|耗尽|到期)|套餐.{0,8}(用[尽完]|耗尽|到期|过期)",
    ),
    statuses=frozenset({402}),
)  # fmt: skip
VAGUE_MONEY = Rule(
    Fault.EXHAUSTED,
    codes=any_of(r"^insufficient_quota$", r"^QuotaExceeded$"),
    words=any_of(r"plan and billing details"),
)
"""Also the words of Gemini and DashScope for a limit per minute; those are told apart before."""
_PARAMETERS = (
    "temperature|top_p|top_k|presence_penalty|frequency_penalty|stop|seed|n|logprobs|logit_bias|reasoning_effort"
    "|response_format|stream_options|tool_choice|parallel_tool_calls|verbosity|thinking|stream"
)
_RULES: tuple[Rule, ...] = (
    # Gemini words every limit as "You exceeded your current quota … plan and billing".
    Rule(Fault.INVALID, words=any_of(r"\blimit: 0\b"), within=frozenset({429})),
    DAILY,
    MONEY,
    HOURLY,
    Rule(Fault.RATE_LIMITED, codes=any_of(r"^RESOURCE_EXHAUSTED$"), words=any_of(r"allocated quota exceeded, please")),
    VAGUE_MONEY,
    Rule(
        Fault.REFUSED,
        codes=any_of(
            r"content_?(filter|policy)", r"data_?inspection", r"sensitive", r"riskdetection", r"policyviolation",
            r"moderation", r"privacyinformation", r"safety", r"^130[01]$", r"illegaldetected", r"responsible_?ai",
        ),
        words=any_of(r"content exists risk", r"considered high risk", r"敏感(内容|信息|词)|不安全或敏感"),
    ),
    Rule(
        Fault.REFUSED,
        words=any_of(
            r"content (management )?polic", r"(inappropriate|prohibited|unsafe|harmful) content",
            r"sensitive (content|information|words?)", r"content ?security", r"content filter",
            r"usage polic", r"safety (system|filter)", r"\bflagged\b",
            r"违规内容|内容(违规|安全)|违禁|审核(不|未)通过|不合规|违反.{0,12}(政策|规定|法规|法律)|涉及敏感",
        ),
        within=_BELOW_500,
    ),
    Rule(
        Fault.UNAUTHORIZED,
        codes=any_of(r"^TOKEN_EXPIRED$", r"^INVALID_JWT$", r"^(token|jwt)_?expired$"),
        words=any_of(r"(jwt|token)( is| has)? (been )?expired", r"token.{0,6}(已)?过期"),
        within=_BELOW_500,
        remedy=Remedy.REFRESH_TOKEN,
    ),
    Rule(
        Fault.UNAUTHORIZED,
        codes=any_of(
            r"invalid_(api_key|iam_token)", r"^authentication", r"^authfailure", r"^100[0-4]$", r"^InvalidApiKey$",
        ),
        words=any_of(
            r"(invalid|incorrect|missing|no) api[- ]?key", r"api[- ]?key.{0,6}( not valid| invalid| expired)",
            r"authentication fail", r"无效的令牌|无效的? ?api ?key|鉴权失败|身份验证失败",
        ),
        statuses=frozenset({401}),
    ),
    Rule(
        Fault.INVALID,
        words=any_of(r"request too large.{0,120}token", r"must be reduced in order to run"),
        within=_BELOW_500,
        change="shorten_input",
    ),
    Rule(
        Fault.OVERLOADED,
        codes=any_of(r"overload", r"^13(05|12)$", r"insufficient_system_resource", r"ServerLimitExceeded$"),
        words=any_of(
            r"\boverloaded\b", r"(at|over|insufficient|no) capacity", r"server (is )?busy", r"high (demand|load)",
            r"(系统|服务器?|模型|网络)(繁忙|过载)|负载(已)?(饱和|过高|较高)|访问量过大|资源不足",
        ),
    ),
    Rule(
        Fault.RATE_LIMITED,
        codes=any_of(
            r"rate_?limit", r"throttl", r"too_?many", r"burst", r"requestlimitexceeded", r"requests_exceeded",
            r"^limit_requests$", r"^slow_down$", r"^130[23]$", r"inflight", r"_qps$", r"^LimitExceeded$",
        ),
        words=any_of(
            r"rate[- ]limit", r"too many (concurrent )?requests", r"max (rpm|tpm|concurrency)", r"\bqps\b",
            r"concurrency (limit|exceeded)", r"slow down",
            r"请求(过于|太)频繁|频率(上限|限制|过高|超限)|并发(数|量)?(过高|超限|已?达)|限流|请求数过多|速率限制",
        ),
        statuses=frozenset({429}),
    ),
    Rule(Fault.OVERLOADED, statuses=frozenset({503, 529})),
    Rule(
        Fault.INVALID,
        codes=any_of(r"context_length", r"^1261$", r"(tokens|characters|prompt|input)_too_long", r"context_window"),
        words=any_of(
            r"context (length|window)", r"(prompt|input|message|context|text|request)s? (is |are )?too (long|large)",
            r"too many (input )?tokens", r"range of input length",
            r"(max|maximum) (input|prompt) (length|characters|tokens)",
            r"(the )?max input characters", r"exceeds? the (maximum|max|limit).{0,20}(length|tokens|characters)",
            r"(prompt|输入|上下文|请求|文本|内容).{0,10}(超长|过长|太长)|超(出|过).{0,12}(长度|上下文|token)",
        ),
        statuses=frozenset({413}),
        within=_BELOW_500,
        change="shorten_input",
    ),
    Rule(Fault.INVALID, words=any_of(r"context overflow"), within=_BELOW_500),
    Rule(
        Fault.INVALID,
        words=any_of(r"max_completion_tokens.{0,20} instead"),
        within=_BELOW_500,
        change="max_completion_tokens",
    ),
    Rule(
        Fault.INVALID,
        words=any_of(r"enable_thinking.{0,60}non-?streaming"),
        within=_BELOW_500,
        change="stream_or_disable_thinking",
    ),
    Rule(
        Fault.INVALID,
        words=any_of(
            r"only supports? stream", r"non-?stream\w*.{0,40}(not support|unsupported)", r"仅支持流式",
            r"(only|must).{0,30}stream.{0,10}(true|mode)",
        ),
        within=_BELOW_500,
        change="stream",
    ),
    Rule(
        Fault.INVALID,
        words=any_of(
            rf"unsupported (?:parameter|value)\W{{1,3}}({_PARAMETERS})\b",
            r"invalid (temperature)", r"(temperature).{0,40}(?:only|not support|must be 1\b)",
        ),
        within=_BELOW_500,
        change="drop_{}",
    ),
    Rule(
        Fault.UNAUTHORIZED,
        codes=any_of(r"permission_?denied", r"access_?denied", r"^forbidden$"),
        statuses=frozenset({403, 407}),
    ),
    Rule(Fault.INVALID, codes=any_of(r"invalid", r"missingparameter", r"^12(1\d|2[0-2])$"), within=_BELOW_500),
    Rule(Fault.TIMED_OUT, statuses=frozenset({408, 504, 522, 524})),
    Rule(Fault.UNAVAILABLE, statuses=frozenset(range(500, 600)) | {409, 425, 499}),
    Rule(Fault.INVALID, within=frozenset(range(400, 500)), words=_ALWAYS),
    Rule(Fault.UNAVAILABLE, words=_ALWAYS),
)  # fmt: skip
