"""Fields that channels and sites of channels.toml have in common, each refused with its line and a remedy."""

import re
from collections.abc import Mapping
from datetime import timedelta
from urllib.parse import urlsplit

from citeloop.channels.toml_spots import Spot
from citeloop.models.plan import CallPolicy

_TIMEOUTS = ("connect", "first_byte", "between_chunks", "total", "heartbeat")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ENV = re.compile(r"\{env:([^}]*)\}")


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
