"""BM25 in Lucene's form. Pages come and go one by one, and the scores are those of an index built anew."""

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

_K1 = 1.5
_B = 0.75
Scores = NDArray[np.float32]


class _Postings:
    """Where a term stands, how often, and in how many pages that still stand."""

    def __init__(self) -> None:
        self.places = array("i")
        self.counts = array("f")
        self.pages = 0


class Index:
    """A page is known by its place, which counts from 0 and is not given again."""

    def __init__(self, documents: Iterable[list[str]] = ()) -> None:
        self._postings: defaultdict[str, _Postings] = defaultdict(_Postings)
        self._lengths = array("d")
        self._dropped: list[int] = []
        self._total = 0
        for terms in documents:
            self.add(terms)

    def add(self, terms: list[str]) -> int:
        place = len(self._lengths)
        self._lengths.append(len(terms))
        self._total += len(terms)
        for term, count in Counter(terms).items():
            postings = self._postings[term]
            postings.places.append(place)
            postings.counts.append(count)
            postings.pages += 1
        return place

    def drop(self, place: int, terms: list[str]) -> None:
        """`terms` as they were added."""
        self._dropped.append(place)
        self._total -= len(terms)
        for term in set(terms):
            self._postings[term].pages -= 1

    def scores(self, asked: list[str]) -> Scores:
        """One a place, 0 for a page that is gone. A term asked twice counts twice."""
        scores = np.zeros(len(self._lengths), np.float32)
        standing = len(self._lengths) - len(self._dropped)
        lengths = np.frombuffer(self._lengths, np.float64)
        for term in asked:
            if term not in self._postings or not standing:
                continue
            postings = self._postings[term]
            places = np.frombuffer(postings.places, np.int32)
            counts = np.frombuffer(postings.counts, np.float32)
            rarity = np.float32(math.log(1 + (standing - postings.pages + 0.5) / (postings.pages + 0.5)))
            length = _K1 * ((1 - _B) + _B * lengths[places] / (self._total / standing))
            scores[places] += (rarity * (counts / (length + counts))).astype(np.float32)
        scores[self._dropped] = 0
        return scores
