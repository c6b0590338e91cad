"""channels.toml: what channels and sites this installation knows, checked before anything starts."""

import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import JsonValue

from citeloop.channels import engines, illustrators, writers
from citeloop.channels.toml_spots import CatalogError, Spot, read_toml
from citeloop.models.channel import Catalog, ChannelSpec, Price, Role, SiteKind, SiteSpec
from citeloop.models.plan import CallPolicy, Stage
from citeloop.models.record import Record

__all__ = ["CatalogError", "MissingKey", "load", "missing_keys"]

DIALECTS: Mapping[Role, Iterable[str]] = {
    Role.WRITE: writers.DIALECTS,
    Role.ILLUSTRATE: illustrators.DIALECTS,
    Role.ANSWER: engines.DIALECTS,
}
_CHANNEL_KEYS = (
    "roles", "dialect", "base_url", "model", "key_env", "rate", "burst", "concurrency", "stream", "price",
    "extra", "timeouts", "retry", "stages",
)  # fmt: skip
_SITE_KEYS = (
    "kind", "base_url", "user_env", "secret_env", "rate", "concurrency", "max_server_time", "callback_deadline",
    "owned",
    "timeouts", "retry",
)  # fmt: skip
_TIMEOUTS = ("connect", "first_byte", "between_chunks", "total", "heartbeat")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ENV = re.compile(r"\{env:([^}]*)\}")
_CURRENCY = re.compile(r"[A-Z]{3}")


class MissingKey(Record):
    """A credential that the environment does not hold."""

    name: str
    """The channel or site."""
    variable: str

    @property
    def message(self) -> str:
        return f"{self.name}: {self.variable} is not set; export it, or remove {self.name} from channels.toml"


def load(path: Path, environ: Mapping[str, str]) -> Catalog:
    """Read and check channels.toml. Every mistake is a CatalogError naming file, line, field and remedy.

    `{env:NAME}` inside a base_url is replaced from `environ`. Keys are not read here: see `missing_keys`.
    """
    root = read_toml(path).table(("allow_private_addresses", "channels", "sites"))
    channels = root["channels"].table() if "channels" in root else {}
    sites = root["sites"].table() if "sites" in root else {}
    private = root.get("allow_private_addresses")
    return Catalog(
        channels=tuple(_channel(spot, environ) for spot in channels.values()),
        sites=tuple(_site(spot, environ) for spot in sites.values()),
        allow_private_addresses=private.flag() if private else False,
    )


def missing_keys(catalog: Catalog, environ: Mapping[str, str], names: Iterable[str]) -> list[MissingKey]:
    """The variables that the named channels and sites need and `environ` lacks. Unknown names are passed over."""
    missing = []
    for name in names:
        channel, site = catalog.channel(name), catalog.site(name)
        variables = [channel.key_env] if channel else []
        variables += [site.user_env, site.secret_env] if site else []
        missing += [
            MissingKey(name=name, variable=one) for one in variables if one and not environ.get(one, "").strip()
        ]
    return missing


def _channel(spot: Spot, environ: Mapping[str, str]) -> ChannelSpec:
    name = _name(spot)
    fields = spot.table(_CHANNEL_KEYS, required=("roles", "dialect", "base_url", "model"))
    roles = frozenset(fields["roles"].choices(Role))
    policy = _policy(fields, CallPolicy())
    stages = fields["stages"].table(tuple(Stage)) if "stages" in fields else {}
    return ChannelSpec(
        name=name,
        roles=roles,
        dialect=_dialect(fields["dialect"], roles),
        base_url=_base_url(fields["base_url"], environ),
        model=fields["model"].text(),
        key_env=_variable(fields.get("key_env")),
        rate=fields["rate"].rate() if "rate" in fields else None,
        burst=fields["burst"].whole(1, 10_000) if "burst" in fields else 1,
        concurrency=fields["concurrency"].whole(1, 1000) if "concurrency" in fields else 8,
        stream=fields["stream"].flag() if "stream" in fields else True,
        extra=_extra(fields["extra"]) if "extra" in fields else {},
        price=_price(fields["price"]) if "price" in fields else Price(),
        policy=policy,
        stage_policies={
            Stage(stage): _policy(entry.table(("timeouts", "retry")), policy) for stage, entry in stages.items()
        },
    )


def _site(spot: Spot, environ: Mapping[str, str]) -> SiteSpec:
    name = _name(spot)
    fields = spot.table(_SITE_KEYS, required=("kind", "base_url", "secret_env"))
    kind = fields["kind"].choice(SiteKind)
    if kind is SiteKind.WORDPRESS and "user_env" not in fields:
        raise spot.wrong('user_env is missing; add a line `user_env = "…"` naming the variable with the user')
    default = SiteSpec(name=name, kind=kind, base_url="")
    deadline, server_time = fields.get("callback_deadline"), fields.get("max_server_time")
    return SiteSpec(
        name=name,
        kind=kind,
        base_url=_base_url(fields["base_url"], environ),
        user_env=_variable(fields.get("user_env")),
        secret_env=_variable(fields["secret_env"]),
        rate=fields["rate"].rate() if "rate" in fields else None,
        concurrency=fields["concurrency"].whole(1, 1000) if "concurrency" in fields else default.concurrency,
        max_server_time=server_time.duration() if server_time else default.max_server_time,
        owned=fields["owned"].flag() if "owned" in fields else default.owned,
        callback_deadline=deadline.duration() if deadline else default.callback_deadline,
        policy=_policy(fields, default.policy),
    )


def _name(spot: Spot) -> str:
    if not _NAME.fullmatch(spot.name):
        raise spot.wrong("is no name; use up to 40 small letters, digits, - and _, a letter or digit first")
    return spot.name


def _dialect(spot: Spot, roles: Iterable[Role]) -> str:
    dialect = spot.choice(sorted({name for names in DIALECTS.values() for name in names}))
    for role in sorted(roles):
        if dialect not in DIALECTS[role]:
            raise spot.wrong(f"{dialect!r} cannot {role}; use {' or '.join(sorted(DIALECTS[role]))}")
    return dialect


def _base_url(spot: Spot, environ: Mapping[str, str]) -> str:
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


def _variable(spot: Spot | None) -> str | None:
    if spot is None:
        return None
    if not _VARIABLE.fullmatch(spot.text()):
        raise spot.wrong("must be the name of an environment variable, not the key itself")
    return spot.text()


def _policy(fields: Mapping[str, Spot], base: CallPolicy) -> CallPolicy:
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


def _price(spot: Spot) -> Price:
    fields = spot.table(("input", "output", "call", "currency"))
    currency = fields["currency"].text() if "currency" in fields else "CNY"
    if not _CURRENCY.fullmatch(currency):
        raise fields["currency"].wrong('must be a currency of three capitals, such as "CNY"')
    return Price(
        input=fields["input"].micros() if "input" in fields else 0,
        output=fields["output"].micros() if "output" in fields else 0,
        call=fields["call"].micros() if "call" in fields else 0,
        currency=currency,
    )


def _extra(spot: Spot) -> dict[str, JsonValue]:
    return {key: _plain(entry, entry.value) for key, entry in spot.table().items()}


def _plain(spot: Spot, value: object) -> JsonValue:
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, (str, int)):
        return value
    if isinstance(value, list):
        return [_plain(spot, one) for one in value]
    if isinstance(value, dict):
        return {str(key): _plain(spot, one) for key, one in value.items()}
    raise spot.wrong("holds a date; write it as a text in quotes")
