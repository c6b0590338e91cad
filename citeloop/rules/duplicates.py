"""Whether a text says again what an earlier one said: shingles of normalised text, Chinese and Latin alike."""

import re
import unicodedata

from citeloop.rules.answers import URL

_TERM = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_WORD_SHINGLE = 4


def shingles(text: str) -> frozenset[int]:
    """Hashes of four running terms (Latin words, single CJK characters), addresses left out.

    The hashes are stable within one process only.
    """
    folded = unicodedata.normalize("NFKC", URL.sub(" ", text)).casefold()
    terms = _TERM.findall(folded)
    if len(terms) < _WORD_SHINGLE:
        return frozenset({hash(tuple(terms))} if terms else ())
    return frozenset(map(hash, zip(*(terms[i:] for i in range(_WORD_SHINGLE)), strict=False)))


def similarity(one: frozenset[int], other: frozenset[int]) -> float:
    """Jaccard: shared shingles over all shingles; 0 where either has none."""
    if not one or not other:
        return 0.0
    return len(one & other) / len(one | other)
