"""How long a reply asks us to wait, wherever it says so."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from email.utils import parsedate_to_datetime

_LONGEST = timedelta(days=31)
_SHORTEST_QUOTA = timedelta(minutes=1)
"""A reset that has passed already is a matter of clocks; it is tried again after this."""
BEIJING = timezone(timedelta(hours=8))
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
_MOMENT = re.compile(
    r"(\d{4})[-/年](\d{1,2})[-/月](\d{1,2})日?"
    r"(?:\s*(?:T|at|,)?\s*(\d{1,2}):(\d{2})(?::(\d{2}))?(?:\.\d{1,9})?\s*(Z|UTC|GMT|[+-]\d{2}:?\d{2})?)?"
)
_RESET_WORD = re.compile(r"(?i)reset|regain|renew|again|重置|恢复|刷新|解除")
_HAN = re.compile(r"[\u4e00-\u9fff]")


@dataclass(frozen=True, slots=True)
class Due:
    """How long to wait, and by which word that was found; `named` is empty for a plain number of seconds."""

    delay: timedelta
    named: str = ""


def header_delay(headers: Mapping[str, str], now: datetime) -> timedelta | None:
    """`retry-after-ms` before `retry-after`; a date is compared with the reply's own Date.

    Unreadable, zero, negative and endless values are no delay (providers.md 0.3).
    """
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None and (delay := _positive(milliseconds / 1000)):
        return delay
    value = headers.get("retry-after", "")
    seconds = _number(value)
    if seconds is not None:
        return _positive(seconds)
    until = http_date(value)
    if until is None:
        return None
    return _positive((until - (http_date(headers.get("date", "")) or now)).total_seconds())


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


def reset_delay(headers: Mapping[str, str], message: str, now: datetime) -> Due | None:
    """Until the reset moment in `x-ratelimit-reset` (epoch, s or ms) or in the text.

    A text without a zone means Beijing if it is Chinese, UTC otherwise.
    """
    stamp = _number(headers.get("x-ratelimit-reset", ""))
    if stamp is not None and math.isfinite(stamp) and stamp > _EPOCH_S:
        seconds = stamp / 1000 if stamp > _EPOCH_MS else stamp
        return _due(seconds - now.timestamp(), "X-RateLimit-Reset")
    when = _moment(message) if _RESET_WORD.search(message) else None
    return _due((when - now).total_seconds(), "reset_time_in_message") if when else None


def next_day(now: datetime, zone: tzinfo = UTC) -> Due:
    """Until midnight, where daily quotas are assumed to begin anew; UTC unless the provider's zone is known."""
    here = now.astimezone(zone)
    midnight = (here + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    return Due(max(midnight - here, timedelta(minutes=10)), "next_day")


def next_hour(now: datetime) -> Due:
    """Until the full hour, where hourly windows of unknown phase are assumed to end."""
    past = timedelta(minutes=now.minute, seconds=now.second, microseconds=now.microsecond)
    return Due(max(timedelta(hours=1) - past, _SHORTEST_QUOTA), "next_hour")


def is_chinese(message: str) -> bool:
    return bool(_HAN.search(message))


def _moment(message: str) -> datetime | None:
    found = _MOMENT.search(message)
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(found[n] or 0) for n in range(1, 7))
    try:
        when = datetime(year, month, day, hour, minute, second, tzinfo=_zone(found[7], message))
        return when.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _zone(written: str | None, message: str) -> tzinfo:
    if written is None:
        return BEIJING if is_chinese(message) else UTC
    if written in {"Z", "UTC", "GMT"}:
        return UTC
    offset = timedelta(hours=int(written[1:3]), minutes=int(written[-2:]))
    return timezone(-offset if written[0] == "-" else offset)


def _due(seconds: float, named: str) -> Due:
    return Due(_positive(seconds) or _SHORTEST_QUOTA, named)


def _number(value: str) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


def _positive(seconds: float) -> timedelta | None:
    if not math.isfinite(seconds) or seconds <= 0:
        return None
    return min(timedelta(seconds=min(seconds, _LONGEST.total_seconds())), _LONGEST)


def http_date(value: str) -> datetime | None:
    """The moment in a `Date` or `Retry-After` header; None for anything else."""
    try:
        when = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return when if when.tzinfo else when.replace(tzinfo=UTC)
