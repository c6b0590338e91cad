"""How long a reply asks us to wait, in all the ways in which it may say so."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from citeloop.channels.delays import (
    BEIJING,
    Due,
    header_delay,
    moment_delay,
    next_day,
    next_hour,
    reset_delay,
    text_delay,
)
from citeloop.channels.errors import Fault
from citeloop.channels.reply import HttpReply
from citeloop.channels.services import judgement

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
EPOCH = str(int(NOW.timestamp()) + 60)
"""A minute from now."""


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "30"}, 30),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "1450", "retry-after": "2"}, 1.45),
        ({"retry-after-ms": "0", "retry-after": "2"}, 2),
        ({"retry-after": "Sun, 29 Nov 2026 12:01:00 GMT"}, 60),
        ({"retry-after": "Sun, 29 Nov 2026 12:01:00 GMT", "date": "Sun, 29 Nov 2026 12:00:30 GMT"}, 30),
        ({"retry-after": "Sun, 29 Nov 2026 11:00:00 GMT"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "0"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "-inf"}, None),
        ({"retry-after": "30s"}, 30),
        ({"retry-after": "1m30s"}, 90),
        ({"retry-after": "250ms"}, 0.25),
        ({"retry-after": "2 minutes"}, 120),
        ({"retry-after": "2026-11-29T12:01:00Z"}, 60),
        ({"retry-after": "2026-11-29T20:01:00.5+08:00"}, 60),
        ({"retry-after": "2026-11-29T12:01:00Z", "date": "Sun, 29 Nov 2026 12:00:30 GMT"}, 30),
        ({"retry-after": "2026-11-29T11:00:00Z"}, None),
        ({"retry-after": "2026-99-29T12:01:00Z"}, None),
        ({"retry-after": "retry after 60"}, 60),
        ({"retry-after": "try again at 2026-11-29T12:01:00Z"}, 60),
        ({"retry-after": "请在60秒后重试"}, 60),
        ({"retry-after": EPOCH}, 60),
        ({"retry-after": f"{EPOCH}.5"}, 60.5),
        ({"retry-after": f"{EPOCH}000"}, 60),
        ({"retry-after": EPOCH, "date": "Sun, 29 Nov 2026 12:00:30 GMT"}, 30),
        ({"retry-after-ms": f"{EPOCH}000"}, 60),
        ({"retry-after-ms": "1764000000000", "retry-after": "2"}, 2),
        ({"retry-after": "1764000000"}, None),
        ({"retry-after": "inf"}, None),
        ({}, None),
    ],
)
def test_a_header_names_the_delay(headers: dict[str, str], seconds: float | None) -> None:
    assert header_delay(headers, NOW) == (None if seconds is None else timedelta(seconds=seconds))


def test_a_delay_of_years_is_cut_at_a_month() -> None:
    assert header_delay({"retry-after": "1e300"}, NOW) == timedelta(days=31)


@pytest.mark.parametrize(
    ("message", "seconds"),
    [
        ("please try again after 1 seconds", 1),
        ("Please try again in 20s. Visit …", 20),
        ("Rate limit reached. Please try again in 6m0s.", 360),
        ("Please retry in 10h17m5.7s.", 37025.7),
        ("try again in 250ms", 0.25),
        ("try again in 2 minutes", 120),
        ("请在 3 秒后重试", 3),
        ("Resource has been exhausted (retry in 46s)", 46),
        ("retry after 60", 60),
        ("Please retry after 1.5.", 1.5),
        ("请等待 60 秒", 60),
        ("1小时30分钟后重试", 5400),
        ("请2天后再试", 172800),
        ("Quota will be replenished in 05:12:30.", 18750),
        ("retry after 60 requests", None),
        ("try again at 2026-11-29T12:01:00Z", None),
        (f"retry after {EPOCH}", None),
        ("wait for 3 people", None),
        ("try again later", None),
        ("limit of 5 per minute reached", None),
    ],
)
def test_the_text_names_the_delay(message: str, seconds: float | None) -> None:
    assert text_delay(message) == (None if seconds is None else timedelta(seconds=seconds))


@pytest.mark.parametrize(
    ("message", "seconds"),
    [
        ("Please try again at 2026-11-29T12:01:00Z", 60),
        ("You are limited until 2026-11-29 12:01:00.", 60),
        ("resets at 2026-11-29T13:01:00+01:00", 60),
        ("请于 2026-11-29 20:01:00 后重试", 60),
        (f"retry after {EPOCH}", 60),
        (f"retry after {EPOCH}000.", 60),
        ("try again at 2026-11-29T11:00:00Z", None),
        ("gpt-4o-2024-11-20 is limited, try again later", None),
        ("try again on 2026-11-30", None),
        ("try again at 2026-11-99T12:01:00Z", None),
        ("written on 2026-11-29 23:00:00", None),
    ],
)
def test_the_text_names_the_moment(message: str, seconds: float | None) -> None:
    assert moment_delay(message, NOW) == (None if seconds is None else timedelta(seconds=seconds))


@pytest.mark.parametrize(
    ("headers", "fields", "seconds"),
    [
        ({"retry-after": "86400000"}, {}, 86400),
        ({"retry-after": "1e300"}, {}, 86400),
        ({"retry-after": "7200"}, {}, 7200),
        ({}, {"retry_after": 86400000}, 86400),
        ({}, {"retry_after": EPOCH}, 60),
        ({}, {"retryAfter": "30s"}, 30),
        ({}, {"retry_after_ms": 1500}, 1.5),
        ({}, {"retry_after_seconds": 9}, 9),
        ({}, {"resets_at": int(EPOCH)}, 60),
        ({}, {"details": {"retry_after": "2026-11-29T12:01:00Z"}}, 60),
        ({}, {"retry_after": "nan"}, None),
        ({}, {"retry_after": -3}, None),
        ({"retry-after": "5"}, {"retry_after": 9}, 5),
    ],
)
def test_a_rate_limit_waits_as_a_header_or_a_field_says_and_never_above_a_day(
    headers: dict[str, str], fields: dict[str, object], seconds: float | None
) -> None:
    body = json.dumps({"error": {"message": "Too many requests", **fields}}).encode()
    found = judgement("some-gateway", HttpReply(429, headers, body, NOW))
    assert (found.kind, found.delay_s) == (Fault.RATE_LIMITED, seconds)


def test_a_spent_quota_may_wait_longer_than_a_day() -> None:
    body = json.dumps({"error": {"message": "Weekly quota exceeded"}}).encode()
    found = judgement("some-gateway", HttpReply(429, {"retry-after": "172800"}, body, NOW))
    assert (found.kind, found.delay_s) == (Fault.EXHAUSTED, 172800)


RESET, TEXT = "X-RateLimit-Reset", "reset_time_in_message"


@pytest.mark.parametrize(
    ("headers", "message", "hours", "named"),
    [
        ({"x-ratelimit-reset": str(int(NOW.timestamp()) + 7200)}, "", 2, RESET),
        ({"x-ratelimit-reset": str((int(NOW.timestamp()) + 7200) * 1000)}, "", 2, RESET),
        ({}, "您的限额将在 2026-11-29 23:00:00 重置", 3, TEXT),
        ({}, "将于2026年11月30日恢复", 4, TEXT),
        ({}, "resets at 2026-11-29T15:00:00Z", 3, TEXT),
        ({}, "You will regain access on 2026-12-01 at 00:00 UTC.", 36, TEXT),
        ({}, "quota resets 2026-11-29 15:30:00+02:00", 1.5, TEXT),
    ],
)
def test_a_reset_moment_becomes_a_delay(headers: dict[str, str], message: str, hours: float, named: str) -> None:
    assert reset_delay(headers, message, NOW) == Due(timedelta(hours=hours), named)


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ({}, "resets at 2026-99-29T15:00:00Z"),
        ({}, "limit of gpt-4o-2024-11-20 reached, try again tomorrow"),
        ({}, "written on 2026-11-29 23:00:00"),
        ({"x-ratelimit-reset": "17"}, ""),
        ({"x-ratelimit-reset": "nan"}, ""),
    ],
)
def test_what_names_no_reset_is_none(headers: dict[str, str], message: str) -> None:
    assert reset_delay(headers, message, NOW) is None


def test_a_reset_that_has_passed_is_tried_again_in_a_minute() -> None:
    passed = {"x-ratelimit-reset": str(int(NOW.timestamp()) - 7200)}
    assert reset_delay(passed, "", NOW) == Due(timedelta(minutes=1), RESET)


def test_a_daily_quota_without_a_moment_waits_for_midnight_where_its_provider_is() -> None:
    assert next_day(NOW).delay == timedelta(hours=12)
    assert next_day(NOW, BEIJING).delay == timedelta(hours=4)
    assert next_day(NOW.replace(hour=23, minute=59)).delay == timedelta(minutes=10)


def test_an_hourly_window_ends_with_the_hour() -> None:
    assert next_hour(NOW.replace(minute=40)).delay == timedelta(minutes=20)
    assert next_hour(NOW).delay == timedelta(hours=1)
