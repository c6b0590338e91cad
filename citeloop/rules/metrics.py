"""Every number the product shows, with its denominator and interval. Definitions in docs/metrics.md.

Prompts that name the brand and prompts that do not are never pooled: each function reads one of the two
baskets, the non-brand one unless told otherwise. Only `ok` samples are counted.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from enum import StrEnum
from itertools import pairwise

from citeloop.models.measure import Sample
from citeloop.models.record import Record
from citeloop.models.work import SampleStatus
from citeloop.rules.domains import cites_page, owns, registrable_domain
from citeloop.rules.intervals import Count, cluster_wilson, disjoint

FEW_PROMPTS = 10
"""Below this many prompts even the cluster interval is too short."""
EXPLORATORY = "exploratory"
TOP = 3
THIN = 0.5


class Figure(Record):
    """A number as it is shown. `value` is None where nothing could be counted; that is never 0."""

    name: str
    value: float | None
    numerator: float = 0
    denominator: float = 0
    prompts: int = 0
    low: float | None = None
    high: float | None = None
    label: str = ""
    beside: "Figure | None" = None
    """The figure without which this one misleads: a mean rank stands beside its mention rate."""

    @property
    def interval(self) -> tuple[float, float] | None:
        return None if self.low is None or self.high is None else (self.low, self.high)


class CellVerdict(StrEnum):
    NO_DATA = "no-data"
    NO_RIVALS = "no-rivals"
    THIN_SAMPLE = "thin-sample"
    REAL_GAP = "real-gap"
    HEALTHY = "healthy"


def counted(samples: Iterable[Sample], *, branded: bool = False) -> list[Sample]:
    """The ok samples of one basket."""
    return [s for s in samples if s.reading.status == SampleStatus.OK and s.branded == branded]


def _ratio(
    name: str, samples: Iterable[Sample], hits: Callable[[Sample], float], trials: Callable[[Sample], float]
) -> Figure:
    per_prompt: dict[str, Count] = {}
    for sample in samples:
        m, n = per_prompt.get(sample.prompt_id, (0.0, 0.0))
        per_prompt[sample.prompt_id] = (m + hits(sample), n + trials(sample))
    counts = [(m, n) for m, n in per_prompt.values() if n > 0]
    numerator, denominator = sum(m for m, _ in counts), sum(n for _, n in counts)
    interval = cluster_wilson(counts)
    return Figure(
        name=name,
        value=numerator / denominator if denominator else None,
        numerator=numerator,
        denominator=denominator,
        prompts=len(counts),
        low=interval[0] if interval else None,
        high=interval[1] if interval else None,
        label=EXPLORATORY if len(counts) < FEW_PROMPTS else "",
    )


def _share(name: str, samples: Iterable[Sample], hit: Callable[[Sample], bool]) -> Figure:
    return _ratio(name, samples, lambda sample: float(hit(sample)), lambda _: 1.0)


def mention_rate(samples: Iterable[Sample], *, branded: bool = False) -> Figure:
    """上词率 per answer: m / n."""
    return _share("mention rate", counted(samples, branded=branded), lambda s: s.reading.named)


def prompt_coverage(samples: Iterable[Sample], *, branded: bool = False) -> Figure:
    """上词率 per keyword: prompts named at least once / prompts answered at least once."""
    named: dict[str, bool] = {}
    for sample in counted(samples, branded=branded):
        named[sample.prompt_id] = named.get(sample.prompt_id, False) or sample.reading.named
    k, m = len(named), sum(named.values())
    interval = cluster_wilson([(float(hit), 1.0) for hit in named.values()])
    return Figure(
        name="prompt coverage",
        value=m / k if k else None,
        numerator=m,
        denominator=k,
        prompts=k,
        low=interval[0] if interval else None,
        high=interval[1] if interval else None,
        label=EXPLORATORY if k < FEW_PROMPTS else "",
    )


def first_mention_rate(samples: Iterable[Sample], *, branded: bool = False) -> Figure:
    return _share("first-mention rate", counted(samples, branded=branded), lambda s: s.reading.rank == 1)


def top_rate(samples: Iterable[Sample], *, branded: bool = False) -> Figure:
    basket = counted(samples, branded=branded)
    return _share("top-3 rate", basket, lambda s: s.reading.rank is not None and s.reading.rank <= TOP)


def mean_rank(samples: Iterable[Sample], *, branded: bool = False) -> Figure:
    """Over naming samples; never shown without the mention rate beside it."""
    basket = counted(samples, branded=branded)
    ranked = [s for s in basket if s.reading.named and s.reading.rank is not None]
    total = sum(s.reading.rank or 0 for s in ranked)
    prompts = len({s.prompt_id for s in ranked})
    return Figure(
        name="mean rank",
        value=total / len(ranked) if ranked else None,
        numerator=total,
        denominator=len(ranked),
        prompts=prompts,
        label=EXPLORATORY if prompts < FEW_PROMPTS else "",
        beside=mention_rate(basket, branded=branded),
    )


def share_of_voice(samples: Iterable[Sample], rivals: Sequence[str]) -> Figure:
    """Answers naming us / (those + answers naming each rival); non-brand prompts only.

    rivals: the names tracked by the manifest. None tracked: no value.
    """
    basket = counted(samples) if rivals else []
    return _ratio(
        "share of voice",
        basket,
        lambda s: float(s.reading.named),
        lambda s: float(s.reading.named) + len(set(s.reading.rivals_named) & set(rivals)),
    )


def citation_rate(samples: Iterable[Sample], *, branded: bool = False) -> Figure:
    """信源引用率: #(cited) / #(ok samples that carry a source list)."""
    grounded = [s for s in counted(samples, branded=branded) if s.reading.grounded]
    return _share("citation rate", grounded, lambda s: s.reading.cited)


def citation_share(samples: Iterable[Sample], domains: Sequence[str], *, branded: bool = False) -> Figure:
    """Owned citations / all citations; a page counts once an answer."""
    return _ratio(
        "citation share",
        counted(samples, branded=branded),
        lambda s: float(sum(owns(domains, url) for url in s.reading.cited_urls)),
        lambda s: float(len(s.reading.cited_urls)),
    )


def source_shares(samples: Iterable[Sample], *, branded: bool = False) -> dict[str, float]:
    """Each cited registrable domain's share of all citations, the largest first."""
    domains = Counter(
        registrable_domain(url) or url for s in counted(samples, branded=branded) for url in s.reading.cited_urls
    )
    total = domains.total()
    return {domain: count / total for domain, count in domains.most_common()}


def page_cited_rate(samples: Iterable[Sample], url: str, *, branded: bool = False) -> Figure:
    """Samples citing this page / grounded samples. Give it the samples of the prompts mapped to the page."""
    grounded = [s for s in counted(samples, branded=branded) if s.reading.grounded]
    return _share("page cited rate", grounded, lambda s: cites_page(s.reading.cited_urls, url))


def supported_mention_rate(samples: Iterable[Sample], *, branded: bool = False) -> Figure:
    naming = [s for s in counted(samples, branded=branded) if s.reading.named]
    return _share("supported-mention rate", naming, lambda s: s.reading.supported)


def ghost_rate(samples: Iterable[Sample], *, branded: bool = False) -> Figure:
    """#(cited and not named) / #(cited)."""
    cited = [s for s in counted(samples, branded=branded) if s.reading.cited]
    return _share("ghost rate", cited, lambda s: not s.reading.named)


def informative_rate(samples: Iterable[Sample], *, branded: bool = False) -> Figure:
    """Samples naming any tracked entity / n."""
    basket = counted(samples, branded=branded)
    return _share("informative rate", basket, lambda s: s.reading.named or bool(s.reading.rivals_named))


def coverage(samples: Iterable[Sample], planned: int | None = None) -> dict[str, Figure]:
    """ok / planned, per engine, both baskets. planned: samples planned per engine, else those that exist."""
    per_engine: dict[str, list[Sample]] = {}
    for sample in samples:
        per_engine.setdefault(sample.engine, []).append(sample)
    figures = {}
    for engine, taken in sorted(per_engine.items()):
        ok = sum(s.reading.status == SampleStatus.OK for s in taken)
        total = len(taken) if planned is None else planned
        figures[engine] = Figure(
            name="coverage",
            value=ok / total if total else None,
            numerator=ok,
            denominator=total,
            prompts=len({s.prompt_id for s in taken}),
        )
    return figures


def volatility(samples: Iterable[Sample], *, branded: bool = False) -> float | None:
    """Mean over consecutive days of the Jaccard distance of the cited domains; None for fewer than two days."""
    days: dict[datetime, set[str]] = {}
    for sample in counted(samples, branded=branded):
        day = sample.window_start.replace(hour=0, minute=0, second=0, microsecond=0)
        cited = {registrable_domain(url) or url for url in sample.reading.cited_urls}
        days.setdefault(day, set()).update(cited)
    ordered = [days[day] for day in sorted(days)]
    distances = [
        1 - len(before & after) / len(before | after) if before | after else 0.0 for before, after in pairwise(ordered)
    ]
    return sum(distances) / len(distances) if distances else None


def verdict(samples: Iterable[Sample], rivals: Sequence[str], *, branded: bool = False) -> CellVerdict:
    """What one cell (prompt set × engine × window) says.

    thin-sample: the prompts may be of a kind to which engines name nobody. real-gap: they name somebody, and
    a rival's mention rate lies above ours with disjoint intervals, or we are not named at all.
    """
    basket = counted(samples, branded=branded)
    if not basket:
        return CellVerdict.NO_DATA
    if not rivals:
        return CellVerdict.NO_RIVALS
    informative, ours = informative_rate(basket, branded=branded), mention_rate(basket, branded=branded)
    if informative.high is None or informative.high < THIN:
        return CellVerdict.THIN_SAMPLE
    if not ours.numerator or any(_leads(basket, rival, ours) for rival in rivals):
        return CellVerdict.REAL_GAP
    return CellVerdict.HEALTHY


def _leads(basket: Sequence[Sample], rival: str, ours: Figure) -> bool:
    theirs = _share("mention rate", basket, lambda s: rival in s.reading.rivals_named)
    if theirs.interval is None or ours.interval is None:
        return False
    return (theirs.value or 0) > (ours.value or 0) and disjoint(theirs.interval, ours.interval)
