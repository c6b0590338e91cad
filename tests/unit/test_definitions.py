from datetime import UTC, datetime

from citeloop.models.measure import Reading, Sample
from citeloop.models.work import SampleStatus
from citeloop.rules import metrics
from citeloop.rules.definitions import DEFINITIONS, figures


def sample(*, named: bool, branded: bool = False) -> Sample:
    return Sample(
        prompt_id="p",
        keyword="k",
        branded=branded,
        engine="qwen",
        window="after",
        window_start=datetime(2026, 11, 1, tzinfo=UTC),
        replicate=0,
        reading=Reading(status=SampleStatus.OK, named=named, rivals_named=("Other",)),
    )


def test_every_figure_has_a_definition_and_every_definition_a_figure() -> None:
    taken = [sample(named=True)]
    shown = [*figures(taken, rivals=["Other"], domains=["a.com"]), *metrics.coverage(taken).values()]
    assert {figure.name for figure in shown} == set(DEFINITIONS)


def test_branded_and_other_prompts_are_never_pooled() -> None:
    taken = [sample(named=True, branded=True), sample(named=False)]
    for branded, expected in ((True, 1.0), (False, 0.0)):
        made = {f.name: f for f in figures(taken, rivals=["Other"], domains=[], branded=branded)}
        assert made["mention rate"].value == expected
        assert ("share of voice" in made) is not branded
