"""Rates as the store keeps them: exact fractions, and the interval between two slots that follows from one."""

from fractions import Fraction
from typing import Any

_NANO = 10**9


def least(*rates: Fraction | None) -> Fraction | None:
    return min((rate for rate in rates if rate is not None), default=None)


def own(filed: Fraction | None, operator: Fraction | None) -> Fraction | None:
    """A channel's rate as long as nothing holds it back: a person's word stands in place of the file's."""
    return filed if operator is None else operator


def written(rate: Fraction | None) -> str | None:
    return f"{rate.numerator}/{rate.denominator}" if rate is not None else None


def read(kept: str | None) -> Fraction | None:
    return Fraction(kept) if kept is not None else None


def pace(rate: Fraction | None, calls_per_dispatch: int = 1) -> dict[str, Any]:
    """Microseconds between slots, rounded up in the ninth decimal: never faster than the rate.

    rate: of calls. One slot is one dispatch, which makes `calls_per_dispatch` of them.
    """
    if not rate:
        return {"interval": None, "stopped": rate is not None}
    nanos = -(-(_NANO * 1_000_000 * calls_per_dispatch * rate.denominator) // rate.numerator)
    return {"interval": f"{nanos // _NANO}.{nanos % _NANO:09d}", "stopped": False}
