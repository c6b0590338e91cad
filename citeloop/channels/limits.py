"""Limits and empty purses, told apart by what ends them: a payment, the next day, the next minute."""

from citeloop.channels.errors import Fault
from citeloop.channels.ruling import Rule, any_of

_LIMITING = frozenset({200, 403, 429})
_REFUSING = frozenset({200, 400, 401, 402, 403, 429})
_BUDGET = r"(?<!thinking )(?<!reasoning )(?<!token )\bbudget"
_QUOTA = r"\b(quota|allowance)\b"
RATE_WORDS = any_of(
    r"\brate[- _]?(limit|quota|exceeded)", r"too many (concurrent )?requests",
    r"\b(requests?|tokens|calls|queries)( per|/| / )",
    r"\bper[- ]?(min|sec)", r"/ ?(min|sec|minute|second)\b", r"\b[rt]pm\b", r"throttl", r"concurren", r"\bqps\b",
    r"\b(this|an?|each|one) (minute|second)\b", r"\bminute[- ](limit|quota)",
    r"每分钟|每秒|/分钟|频率|速率|频繁|并发|限流",
)  # fmt: skip
"""Of a limit that time alone lifts, whatever it advises to buy."""
RATE_CODES = any_of(r"throttl", r"rate", r"RESOURCE_EXHAUSTED")
MINUTELY = Rule(
    Fault.RATE_LIMITED,
    words=any_of(r"rate limit (exceeded|reached).{0,80}?\bper[- ]min"),
    within=_LIMITING,
)
"""Names its window before it speaks of what a day would hold for those who pay."""
DAILY = Rule(
    Fault.EXHAUSTED,
    codes=any_of(
        r"^13(04|08|10)$", r"daily", r"perday", r"^QUOTA_USER", r"_per_day$", r"^base_resp:2056$",
        r"^usage_limit_(reached|exceeded)$",
    ),
    words=any_of(
        r"\bper[- ]?(day|week|month)\b", r"\b\d{1,12} ?([a-z]{1,20} ){0,2}([a-z]{1,20} ?)?/ ?(day|week|month)\b",
        r"\bdaily\b", r"\bweekly\b", r"\b[rt]pd\b", r"\d+[- ]hour (usage )?limit",
        r"\busage limit (has been |was |is )?(reached|exceeded)", r"(hit|reached|exceeded) your usage limit",
        r"每日|每天|当日|今日|当天|每周|每月|使用上限|小时(内)?的?(用量|额度|限额)",
    ),
    within=_LIMITING,
    unless=any_of(r"[$€£¥￥] ?\d[\d.,]* ?(/|per)"),
)  # fmt: skip
HOURLY = Rule(
    Fault.RATE_LIMITED, words=any_of(r"\bper[- ]?hour\b", r"\bhourly\b", r"每小时"), within=frozenset({403, 429})
)
MONEY = Rule(
    Fault.EXHAUSTED,
    codes=any_of(
        r"^insufficient_(user_quota|balance|credits?|funds|fund)$", r"^credit_balance_exhausted$",
        r"arrearage", r"overdue", r"^(InvalidSubscription|InvalidAccountStatus|SetLimitExceeded)$",
        r"insufficient_?(account_?)?balance", r"^billing_", r"^exceeded_current_quota", r"^13(09|13)$",
        r"^11(1[0-3]|21)$", r"FreeTierOnly", r"(ResourcePack|Resource)Exhausted$", r"^CommodityNotPurchased$",
        r"not_?enough_?(credit|balance|quota)", r"^payment_required$", r"^base_resp:1008$",
        r"budget_?(limit_?)?(exceeded|exhausted)|exceeded_?(\w+_?)?budget|over_?budget",
        r"(credit|spend|spending|cost)s?_?limit_?(exceeded|reached)", r"^(no|out_of|insufficient|not_enough)_credits?$",
        r"^credits?_?(exhausted|depleted|required)$", r"^balance_(insufficient|not_enough|exhausted|negative)$",
        r"^(negative|low|no|zero)_balance$", r"^payment_(method_)?(required|failed|overdue)$",
        r"^(subscription|trial|plan|free_trial)_(expired|inactive|ended|canceled|cancelled)$",
    ),
    words=any_of(
        r"insufficient (account |user |api |wallet |prepaid )?(balance|funds?|credits?)",
        r"(balance|credits?|funds).{0,12} (too low|not enough|insufficient|not sufficient|negative)",
        r"(balance|credits?|funds).{0,12} below (zero|0|minimum)",
        r"negative (account )?balance|balance (is|of) -?[0$¥￥]|\bno (available |remaining )?balance|wallet is empty",
        r"(credits?|balance|free tier.{0,20}) (is |are |has |have )?(been )?(exhausted|depleted|used up|run out)",
        r"\bno (more |prepaid |remaining |available )?credits?\b", r"(out|run out) of (credits?|funds|balance)",
        r"(n.t|not) have (any|enough|sufficient)( \w+)? (credits?|funds|balance)", r"lack(s|ing)? (credits?|funds)",
        r"used (up )?(all|your) (\w+ ){0,3}credits", r"(more|not enough|insufficient) credits",
        r"exceeded (your|the|its) (\w+ ){0,3}(credits|budget|spend)",
        r"credit limit (is |has been )?(exceeded|reached)",
        r"no budget left|out of budget", r"spend(ing)? (cap|limit)",
        r"regain access", r"reached your specified api usage", r"\boverdue\b",
        r"in good standing", r"payment (is )?(required|failed)", r"(please |^)(recharge|top[- ]?up)",
        r"billing (to be |is not |has not been |not |isn.t |is )(enabled|active|activated|disabled)",
        r"(enable|activate|set up) billing", r"billing account .{0,40}(disabled|closed|not active|inactive)",
        r"free (allocated )?quota.{0,12}(exceeded|exhausted|used up)", r"in arrears", r"\bunpaid\b",
        r"card (was |has been )?declined",
        r"(subscription|plan|free trial|trial period) (is |has )?(expired|ended|inactive|been cancell?ed)",
        r"欠费|欠款|透支|余额(已经?)?(不足|不够|过低|耗尽|用[尽完光]|为|已|小于|低于|[:：] ?-)|额度为 ?0"
        r"|(资金|点数|积分|算力|费用)不足|余量已用尽"
        r"|(请|需要?)(先|尽快|及时)?(充值|续费|缴费)|账户异常|预扣费|逾期|停服"
        r"|(超出|超过|超支).{0,6}预算|预算.{0,6}(用[尽完]|耗尽|不足|超)|没有(可用的?)?(余额|额度|点数)"
        r"|(资源包|套餐|免费额度).{0,8}(用[尽完光]|耗尽|到期|过期)",
    ),
    statuses=frozenset({402}),
)  # fmt: skip
ALLOWANCE = Rule(
    Fault.EXHAUSTED,
    codes=any_of(r"^(api_?)?key_?limit_?(exceeded|reached)$"),
    words=any_of(
        rf"{_BUDGET}\b.{{0,20}}\b(exceeded|reached|exhausted|used up|spent)",
        rf"(exceed(s|ed|ing)?|over|reached).{{0,25}}{_BUDGET}\b",
        r"\bkey (spending |credit )?(limit|cap) (is |has been )?(exceeded|reached)",
        r"(purchase|need|add|buy|top up) (\w+ ){0,2}credits", r"(credits|funds) to continue",
        r"\badd (funds|a payment method)",
        r"upgrade (to a paid|your (billing|subscription))", r"购买(更多)?(额度|点数|套餐|资源包)",
    ),
    within=_REFUSING,
    unless=RATE_WORDS,
)  # fmt: skip
"""Somebody's budget, or advice to pay: a rate limit gives it as well, so its own words are heard first."""
VAGUE_MONEY = Rule(
    Fault.EXHAUSTED,
    codes=any_of(r"^insufficient_quota$", r"^QuotaExceeded$"),
    words=any_of(r"plan and billing details"),
)
"""Also the words of Gemini and DashScope for a limit per minute; those are told apart before."""
QUOTA = Rule(
    Fault.EXHAUSTED,
    codes=any_of(r"quota_?(exceeded|exhausted|reached)", r"(exceeded|out_of|no)_?quota$"),
    words=any_of(
        rf"{_QUOTA}.{{0,30}}\b(exceeded|exhausted|depleted|used up|reached|reset|resets|replenished|run out)\b",
        rf"\b(exceed(s|ed|ing)?|exhausted|used up|reached|out of|insufficient|not enough|no)\b.{{0,30}}{_QUOTA}",
        r"(配额|额度|限额)(已经?|被)?(超限|超出|超额|不足|不够|用[尽完光]|耗尽|达到?上限)|(超出|超过|达到).{0,8}(配额|额度|限额)",
        r"(次数|用量)(已经?)?(用[尽完光]|耗尽)",
    ),
    within=_REFUSING,
    unless=RATE_WORDS,
    unless_codes=RATE_CODES,
)  # fmt: skip
"""A standing quota: a 403 that speaks of one is no matter of the key."""
UNPAID = (MONEY, ALLOWANCE)
"""What no waiting ends, whatever delay the reply names."""
