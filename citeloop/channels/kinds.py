"""The table by which a complaint is told apart: read from top to bottom, money before status.

The order and the words come from real replies; tests/channels/wire_faults.jsonl holds them with their sources.
"""

from citeloop.channels.complaints import Complaint
from citeloop.channels.errors import Fault, Remedy
from citeloop.channels.limits import ALLOWANCE, DAILY, HOURLY, MINUTELY, MONEY, QUOTA, RATE_WORDS, VAGUE_MONEY
from citeloop.channels.ruling import Rule, any_of

_ALWAYS = any_of("")
_BELOW_500 = frozenset(range(500))


def rule_for(complaint: Complaint) -> Rule:
    return next(rule for rule in _RULES if rule.fits(complaint))


_PARAMETERS = (
    "temperature|top_p|top_k|presence_penalty|frequency_penalty|stop|seed|n|logprobs|logit_bias|reasoning_effort"
    "|response_format|stream_options|tool_choice|parallel_tool_calls|verbosity|thinking|stream"
)
_RULES: tuple[Rule, ...] = (
    # Gemini words every limit as "You exceeded your current quota … plan and billing".
    Rule(Fault.INVALID, words=any_of(r"\blimit: 0\b"), within=frozenset({429})),
    MINUTELY,
    DAILY,
    MONEY,
    ALLOWANCE,
    HOURLY,
    Rule(
        Fault.RATE_LIMITED,
        codes=any_of(r"^RESOURCE_EXHAUSTED$"),
        words=any_of(r"allocated quota exceeded, please", r"resource has been exhausted"),
    ),
    VAGUE_MONEY,
    QUOTA,
    Rule(
        Fault.REFUSED,
        codes=any_of(
            r"content_?(filter|policy)", r"data_?inspection", r"sensitive", r"riskdetection", r"policyviolation",
            r"moderation", r"privacyinformation", r"safety", r"^130[01]$", r"illegaldetected", r"responsible_?ai",
            r"^base_resp:102[67]$", r"prohibited_?content", r"^blocklist$",
        ),
        words=any_of(r"content exists risk", r"considered high risk", r"new_sensitive",
                     r"敏感(内容|信息|词)|不安全或敏感"),
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
        words=any_of(r"api[-_ ]?(key|token)( is| has| was)?( been)? (expired|invalid|revoked|disabled|deleted)"),
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
            r"invalid_(api_key|iam_token)", r"^authentication", r"^authfailure", r"^InvalidApiKey$",
            r"^base_resp:(1004|2049)$", r"^unauthori[sz]ed$",
        ),
        words=any_of(
            r"(invalid|incorrect|missing|no) api[- ]?key", r"api[- ]?key.{0,6}( not valid| invalid| expired)",
            r"authentication fail", r"\bunauthori[sz]ed\b", r"\blogin fail",
            r"无效的令牌|无效的? ?api ?key|鉴权失败|身份验证失败",
        ),
        statuses=frozenset({401}),
    ),
    # Zhipu's numbers, which others give to other things.
    Rule(Fault.UNAUTHORIZED, codes=any_of(r"^100[0-4]$"), unless=RATE_WORDS),
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
            r"^base_resp:(1002|1039|1041|2045)$",
        ),
        words=any_of(
            r"rate[- ]limit", r"too many (concurrent )?requests", r"max (rpm|tpm|concurrency)", r"\bqps\b",
            r"concurrency (limit|exceeded)", r"slow down", r"(requests?|tokens) per (min|sec)",
            r"请求(过于|太)频繁|频率(上限|限制|过高|超(限|出))|并发(数|量)?(过高|超限|已?达)|限流|请求数过多|速率限制"
            r"|(并发|每分钟|每秒).{0,8}(额度|配额|上限|限制)",
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
    Rule(
        Fault.INVALID,
        codes=any_of(r"invalid", r"missingparameter", r"^12(1\d|2[0-2])$", r"^base_resp:(1042|20(13|37|42|61))$"),
        within=_BELOW_500,
    ),
    Rule(Fault.TIMED_OUT, codes=any_of(r"^base_resp:1001$"), statuses=frozenset({408, 504, 522, 524})),
    Rule(Fault.UNAVAILABLE, statuses=frozenset(range(500, 600)) | {409, 425, 499}),
    Rule(Fault.INVALID, within=frozenset(range(400, 500)), words=_ALWAYS),
    Rule(Fault.UNAVAILABLE, words=_ALWAYS),
)  # fmt: skip
