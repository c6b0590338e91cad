"""How long a reply asks us to wait, wherever it says so."""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from email.utils import parsedate_to_datetime

_LONGEST = timedelta(days=31)
_BEIJING = timezone(timedelta(hours=8))
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_EPOCH_MS = 1e11
_EPOCH_S = 1e9
_HINT = re.compile(
    r"(?i)(?:try again|retry|retrying|wait|available|reset[s ]?)\b\D{0,30}?"
    r"((?:\d+(?:\.\d+)?\s*(?:ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?|days?|d)\b\s*"
    r"|\d+(?:\.\d+)?(?:ms|[dhms])(?=\d))+)"
)
_PIECE = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|milli|[smhd])", re.IGNORECASE)
_HINT_ZH = re.compile(r"(\d+(?:\.\d+)?)\s*(毫秒|秒|分钟|小时)\s*(?:钟)?\s*(?:之)?后")
_UNITS_ZH = {"毫秒": 0.001, "秒": 1.0, "分钟": 60.0, "小时": 3600.0}
_MOMENT = re.compile(r"(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}:\d{2})(Z|[+-]\d{2}:?\d{2})?")
_RESET_WORD = re.compile(r"(?i)reset|重置|恢复|刷新")


def header_delay(headers: Mapping[str, str], now: datetime) -> timedelta | None:
    """`retry-after-ms` before `retry-after`; a date is compared with the reply's own Date.

    Unreadable, zero, negative and endless values are no delay (providers.md 0.3).
    """
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return _positive(milliseconds / 1000)
    value = headers.get("retry-after", "")
    seconds = _number(value)
    if seconds is not None:
        return _positive(seconds)
    until = _http_date(value)
    if until is None:
        return None
    return _positive((until - (_http_date(headers.get("date", "")) or now)).total_seconds())


def text_delay(message: str) -> timedelta | None:
    """`Please retry in 10h17m5.7s`, `try again after 1 seconds`, `请在 3 秒后重试`."""
    if hint := _HINT.search(message):
        return duration(hint[1])
    if hint := _HINT_ZH.search(message):
        return _positive(float(hint[1]) * _UNITS_ZH[hint[2]])
    return None


def duration(text: str) -> timedelta | None:
    """A duration as Go writes it (`6m0s`, `12ms`), or in words (`2 minutes`)."""
    seconds = 0.0
    for amount, unit in _PIECE.findall(text):
        seconds += float(amount) * _SECONDS["ms" if unit.lower() == "milli" else unit.lower()]
    return _positive(seconds)


def reset_delay(headers: Mapping[str, str], message: str, now: datetime) -> timedelta | None:
    """Until the reset moment in `x-ratelimit-reset` (epoch, s or ms) or in the text (Beijing time if no zone)."""
    stamp = _number(headers.get("x-ratelimit-reset", ""))
    if stamp is not None and stamp > _EPOCH_S:
        seconds = stamp / 1000 if stamp > _EPOCH_MS else stamp
        return _positive(seconds - now.timestamp())
    moment = _MOMENT.search(message) if _RESET_WORD.search(message) else None
    if moment is None:
        return None
    try:
        when = datetime.fromisoformat(f"{moment[1]}T{moment[2]}{moment[3] or ''}")
    except ValueError:
        return None
    when = when if when.tzinfo else when.replace(tzinfo=_BEIJING)
    return _positive((when - now).total_seconds())


def until_next_day(now: datetime) -> timedelta:
    """Until midnight UTC, where daily quotas of unknown zone are assumed to begin anew."""
    midnight = (now.astimezone(UTC) + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    return max(midnight - now, timedelta(minutes=10))


def _number(value: str) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


def _positive(seconds: float) -> timedelta | None:
    if not math.isfinite(seconds) or seconds <= 0:
        return None
    return min(timedelta(seconds=min(seconds, _LONGEST.total_seconds())), _LONGEST)


def _http_date(value: str) -> datetime | None:
    try:
        when = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return when if when.tzinfo else when.replace(tzinfo=UTC)
