"""One channel of channels.toml, with what its provider's row says where the file says nothing."""

from collections.abc import Iterable, Mapping
from decimal import Decimal

from pydantic import JsonValue

from citeloop.channels import engines, illustrators, providers, writers
from citeloop.channels.entry_fields import base_url_in, name_in, policy_in, throttling_in, variable_in
from citeloop.channels.prices import PriceBook, price_in, tariffs_for
from citeloop.channels.toml_spots import Spot
from citeloop.models.channel import ChannelSpec, Role, Trial
from citeloop.models.plan import CallPolicy, Stage

DIALECTS: Mapping[Role, Iterable[str]] = {
    Role.WRITE: writers.DIALECTS,
    Role.ILLUSTRATE: illustrators.DIALECTS,
    Role.ANSWER: engines.DIALECTS,
}
_KEYS = (
    "roles", "dialect", "provider", "base_url", "model", "key_env", "rate", "burst", "concurrency", "stream", "price",
    "calls_per_dispatch", "extra", "timeouts", "retry", "stages", "tokens_per_minute", "calls_per_day",
    "tokens_per_day", "quota_resets", "slow_factor", "fallback",
)  # fmt: skip


def channel_in(spot: Spot, environ: Mapping[str, str], prices: PriceBook) -> ChannelSpec:
    name = name_in(spot)
    fields = spot.table(_KEYS, required=("roles", "dialect", "model"))
    roles = frozenset(fields["roles"].choices(Role))
    dialect = _dialect(fields["dialect"], roles)
    named = _provider(fields["provider"], dialect) if "provider" in fields else None
    base_url = base_url_in(fields["base_url"], environ) if "base_url" in fields else named and named.base_url
    if not base_url:
        raise spot.wrong("base_url is missing; add a line `base_url = …`, or name a known provider")
    provider = named.name if named else providers.name_by_host(base_url)
    row = named or providers.provider_for(provider, dialect)
    model = fields["model"].text()
    policy = policy_in(fields, CallPolicy())
    stages = fields["stages"].table(tuple(Stage)) if "stages" in fields else {}
    usual_calls = providers.CALLS_PER_DISPATCH.get(dialect, 1)
    return ChannelSpec(
        name=name,
        roles=roles,
        dialect=dialect,
        base_url=base_url,
        model=model,
        key_env=variable_in(fields.get("key_env")) or (named.key_env if named else None),
        key_place=fields.get("key_env", spot).place,
        rate=fields["rate"].rate() if "rate" in fields else None,
        burst=fields["burst"].whole(1, 10_000) if "burst" in fields else 1,
        concurrency=fields["concurrency"].whole(1, 1000) if "concurrency" in fields else 8,
        stream=fields["stream"].flag() if "stream" in fields else True,
        extra=_extra(fields["extra"]) if "extra" in fields else {},
        price=price_in(fields["price"]) if "price" in fields else None,
        tariffs=tariffs_for(prices, provider, model),
        provider=provider,
        tested_against=row.tested if row else Trial.GUESS,
        calls_per_dispatch=fields["calls_per_dispatch"].whole(1, 20) if "calls_per_dispatch" in fields else usual_calls,
        policy=policy,
        fallback=fields["fallback"].text() if "fallback" in fields else None,
        **throttling_in(fields),
        stage_policies={
            Stage(stage): policy_in(entry.table(("timeouts", "retry")), policy) for stage, entry in stages.items()
        },
    )


def _provider(spot: Spot, dialect: str) -> providers.Provider:
    name = spot.choice(providers.NAMES)
    row = providers.provider_for(name, dialect)
    if row is None:
        spoken = " or ".join(providers.dialects_of(name))
        raise spot.wrong(
            f"{name} is not known to speak {dialect}; set dialect to {spoken}, or leave provider out and write base_url"
        )
    return row


def _dialect(spot: Spot, roles: Iterable[Role]) -> str:
    dialect = spot.choice(sorted({name for names in DIALECTS.values() for name in names}))
    for role in sorted(roles):
        if dialect not in DIALECTS[role]:
            raise spot.wrong(f"{dialect!r} cannot {role}; use {' or '.join(sorted(DIALECTS[role]))}")
    return dialect


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
