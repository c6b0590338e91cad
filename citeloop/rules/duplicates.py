"""Whether a text says again what an earlier one said: shingles of normalised text, Chinese and Latin alike.

A sketch of each text finds the few that may be alike among thousands; only those are compared word by word.
Source: bottom-k sketches, E. Cohen and H. Kaplan, "Summarizing data using bottom-k sketches", PODC 2007.
"""

import heapq
import re
import unicodedata
from collections.abc import Mapping
from hashlib import blake2b

from citeloop.rules.answers import URL
from citeloop.rules.remembering import remembered

_TERM = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_WORD_SHINGLE = 4
_SKETCH = 64
_ALIKE = 0.6
"""Four standard errors below the likeness that review objects to: √(0.8 × 0.2 / 64) = 0.05."""

_LOOK_ALIKES = 10


def shingles(text: str) -> frozenset[int]:
    """63-bit hashes of four running terms (Latin words, single CJK characters), addresses left out."""
    folded = unicodedata.normalize("NFKC", URL.sub(" ", text)).casefold()
    terms = _TERM.findall(folded)
    if len(terms) < _WORD_SHINGLE:
        return frozenset({_hash(tuple(terms))} if terms else ())
    return frozenset(map(_hash, zip(*(terms[i:] for i in range(_WORD_SHINGLE)), strict=False)))


def similarity(one: frozenset[int], other: frozenset[int]) -> float:
    """Jaccard: shared shingles over all shingles; 0 where either has none."""
    if not one or not other:
        return 0.0
    return len(one & other) / len(one | other)


@remembered(texts=128, longest=20_000)
def sketch(text: str) -> tuple[int, ...]:
    """The 64 smallest shingles: enough to estimate the likeness of two texts without either of them."""
    return tuple(sorted(shingles(text))[:_SKETCH])


def look_alikes(text: str, sketches: Mapping[str, tuple[int, ...]]) -> list[str]:
    """Which of these may be a duplicate of the text: at most ten, the likest first."""
    own = frozenset(sketch(text))
    likeness = {name: _estimate(own, other) for name, other in sketches.items()}
    return heapq.nlargest(
        _LOOK_ALIKES, (n for n, value in likeness.items() if value >= _ALIKE), key=likeness.__getitem__
    )


def _estimate(one: frozenset[int], other: tuple[int, ...]) -> float:
    """Of the smallest shingles of both together, the share that both have."""
    shared = one.intersection(other)
    if not shared:
        return 0.0
    smallest = sorted(one.union(other))[:_SKETCH]
    return len(shared.intersection(smallest)) / len(smallest)


def _hash(terms: tuple[str, ...]) -> int:
    return int.from_bytes(blake2b(" ".join(terms).encode(), digest_size=8).digest()) >> 1
