"""The matcher: where an answer names the brand and its rivals. Definitions in docs/metrics.md."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from citeloop.models.brand import Alias, Entity
from citeloop.models.record import Record
from citeloop.rules.absence import is_absence
from citeloop.rules.answers import Body, prepare
from citeloop.rules.domains import has_public_suffix
from citeloop.rules.folding import Folded, fold, is_cjk, is_latin
from citeloop.rules.remembering import remembered

MATCHER_VERSION = "1"
"""Stored with every manifest; raise it whenever a stored answer could be read differently."""

_KNOWN_STOPS = {"小米": ("粥", "椒", "辣"), "理想": ("状态", "情况", "主义")}
"""For aliases that are common words and come without stop contexts of their own."""


class Hit(Record):
    """One occurrence of a name; `start` and `end` are code points of the answer without its reasoning."""

    entity: str
    alias: str
    start: int
    end: int
    absent: bool = False
    """It stands in an absence clause and names nobody."""


@dataclass(frozen=True)
class _Needle:
    entity: str
    alias: str
    folded: str
    stops: tuple[str, ...]
    required: tuple[str, ...]


@dataclass(frozen=True)
class _Found:
    needle: _Needle
    start: int
    end: int


@remembered(texts=2048, longest=500)
def folded_text(text: str) -> str:
    return fold(text).text.strip()


def _needles(entity: Entity) -> list[_Needle]:
    listed = [_Needle(entity.name, a.text, folded_text(a.text), *_contexts(a)) for a in entity.aliases]
    name = folded_text(entity.name)
    if all(needle.folded != name for needle in listed):
        listed.append(_Needle(entity.name, entity.name, name, *_contexts(Alias(text=entity.name))))
    return [needle for needle in listed if needle.folded]


def _contexts(alias: Alias) -> tuple[tuple[str, ...], tuple[str, ...]]:
    folded = folded_text(alias.text)
    stops = alias.stop_contexts or _KNOWN_STOPS.get(folded, ())
    return (
        tuple(filter(None, map(folded_text, stops))),
        tuple(filter(None, map(folded_text, alias.required_contexts))),
    )


def occurrences(folded: Folded, word: str) -> list[tuple[int, int]]:
    """Every place of a folded word where its Latin ends touch no other Latin letter or digit."""
    places: list[tuple[int, int]] = []
    has_cjk = any(map(is_cjk, word))
    guard_start = is_latin(word[0]) or not has_cjk
    guard_end = is_latin(word[-1]) or not has_cjk
    index = folded.text.find(word)
    while index >= 0:
        end = index + len(word)
        if (not guard_start or folded.boundary_before(index)) and (not guard_end or folded.boundary_after(end)):
            places.append((index, end))
        index = folded.text.find(word, index + 1)
    return places


class Matcher:
    """Finds the names of a fixed set of entities. The first entity wins where two list the same alias."""

    def __init__(self, entities: Sequence[Entity]) -> None:
        needles = [needle for entity in entities for needle in _needles(entity)]
        self._needles = sorted(needles, key=lambda needle: -len(needle.folded))
        self._domains = frozenset(
            alias.lower() for needle in needles if has_public_suffix(alias := needle.alias.strip())
        )

    def prepare(self, text: str) -> Body:
        return prepare(text, self._domains)

    def find(self, text: str | Body) -> tuple[Hit, ...]:
        """All hits in order of place, those in absence clauses marked `absent`."""
        body = text if isinstance(text, Body) else self.prepare(text)
        taken: list[_Found] = []
        covered = bytearray(len(body.folded.text))
        for needle in self._needles:
            for start, end in occurrences(body.folded, needle.folded):
                found = _Found(needle, start, end)
                if not any(covered[start:end]) and self._stands(found, body):
                    covered[start:end] = b"\x01" * (end - start)
                    taken.append(found)
        return tuple(self._hit(found, body) for found in sorted(taken, key=lambda found: found.start))

    def names(self, text: str) -> bool:
        """Whether any of the entities is named outside an absence clause."""
        return any(not hit.absent for hit in self.find(text))

    def _stands(self, found: _Found, body: Body) -> bool:
        behind = body.folded.text[found.end : found.end + 40].lstrip(" ")
        if behind.startswith(found.needle.stops):
            return False
        if not found.needle.required:
            return True
        low, high = _sentence_around(found, body)
        return any(
            low <= start and end <= high
            for word in found.needle.required
            for start, end in occurrences(body.folded, word)
        )

    def _hit(self, found: _Found, body: Body) -> Hit:
        low, high = _sentence_around(found, body)
        return Hit(
            entity=found.needle.entity,
            alias=found.needle.alias,
            start=body.folded.starts[found.start],
            end=body.folded.ends[found.end - 1],
            absent=is_absence(body.folded.text[low:high], found.start - low, found.end - low),
        )


def _sentence_around(found: _Found, body: Body) -> tuple[int, int]:
    """The sentence of a hit, in offsets of the folded text."""
    sentence = body.sentence_at(body.folded.starts[found.start])
    high = bisect_left(body.folded.starts, sentence.end)
    return bisect_left(body.folded.starts, sentence.start), max(high, found.end)
