"""What providers charge, from a dated file: prices move monthly and stand nowhere in the code."""

import re
from collections.abc import Iterable, Mapping
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path

from citeloop.channels.toml_spots import Spot, read_toml
from citeloop.models.channel import Price, Tariff

FILE = Path(__file__).with_name("prices.toml")
_AMOUNTS = ("input", "cached", "cache_write", "output", "search", "call")
_CURRENCY = re.compile(r"[A-Z]{3}")

PriceBook = Mapping[str, Mapping[str, tuple[Tariff, ...]]]
"""By provider and model; a model's name may hold `*`."""


def read_prices(path: Path = FILE) -> PriceBook:
    """Tables `[provider.model.YYYY-MM-DD]`. Raises CatalogError with file, line and remedy."""
    return {
        provider: {model: _tariffs(days) for model, days in models.table().items()}
        for provider, models in read_toml(path).table().items()
    }


def tariffs_for(book: PriceBook, provider: str, model: str) -> tuple[Tariff, ...]:
    """The exact name's prices, else those of the longest pattern that fits it."""
    models = book.get(provider, {})
    if model in models:
        return models[model]
    fitting = [pattern for pattern in models if "*" in pattern and fnmatchcase(model, pattern)]
    return models[max(fitting, key=len)] if fitting else ()


def price_in(spot: Spot, more: Iterable[str] = ()) -> Price:
    """`more`: keys that the table may hold besides the price."""
    fields = spot.table((*_AMOUNTS, "currency", *more))
    currency = fields["currency"].text() if "currency" in fields else "CNY"
    if not _CURRENCY.fullmatch(currency):
        raise fields["currency"].wrong('must be a currency of three capitals, such as "CNY"')
    amounts = {name: fields[name].micros() for name in _AMOUNTS if name in fields}
    return Price(currency=currency, **amounts)


def _tariffs(days: Spot) -> tuple[Tariff, ...]:
    return tuple(sorted((_tariff(spot) for spot in days.table().values()), key=lambda one: one.effective))


def _tariff(spot: Spot) -> Tariff:
    try:
        effective = date.fromisoformat(spot.name)
    except ValueError:
        raise spot.wrong("must end with the day from which the price holds, such as 2026-10-01") from None
    fields = spot.table((*_AMOUNTS, "currency", "source"), required=("currency", "source"))
    return Tariff(effective=effective, price=price_in(spot, ("source",)), source=fields["source"].text())
