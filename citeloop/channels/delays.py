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
_EPOCH_S = 1e9
_EPOCH_MS = 1e11
_EPOCH_END = 1e14
"""A number from `_EPOCH_S` to here is a moment, counted in seconds or milliseconds; no wait is so long."""
_HINT = re.compile(
    r"(?i)(?:try again|retry|retrying|wait|available|reset[s ]?|renews?)\b\D{0,30}?"
    r"((?:\d+(?:\.\d+)?\s*(?:ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|days?|d)\b\s*"
    r"|\d+(?:\.\d+)?(?:ms|[dhms])(?=\d))+)"
)
_BARE_HINT = re.compile(
    r"(?i)(?:try(?:ing)? again|retry(?:ing)?)[ _-](?:after|in)\W{0,3}"
    r"(\d{1,14}(?:\.\d+)?)(?=\s*(?:$|[,;!)\]\"'}]|\.(?!\d)))"
)
_CLOCK_HINT = re.compile(r"(?i)(?:again|replenished|resets?|retry|renewed)\s+(?:in|after)\s+(\d{1,3}):(\d{2}):(\d{2})")
_DURATION = re.compile(
    r"(?i)(?:\d+(?:\.\d+)?\s*(?:milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)\s*)+"
)
_PIECE = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|milli|[smhd])", re.IGNORECASE)
_AMOUNT_ZH = r"(?<![\d.])(?:\d{1,12}(?:\.\d{1,9})?\s*(?:毫秒|秒|分钟|分|个?小时|天)钟?\s*){1,4}"
_HINT_ZH = re.compile(rf"({_AMOUNT_ZH})(?:之|以)?后|(?:等待|稍等|等)\s*({_AMOUNT_ZH})")
_PIECE_ZH = re.compile(r"(\d+(?:\.\d+)?)\s*(毫秒|秒|分钟|分|个?小时|天)")
_UNITS_ZH = {"毫秒": 0.001, "秒": 1.0, "分钟": 60.0, "分": 60.0, "小时": 3600.0, "个小时": 3600.0, "天": 86400.0}
_DATE = r"(\d{4})[-/年](\d{1,2})[-/月](\d{1,2})日?"
_TIME = r"\s*(?:T|at|,)?\s*(\d{1,2}):(\d{2})(?::(\d{2}))?(?:\.\d{1,9})?\s*(Z|UTC|GMT|[+-]\d{2}:?\d{2})?"
_MOMENT = re.compile(rf"{_DATE}(?:{_TIME})?")
_AGAIN_AT = re.compile(
    rf"(?i)(?:again|retry|retried|resets?|until|available|重试|重置|恢复|解除|再试)\D{{0,30}}(?={_DATE}{_TIME})"
    rf"|(?=(?:{_DATE}{_TIME})\s*(?:之|以)?(?:后|重置|恢复|解除|再))"
)
_LONGEST_PHRASE = 200
_RESET_WORD = re.compile(r"(?i)reset|regain|renew|again|重置|恢复|刷新|解除")
_HAN = re.compile(r"[\u4e00-\u9fff]")


@dataclass(frozen=True, slots=True)
class Due:
    """How long to wait, and by which word that was found; `named` is empty for a plain number of seconds."""

    delay: timedelta
    named: str = ""


def header_delay(headers: Mapping[str, str], now: datetime) -> timedelta | None:
    """`retry-after-ms` before `retry-after`; a moment is compared with the reply's own Date.

    Unreadable, zero, negative and endless values are no delay (providers.md 0.3).
    """
    now = http_date(headers.get("date", "")) or now
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        delay = _counted(milliseconds, now) if _is_epoch(milliseconds) else _positive(milliseconds / 1000)
        if delay:
            return delay
    return _written_delay(headers.get("retry-after", "").strip()[:_LONGEST_PHRASE], now)


def _written_delay(value: str, now: datetime) -> timedelta | None:
    """Seconds, an epoch, a date in either spelling, `1m30s`, or a phrase that holds one of them."""
    seconds = _number(value)
    if seconds is not None:
        return _counted(seconds, now)
    if _DURATION.fullmatch(value):
        return duration(value)
    if when := _moment(_MOMENT.match(value), value) or http_date(value):
        return _positive((when - now).total_seconds())
    return text_delay(value) or moment_delay(value, now)


def text_delay(message: str) -> timedelta | None:
    """`Please retry in 10h17m5.7s`, `try again after 1 seconds`, `retry after 60`, `请在 3 秒后重试`."""
    if hint := _HINT.search(message):
        return duration(hint[1])
    if hint := _HINT_ZH.search(message):
        pieces = _PIECE_ZH.findall(hint[1] or hint[2])
        return _positive(sum(float(amount) * _UNITS_ZH[unit] for amount, unit in pieces))
    if hint := _CLOCK_HINT.search(message):
        return _positive(float(hint[1]) * 3600 + float(hint[2]) * 60 + float(hint[3]))
    if (hint := _BARE_HINT.search(message)) and not _is_epoch(float(hint[1])):
        return _positive(float(hint[1]))
    return None


def moment_delay(message: str, now: datetime) -> timedelta | None:
    """`try again at 2026-11-30T12:01:00Z`: until the moment, with its time of day, that such words stand beside."""
    if (hint := _BARE_HINT.search(message)) and _is_epoch(float(hint[1])):
        return _counted(float(hint[1]), now)
    found = _AGAIN_AT.search(message)
    when = _moment(_MOMENT.match(message, found.end()), message) if found else None
    return _positive((when - now).total_seconds()) if when else None


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
    if stamp is not None and _is_epoch(stamp):
        return _due(_counted(stamp, now), "X-RateLimit-Reset")
    if not _RESET_WORD.search(message):
        return None
    for found in _MOMENT.finditer(message):
        when = _moment(found, message)
        # A bare date that has passed is part of a name: gpt-4o-2024-11-20.
        if when and (when > now or found[4]):
            return _due(_positive((when - now).total_seconds()), "reset_time_in_message")
    return None


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


def _moment(found: re.Match[str] | None, message: str) -> datetime | None:
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
    if written.upper() in {"Z", "UTC", "GMT"}:
        return UTC
    offset = timedelta(hours=int(written[1:3]), minutes=int(written[-2:]))
    return timezone(-offset if written[0] == "-" else offset)


def _due(delay: timedelta | None, named: str) -> Due:
    return Due(delay or _SHORTEST_QUOTA, named)


def _number(value: str) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


def _is_epoch(number: float) -> bool:
    return _EPOCH_S < number < _EPOCH_END


def _counted(number: float, now: datetime) -> timedelta | None:
    """Until the moment that `number` counts to, or that many seconds."""
    if not _is_epoch(number):
        return _positive(number)
    return _positive((number / 1000 if number > _EPOCH_MS else number) - now.timestamp())


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
