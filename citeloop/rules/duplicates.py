"""Whether a text says again what an earlier one said: shingles of normalised text, Chinese and Latin alike."""

import re

from citeloop.rules.answers import prepare
from citeloop.rules.folding import is_cjk
from citeloop.rules.matching import folded_text

_TERM = re.compile(r"[^\W_]")
_WORD_SHINGLE = 4


def _terms(text: str) -> list[str]:
    """Folded words of Latin script and single CJK characters, in order."""
    terms: list[str] = []
    word = ""
    for char in folded_text(text) + " ":
        if _TERM.match(char) and not is_cjk(char):
            word += char
            continue
        if word:
            terms.append(word)
            word = ""
        if is_cjk(char):
            terms.append(char)
    return terms


def shingles(text: str) -> frozenset[int]:
    """Hashes of four running terms, addresses and source lists left out. Stable within one process only."""
    terms = _terms(prepare(text).text)
    if len(terms) < _WORD_SHINGLE:
        return frozenset({hash(tuple(terms))} if terms else ())
    return frozenset(hash(tuple(terms[i : i + _WORD_SHINGLE])) for i in range(len(terms) - _WORD_SHINGLE + 1))


def similarity(one: frozenset[int], other: frozenset[int]) -> float:
    """Jaccard: shared shingles over all shingles; 0 where either has none."""
    if not one or not other:
        return 0.0
    return len(one & other) / len(one | other)
