"""What a call cost: the provider's own word if the reply has one, else its counts at the price of the day."""

from datetime import date

from citeloop.models.channel import ChannelSpec
from citeloop.models.money import Money
from citeloop.models.usage import Usage

_MILLION = 1_000_000


def cost_of(spec: ChannelSpec, usage: Usage, day: date) -> Money:
    """An operator's price in channels.toml overrides everything, a stated cost overrides the price file."""
    if usage.stated is not None and spec.price is None:
        return usage.stated
    price = spec.price_on(day)
    cached = min(usage.cached_tokens, usage.input_tokens)
    written = min(usage.cache_written_tokens, usage.input_tokens - cached)
    tokens = (
        (usage.input_tokens - cached - written) * price.input
        + cached * (price.input if price.cached is None else price.cached)
        + written * (price.input if price.cache_write is None else price.cache_write)
        + usage.output_tokens * price.output
    )
    rounded = (tokens + _MILLION // 2) // _MILLION
    return Money(micros=rounded + price.call + usage.searches * price.search, currency=price.currency)


def picture_cost(spec: ChannelSpec, day: date, pictures: int = 1) -> Money:
    price = spec.price_on(day)
    return Money(micros=price.call * pictures, currency=price.currency)
