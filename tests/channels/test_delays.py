"""How long a reply asks us to wait, in all the ways in which it may say so."""

from datetime import UTC, datetime, timedelta

import pytest

from citeloop.channels.delays import BEIJING, Due, header_delay, next_day, next_hour, reset_delay, text_delay

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)


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
        ("wait for 3 people", None),
        ("try again later", None),
        ("limit of 5 per minute reached", None),
    ],
)
def test_the_text_names_the_delay(message: str, seconds: float | None) -> None:
    assert text_delay(message) == (None if seconds is None else timedelta(seconds=seconds))


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
