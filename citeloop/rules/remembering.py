"""Results kept for texts that are asked about again within minutes: a draft is written, judged, sent and looked at."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

Result = TypeVar("Result")


def remembered(*, texts: int, longest: int) -> Callable[[Callable[[str], Result]], Callable[[str], Result]]:
    """Keeps the results of the last `texts` texts. One of more than `longest` characters is worked out each time."""

    def keeping(function: Callable[[str], Result]) -> Callable[[str], Result]:
        kept = lru_cache(maxsize=texts)(function)

        @wraps(function)
        def recalled(text: str) -> Result:
            return kept(text) if len(text) <= longest else function(text)

        return recalled

    return keeping
