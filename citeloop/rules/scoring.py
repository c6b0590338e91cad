"""One answer, read against one manifest."""

from functools import lru_cache

from citeloop.models.brand import Entity
from citeloop.models.measure import Answer, Manifest, Reading
from citeloop.models.work import SampleStatus
from citeloop.rules.answers import Body
from citeloop.rules.domains import cites_page, distinct, owns
from citeloop.rules.listing import ordinals
from citeloop.rules.matching import Hit, Matcher
from citeloop.rules.sentences import has_citation

__all__ = ["cites_page", "read"]


@lru_cache(maxsize=256)
def _matcher(brand: Entity, rivals: tuple[Entity, ...]) -> Matcher:
    return Matcher((brand, *rivals))


def read(answer: Answer, manifest: Manifest) -> Reading:
    """Score an answer. One that shows no search is `search_not_triggered` and says nothing else."""
    if not answer.searched:
        return Reading(status=SampleStatus.SEARCH_NOT_TRIGGERED)
    matcher = _matcher(manifest.brand, manifest.rivals)
    body = matcher.prepare(answer.text)
    hits = [hit for hit in matcher.find(body) if not hit.absent]
    ours = [hit for hit in hits if hit.entity == manifest.brand.name]
    cited_urls = distinct([*(citation.url for citation in answer.cited), *body.listed_urls])
    return Reading(
        status=SampleStatus.OK,
        named=bool(ours),
        rank=_rank(manifest.brand.name, hits, body) if ours else None,
        prominence=1 - ours[0].start / len(body.text) if ours else None,
        cited=any(owns(manifest.brand.domains, url) for url in cited_urls),
        supported=any(_supported(hit, body) for hit in ours),
        rivals_named=tuple(rival.name for rival in manifest.rivals if any(hit.entity == rival.name for hit in hits)),
        cited_urls=cited_urls,
        grounded=bool(cited_urls),
    )


def _rank(name: str, hits: list[Hit], body: Body) -> int:
    """The list ordinal where the answer is a list of two or more names, else by order of first naming."""
    places: dict[str, list[int]] = {}
    for hit in hits:
        places.setdefault(hit.entity, []).append(hit.start)
    ordinal = ordinals(body.text, places).get(name)
    if ordinal is not None:
        return ordinal
    first = places[name][0]
    return 1 + sum(offsets[0] < first for other, offsets in places.items() if other != name)


def _supported(hit: Hit, body: Body) -> bool:
    sentence = body.sentence_at(hit.start)
    return has_citation(body.original[sentence.start : sentence.end])
