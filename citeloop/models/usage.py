"""What one call used, in the provider's own counts."""

from pydantic import Field

from citeloop.models.money import Money
from citeloop.models.record import Record


class Usage(Record):
    """`input_tokens` hold the cached and the newly cached ones, `output_tokens` the reasoning; all 0 if untold."""

    input_tokens: int = Field(default=0, ge=0)
    cached_tokens: int = Field(default=0, ge=0)
    """Read from the provider's prompt cache, at its lower price."""
    cache_written_tokens: int = Field(default=0, ge=0)
    output_tokens: int = Field(default=0, ge=0)
    reasoning_tokens: int = Field(default=0, ge=0)
    searches: int = Field(default=0, ge=0)
    stated: Money | None = None
    """The price that the reply itself names (Perplexity), searches included."""

    def plus(self, other: "Usage") -> "Usage":
        """Both together: the turns of one answer."""
        stated = [one for one in (self.stated, other.stated) if one is not None]
        currencies = {one.currency for one in stated}
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cache_written_tokens=self.cache_written_tokens + other.cache_written_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            searches=self.searches + other.searches,
            stated=Money(micros=sum(one.micros for one in stated), currency=stated[0].currency)
            if len(currencies) == 1
            else None,
        )
