"""How long a reply asks us to wait, in all the ways in which it may say so."""

from datetime import UTC, datetime, timedelta

import pytest

from citeloop.channels.delays import header_delay, reset_delay, text_delay, until_next_day

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "30"}, 30),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "1450", "retry-after": "2"}, 1.45),
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


@pytest.mark.parametrize(
    ("headers", "message", "hours"),
    [
        ({"x-ratelimit-reset": str(int(NOW.timestamp()) + 7200)}, "", 2),
        ({"x-ratelimit-reset": str((int(NOW.timestamp()) + 7200) * 1000)}, "", 2),
        ({}, "您的限额将在 2026-11-29 23:00:00 重置", 3),
        ({}, "resets at 2026-11-29T15:00:00Z", 3),
        ({}, "resets at 2026-99-29T15:00:00Z", None),
        ({}, "written on 2026-11-29 23:00:00", None),
        ({"x-ratelimit-reset": "17"}, "", None),
    ],
)
def test_a_reset_moment_becomes_a_delay(headers: dict[str, str], message: str, hours: float | None) -> None:
    assert reset_delay(headers, message, NOW) == (None if hours is None else timedelta(hours=hours))


def test_a_daily_quota_without_a_moment_waits_for_midnight() -> None:
    assert until_next_day(NOW) == timedelta(hours=12)
    assert until_next_day(NOW.replace(hour=23, minute=59)) == timedelta(minutes=10)
