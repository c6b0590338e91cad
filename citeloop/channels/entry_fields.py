"""Fields that channels and sites of channels.toml have in common, each refused with its line and a remedy."""

import re
from collections.abc import Mapping
from datetime import time, timedelta
from typing import TypedDict
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from citeloop.channels.toml_spots import Spot
from citeloop.models.channel import ChannelSpec, DailyReset
from citeloop.models.plan import CallPolicy

_TIMEOUTS = ("connect", "first_byte", "between_chunks", "total", "heartbeat")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ENV = re.compile(r"\{env:([^}]*)\}")
_RESET = re.compile(r"([01]\d|2[0-3]):([0-5]\d)(?:\s+(\S+))?")
_MOST = 10**12


class Throttling(TypedDict):
    """What limits a channel besides its rate, and what counts as slow."""

    tokens_per_minute: int | None
    calls_per_day: int | None
    tokens_per_day: int | None
    quota_resets: DailyReset
    slow_factor: float


def name_in(spot: Spot) -> str:
    if not _NAME.fullmatch(spot.name):
        raise spot.wrong("is no name; use up to 40 small letters, digits, - and _, a letter or digit first")
    return spot.name


def base_url_in(spot: Spot, environ: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        found = environ.get(match[1], "").strip()
        if not found:
            raise spot.wrong(f"the variable {match[1]} is not set; export it or write the address out")
        return found

    url = _ENV.sub(value, spot.text()).rstrip("/")
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable or re.search(r"\s", url):
        raise spot.wrong('is no http(s) address; write it as "https://host/path"')
    if parts.username or parts.password or parts.query or parts.fragment:
        raise spot.wrong("must hold neither a password nor a query; name keys in key_env or secret_env")
    return url


def variable_in(spot: Spot | None) -> str | None:
    if spot is None:
        return None
    if not _VARIABLE.fullmatch(spot.text()):
        raise spot.wrong("must be the name of an environment variable, not the key itself")
    return spot.text()


def policy_in(fields: Mapping[str, Spot], base: CallPolicy) -> CallPolicy:
    limits: dict[str, timedelta | int] = {}
    timeouts = fields["timeouts"].table(_TIMEOUTS) if "timeouts" in fields else {}
    retry = fields["retry"].table(("max_faults", "backoff", "backoff_max")) if "retry" in fields else {}
    for name, spot in timeouts.items():
        limits[name] = spot.duration()
    for name in ("backoff", "backoff_max"):
        if name in retry:
            limits[name] = retry[name].duration()
    if "max_faults" in retry:
        limits["max_faults"] = retry["max_faults"].whole(1, 100)
    return base.model_copy(update=limits)


def throttling_in(fields: Mapping[str, Spot]) -> Throttling:
    resets = fields.get("quota_resets")
    if resets is not None and not {"calls_per_day", "tokens_per_day"} & fields.keys():
        raise resets.wrong("resets a quota that is not there; add calls_per_day or tokens_per_day, or remove it")
    factor = fields.get("slow_factor")

    def most(name: str) -> int | None:
        return fields[name].whole(1, _MOST) if name in fields else None

    return Throttling(
        tokens_per_minute=most("tokens_per_minute"),
        calls_per_day=most("calls_per_day"),
        tokens_per_day=most("tokens_per_day"),
        quota_resets=_reset_in(resets) if resets else DailyReset(),
        slow_factor=factor.number(1.1, 1000) if factor else float(ChannelSpec.model_fields["slow_factor"].default),
    )


def _reset_in(spot: Spot) -> DailyReset:
    match = _RESET.fullmatch(spot.text())
    if match is None:
        raise spot.wrong('is no time of day; write "00:00 Asia/Shanghai" or "00:00", which is UTC')
    zone = match[3] or "UTC"
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        raise spot.wrong(f'{zone!r} is no time zone; write one such as "Asia/Shanghai" or "UTC"') from None
    return DailyReset(at=time(int(match[1]), int(match[2])), zone=zone)
