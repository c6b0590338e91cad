"""Did the articles work? Difference in differences against control prompts, with a seeded bootstrap."""

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from citeloop.models.measure import Sample
from citeloop.models.record import Record
from citeloop.rules.metrics import EXPLORATORY, FEW_PROMPTS, counted

DRAWS = 2000
_LEVEL = 0.05


class Lift(Record):
    """(treated after − before) − (control after − before) of one metric on one engine.

    value, low, high: in rate points, None where a side has no answer in one of the windows.
    p_value: two-sided, of the bootstrap; adjusted: after Holm over all engines × metrics of the campaign.
    significant: None under ten prompts a side: numbers, no verdict.
    """

    engine: str
    metric: str
    value: float | None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    adjusted: float | None = None
    significant: bool | None = None
    treated_prompts: int = 0
    control_prompts: int = 0
    balanced: bool = True
    """Whether every counted prompt has as many answers before as after."""
    label: str = ""


@dataclass(frozen=True)
class _Cluster:
    """One prompt: (hits, trials) before and after."""

    before: tuple[int, int]
    after: tuple[int, int]


_METRICS: dict[str, tuple[Callable[[Sample], bool], Callable[[Sample], bool]]] = {
    "mention rate": (lambda s: s.reading.named, lambda _: True),
    "citation rate": (lambda s: s.reading.cited, lambda s: s.reading.grounded),
}


def _clusters(samples: Iterable[Sample], metric: str) -> list[_Cluster]:
    """The prompts that were answered in both windows."""
    hit, counts = _METRICS[metric]
    tally: dict[str, dict[str, list[int]]] = {}
    for sample in samples:
        if counts(sample):
            cell = tally.setdefault(sample.prompt_id, {}).setdefault(sample.window, [0, 0])
            cell[0] += hit(sample)
            cell[1] += 1
    return [
        _Cluster((cells["baseline"][0], cells["baseline"][1]), (cells["after"][0], cells["after"][1]))
        for _, cells in sorted(tally.items())
        if "baseline" in cells and "after" in cells
    ]


def _change(clusters: Sequence[_Cluster]) -> float:
    before, after = [c.before for c in clusters], [c.after for c in clusters]
    return sum(m for m, _ in after) / sum(n for _, n in after) - sum(m for m, _ in before) / sum(n for _, n in before)


def _bootstrap(treated: Sequence[_Cluster], control: Sequence[_Cluster], draws: int, rng: random.Random) -> list[float]:
    """Resample prompts with all their replicates; sorted."""
    return sorted(
        _change(rng.choices(treated, k=len(treated))) - _change(rng.choices(control, k=len(control)))
        for _ in range(draws)
    )


def _lift(engine: str, metric: str, samples: Sequence[Sample], draws: int, rng: random.Random) -> Lift:
    treated = _clusters((s for s in samples if s.keyword is not None), metric)
    control = _clusters((s for s in samples if s.keyword is None), metric)
    few = min(len(treated), len(control)) < FEW_PROMPTS
    bare = Lift(
        engine=engine,
        metric=metric,
        value=None,
        treated_prompts=len(treated),
        control_prompts=len(control),
        balanced=all(c.before[1] == c.after[1] for c in (*treated, *control)),
        label=EXPLORATORY if few else "",
    )
    if not treated or not control:
        return bare
    drawn = _bootstrap(treated, control, draws, rng)
    tail = min(sum(x <= 0 for x in drawn), sum(x >= 0 for x in drawn))
    return bare.model_copy(
        update={
            "value": _change(treated) - _change(control),
            "low": drawn[int(draws * _LEVEL / 2)],
            "high": drawn[min(draws - 1, int(draws * (1 - _LEVEL / 2)))],
            "p_value": min(1.0, 2 * (tail + 1) / (draws + 1)),
        }
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjustment, in the order given."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for step, index in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - step) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def lifts(samples: Iterable[Sample], *, seed: int, draws: int = DRAWS) -> tuple[Lift, ...]:
    """One Lift per engine × metric. Treated prompts bear a keyword, control prompts none; non-brand only."""
    per_engine: dict[str, list[Sample]] = {}
    for sample in counted(samples):
        per_engine.setdefault(sample.engine, []).append(sample)
    found = [
        _lift(engine, metric, taken, draws, random.Random(f"{seed}/{engine}/{metric}"))  # noqa: S311 - statistics
        for engine, taken in sorted(per_engine.items())
        for metric in _METRICS
    ]
    tested = [place for place, lift in enumerate(found) if lift.p_value is not None]
    adjusted = dict(zip(tested, holm([found[place].p_value or 0.0 for place in tested]), strict=True))
    return tuple(_judged(lift, adjusted.get(place)) for place, lift in enumerate(found))


def _judged(lift: Lift, adjusted: float | None) -> Lift:
    if adjusted is None:
        return lift
    verdict = None if lift.label == EXPLORATORY else adjusted < _LEVEL
    return lift.model_copy(update={"adjusted": adjusted, "significant": verdict})
