"""Money and quota are told from a rate limit by their words, in English and in Chinese, and in both directions."""
# ruff: noqa: E501 - one reply, one line

import json
from datetime import UTC, datetime

import pytest

from citeloop.channels.errors import Fault
from citeloop.channels.handling import Judgement
from citeloop.channels.reply import HttpReply
from citeloop.channels.services import judgement

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)


def judged(status: int, message: str, code: object = None) -> Judgement:
    body = json.dumps({"error": {"message": message, "code": code}}, ensure_ascii=False)
    return judgement("some-gateway", HttpReply(status, {}, body.encode(), NOW))


@pytest.mark.parametrize("status", [403, 429])
@pytest.mark.parametrize(
    "code",
    [
        "billing_not_active", "billing_disabled", "billing_hard_limit_reached", "budget_exceeded", "exceeded_budget",
        "ExceededTokenBudget", "credit_limit_exceeded", "spending_limit_reached", "key_limit_exceeded", "no_credits",
        "credits_exhausted", "insufficient_credit", "negative_balance", "payment_method_required",
        "subscription_expired", "trial_expired", "quota_exhausted", "exceeded_quota",
    ],
)  # fmt: skip
def test_a_code_that_names_money_pauses_the_channel(status: int, code: str) -> None:
    assert judged(status, "x", code).handling == "pause_channel"


@pytest.mark.parametrize("status", [400, 403, 429])
@pytest.mark.parametrize(
    "message",
    [
        "Team search has exceeded its monthly budget",
        "Budget has been exceeded! Current cost: 10.2, max budget: 10",
        "Your newly created team doesn't have any credits yet. You can purchase credits on the console.",
        "Please purchase credits.",
        "Insufficient credits. Add more in your settings.",
        "You do not have enough credits",
        "You have run out of credits or hit your maximum monthly spend.",
        "Your team has either used all available credits or reached its monthly spending limit.",
        "You have exceeded your monthly included credits.",
        "Not enough credits", "You have no credits left", "Credit limit exceeded, please visit your billing page",
        "Key limit exceeded (total limit). Manage it in your settings.",
        "This API method requires billing to be enabled.",
        "Billing is not active for this organisation", "The billing account of this project is disabled",
        "Your account balance is negative", "Negative balance", "Sorry, your account balance is insufficient",
        "Your prepaid balance has run out", "Your balance is below zero", "Payment failed", "Your free trial has expired",
        "You have exceeded your quota", "The quota has been exhausted", "Your API quota was used up", "Out of quota",
        "quota exceeded", "Not enough quota for this key",
        "Monthly token allowance exhausted", "No available balance", "Your plan has expired", "Your card was declined",
        "余额不够，请联系管理员", "账户余额为负", "账户余额：-3.20", "账号余额小于0", "可用额度为0", "余额已耗尽", "您的账号已欠款", "账户已透支", "资金不足", "请尽快充值", "额度不足",
        "本月预算已用完", "已超出预算", "没有可用额度", "免费额度已用光", "积分不足", "配额已用尽", "配额超限", "调用次数已用完",
    ],
)  # fmt: skip
def test_words_of_money_or_a_standing_quota_pause_the_channel_whatever_the_status(status: int, message: str) -> None:
    found = judged(status, message)
    assert (found.handling, found.kind) == ("pause_channel", Fault.EXHAUSTED), found


@pytest.mark.parametrize("status", [403, 429])
@pytest.mark.parametrize(
    "message",
    [
        "Rate limit exceeded", "Too many requests", "Too many requests. Purchase credits to raise your limit.",
        "Rate limit exceeded: free-models-per-min. Add 10 credits to unlock 1000 free model requests per day",
        "Rate limit reached for m on tokens per min (TPM): Limit 30000, Used 29000. Add funds to increase your limit.",
        "Rate limit reached for m on requests per min. Limit: 3 / min. Please add a payment method, see account/billing.",
        "Requests per minute exceeded", "You have exceeded your quota of 60 requests per minute",
        "Quota exceeded for metric 'requests per minute'", "Tokens per min quota exhausted",
        "API key limit exceeded: 60 requests per minute", "Token budget exceeded: 10000 tokens per minute",
        "You have exceeded the token rate limit of your current pricing tier",
        "请求过于频繁，每分钟额度已达上限", "请求频率超出配额，请购买更多额度", "并发数已达配额上限", "触发限流，超出额度", "当前并发额度不足",
    ],
)  # fmt: skip
def test_a_plain_rate_limit_stays_one_whatever_it_advises_to_buy(status: int, message: str) -> None:
    found = judged(status, message)
    assert (found.handling, found.kind) == ("retry_backoff", Fault.RATE_LIMITED), found


@pytest.mark.parametrize("code", ["rate_limit_exceeded", "rate_limit_error", "Throttling.RateQuota"])
def test_a_code_of_a_rate_outweighs_a_quota_that_only_the_words_name(code: str) -> None:
    assert judged(429, "Quota exceeded", code).handling == "retry_backoff"
    assert judged(429, "Monthly budget exceeded", code).handling == "pause_channel"


@pytest.mark.parametrize(
    "message",
    ["limited to 40 API calls / minute", "tokens per min", "Resource has been exhausted (e.g. check quota).", ""],
)
def test_what_names_neither_money_nor_a_standing_quota_under_429_is_a_rate_limit(message: str) -> None:
    assert judged(429, message).kind == Fault.RATE_LIMITED


@pytest.mark.parametrize(
    "message", ["You have no access to this model", "Forbidden", "thinking budget exceeded", "无权限"]
)
def test_a_403_without_such_words_is_still_a_matter_of_the_key(message: str) -> None:
    assert judged(403, message).kind == Fault.UNAUTHORIZED


@pytest.mark.parametrize("status", [403, 429])
@pytest.mark.parametrize(
    ("message", "seconds", "handling"),
    [
        ("Quota exceeded. Your quota will reset at 2026-11-30T12:00:00Z", 86400, "reschedule:reset_time_in_message"),
        ("Your quota will reset at 2026-11-29 18:00:00", 21600, "reschedule:reset_time_in_message"),
        ("配额已用完，将于 2026-11-29 22:00:00 重置", 7200, "reschedule:reset_time_in_message"),
        ("Out of call volume quota. Quota will be replenished in 05:12:30.", 18750, "reschedule:18750"),
        ("Quota exhausted, resets in 3 hours", 10800, "reschedule:10800"),
    ],
)
def test_a_quota_that_names_its_end_waits_for_it(status: int, message: str, seconds: float, handling: str) -> None:
    found = judged(status, message)
    assert (found.kind, found.delay_s, found.handling) == (Fault.EXHAUSTED, seconds, handling)


def test_an_empty_purse_fills_at_no_moment_that_the_reply_names() -> None:
    assert judged(429, "Insufficient balance. Try again at 2026-11-29T13:00:00Z").handling == "pause_channel"


@pytest.mark.parametrize(
    ("message", "handling"),
    [
        ("You are using a trial key, which is limited to 1000 API calls / month.", "reschedule:next_day"),
        ("You've hit your usage limit. Upgrade or try again in 3 days", "reschedule:259200"),
        ("Insufficient balance, plans begin at $5/month", "pause_channel"),
        ("Daily limit of gpt-4o-2024-11-20 reached, try again tomorrow", "reschedule:next_day"),
    ],
)
def test_a_window_of_days_is_told_from_a_price_and_from_a_name(message: str, handling: str) -> None:
    assert judged(429, message).handling == handling


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        (1000, Fault.UNAVAILABLE), (1001, Fault.TIMED_OUT), (1002, Fault.RATE_LIMITED), (1004, Fault.UNAUTHORIZED),
        (1008, Fault.EXHAUSTED), (1013, Fault.UNAVAILABLE), (1024, Fault.UNAVAILABLE), (1026, Fault.REFUSED),
        (1027, Fault.REFUSED), (1033, Fault.UNAVAILABLE), (1039, Fault.RATE_LIMITED), (1041, Fault.RATE_LIMITED),
        (1042, Fault.INVALID), (1301, Fault.UNAVAILABLE), (1302, Fault.UNAVAILABLE), (2013, Fault.INVALID),
        (2049, Fault.UNAUTHORIZED), (2056, Fault.EXHAUSTED),
    ],
)  # fmt: skip
def test_minimax_numbers_mean_what_minimax_says(code: int, fault: Fault) -> None:
    body = json.dumps({"choices": None, "base_resp": {"status_code": code, "status_msg": "x"}}).encode()
    assert judgement("some-gateway", HttpReply(200, {}, body, NOW)).kind == fault


@pytest.mark.parametrize("code", ["1000", "1001", "1002", "1003", "1004"])
def test_zhipus_numbers_are_a_matter_of_the_key_unless_the_words_are_of_a_rate(code: str) -> None:
    assert judged(400, "x", code).kind == Fault.UNAUTHORIZED
    assert judged(429, "Too many requests", code).kind == Fault.RATE_LIMITED


def test_a_reply_whose_base_resp_is_fine_is_judged_by_its_text() -> None:
    choice = {"index": 0, "message": {"content": "Tea."}, "finish_reason": "stop"}
    body = json.dumps({"choices": [choice], "base_resp": {"status_code": 0, "status_msg": ""}}).encode()
    assert judgement("some-gateway", HttpReply(200, {}, body, NOW)).kind == "ok"
