"""The formulas against values computed by hand."""

import math
import random
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citeloop.models.measure import Reading, Sample
from citeloop.models.work import SampleStatus
from citeloop.rules import alerts, metrics
from citeloop.rules.intervals import cluster_wilson, effective_trials, wilson
from citeloop.rules.lift import holm, lifts
from citeloop.rules.measuring import measure_article
from citeloop.rules.metrics import CellVerdict, Figure
from citeloop.rules.position import position_adjusted_word_count

START = datetime(2026, 3, 1, tzinfo=UTC)


def sample(
    prompt: str = "p1",
    *,
    named: bool = False,
    rank: int | None = None,
    cited: bool = False,
    supported: bool = False,
    rivals: tuple[str, ...] = (),
    urls: tuple[str, ...] = (),
    status: SampleStatus = SampleStatus.OK,
    branded: bool = False,
    keyword: str | None = "k",
    window: str = "after",
    engine: str = "e",
    day: float = 0,
) -> Sample:
    reading = Reading(
        status=status,
        named=named,
        rank=rank,
        cited=cited,
        supported=supported,
        rivals_named=rivals,
        cited_urls=urls,
        grounded=bool(urls),
    )
    return Sample(
        prompt_id=prompt,
        keyword=keyword,
        branded=branded,
        engine=engine,
        window=window,
        window_start=START + timedelta(days=day),
        replicate=0,
        reading=reading,
    )


U, V = "https://acme.com/a", "https://other.org/b"
BASKET = [
    sample("p1", named=True, rank=1, cited=True, supported=True, urls=(U, V)),
    sample("p1", named=True, rank=3, rivals=("R",), urls=(V,)),
    sample("p2", rivals=("R", "S"), cited=True, urls=(U,)),
    sample("p2"),
    sample("p3", status=SampleStatus.FAILED, named=True),
    sample("p3", status=SampleStatus.SEARCH_NOT_TRIGGERED),
    sample("b1", branded=True, named=True, rank=1),
]


@pytest.mark.parametrize(
    ("figure", "numerator", "denominator", "prompts"),
    [
        (metrics.mention_rate(BASKET), 2, 4, 2),
        (metrics.mention_rate(BASKET, branded=True), 1, 1, 1),
        (metrics.prompt_coverage(BASKET), 1, 2, 2),
        (metrics.first_mention_rate(BASKET), 1, 4, 2),
        (metrics.top_rate(BASKET), 2, 4, 2),
        (metrics.mean_rank(BASKET), 4, 2, 1),
        (metrics.share_of_voice(BASKET, ["R", "S"]), 2, 5, 2),
        (metrics.citation_rate(BASKET), 2, 3, 2),
        (metrics.citation_share(BASKET, ["acme.com"]), 2, 4, 2),
        (metrics.page_cited_rate(BASKET, U), 2, 3, 2),
        (metrics.supported_mention_rate(BASKET), 1, 2, 1),
        (metrics.ghost_rate(BASKET), 1, 2, 2),
        (metrics.informative_rate(BASKET), 3, 4, 2),
        (metrics.coverage(BASKET)["e"], 5, 7, 4),
        (metrics.coverage(BASKET, planned=10)["e"], 5, 10, 4),
    ],
    ids=lambda value: value.name if isinstance(value, Figure) else None,
)
def test_each_figure_has_the_numerator_and_denominator_of_its_definition(
    figure: Figure, numerator: float, denominator: float, prompts: int
) -> None:
    assert (figure.numerator, figure.denominator, figure.prompts) == (numerator, denominator, prompts)
    assert figure.value == numerator / denominator


def test_nothing_counted_is_null_and_never_zero() -> None:
    dead = [sample(status=SampleStatus.FAILED)]
    for figure in (
        metrics.mention_rate(dead),
        metrics.prompt_coverage(dead),
        metrics.mean_rank(dead),
        metrics.share_of_voice(dead, ["R"]),
        metrics.share_of_voice(BASKET, []),
        metrics.citation_rate(dead),
        metrics.citation_share(dead, ["acme.com"]),
        metrics.ghost_rate([sample(named=True)]),
        metrics.supported_mention_rate([sample()]),
        metrics.citation_rate([sample(named=True)]),
    ):
        assert (figure.value, figure.low, figure.high) == (None, None, None)
    assert metrics.coverage(dead)["e"].value == 0.0


def test_a_mean_rank_stands_beside_its_mention_rate() -> None:
    beside = metrics.mean_rank(BASKET).beside
    assert beside is not None
    assert (beside.numerator, beside.denominator) == (2, 4)


def test_under_ten_prompts_a_figure_is_exploratory() -> None:
    assert metrics.mention_rate([sample(f"p{i}") for i in range(9)]).label == "exploratory"
    assert metrics.mention_rate([sample(f"p{i}") for i in range(10)]).label == ""


def test_source_shares_sum_to_one_by_registrable_domain() -> None:
    assert metrics.source_shares(BASKET) == {"acme.com": 0.5, "other.org": 0.5}


def test_volatility_is_the_mean_jaccard_distance_of_consecutive_days() -> None:
    days = [sample(urls=(U, V), day=0), sample(urls=(U,), day=1), sample(urls=(U,), day=2)]
    assert metrics.volatility(days) == pytest.approx((0.5 + 0.0) / 2)
    assert metrics.volatility(days[:1]) is None


def test_a_cell_gets_the_verdict_its_samples_allow() -> None:
    def cell(named: int, rival: int, n: int = 20) -> CellVerdict:
        basket = [sample(f"p{i}", named=i < named, rivals=("R",) if i >= n - rival else ()) for i in range(n)]
        return metrics.verdict(basket, ["R"])

    assert metrics.verdict([], ["R"]) == CellVerdict.NO_DATA
    assert metrics.verdict([sample(named=True)], []) == CellVerdict.NO_RIVALS
    assert cell(0, 2) == CellVerdict.THIN_SAMPLE
    assert cell(0, 15) == CellVerdict.REAL_GAP
    assert cell(3, 17) == CellVerdict.REAL_GAP
    assert cell(12, 10) == CellVerdict.HEALTHY


def test_wilson_has_the_textbook_value() -> None:
    low, high = wilson(5, 10) or (0.0, 0.0)
    assert (round(low, 4), round(high, 4)) == (0.2366, 0.7634)
    assert wilson(0, 0) is None


def test_cluster_wilson_follows_its_formula_by_hand() -> None:
    counts = [(5.0, 5.0), (0.0, 5.0), (3.0, 5.0)]
    p, v = 8 / 15, 3 / 2 * ((5 - 8 / 3) ** 2 + (8 / 3) ** 2 + (3 - 8 / 3) ** 2) / 225
    assert effective_trials(counts) == pytest.approx(p * (1 - p) / v)
    assert cluster_wilson(counts) == wilson(p * effective_trials(counts), effective_trials(counts))
    assert effective_trials([(5.0, 5.0), (5.0, 5.0)]) == 2
    assert effective_trials([(1.0, 2.0), (1.0, 2.0), (1.0, 2.0)]) == 3


@given(st.lists(st.integers(1, 8).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=1))
def test_the_cluster_interval_holds_its_rate_and_is_never_narrower_than_plain_wilson(
    counts: list[tuple[int, int]],
) -> None:
    m, n = sum(c[0] for c in counts), sum(c[1] for c in counts)
    low, high = cluster_wilson(counts) or (1.0, 0.0)
    assert 0 <= low <= m / n + 1e-9
    assert m / n - 1e-9 <= high <= 1
    plain = wilson(m, n) or (0.0, 0.0)
    assert high - low >= plain[1] - plain[0] - 1e-9


def _covers(rng: random.Random, prompts: int, replicates: int) -> tuple[bool, bool]:
    counts = []
    for _ in range(prompts):
        rate = rng.betavariate(0.3, 0.9)
        counts.append((sum(rng.random() < rate for _ in range(replicates)), replicates))
    truth = 0.25
    plain = wilson(sum(m for m, _ in counts), prompts * replicates) or (0.0, 0.0)
    clustered = cluster_wilson(counts) or (0.0, 0.0)
    return plain[0] <= truth <= plain[1], clustered[0] <= truth <= clustered[1]


def test_in_simulation_the_cluster_interval_covers_what_it_claims_and_plain_wilson_does_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rng = random.Random(20260301)
    draws = [_covers(rng, prompts=30, replicates=5) for _ in range(4000)]
    plain, clustered = (sum(column) / len(draws) for column in zip(*draws, strict=True))
    with capsys.disabled():
        print(f"\ncoverage of a nominal 95 %: plain Wilson {plain:.1%}, cluster-Wilson {clustered:.1%}")  # noqa: T201
    assert 0.70 <= plain <= 0.77
    assert 0.93 <= clustered <= 0.96


def test_pawc_weighs_words_by_position_and_shares_them_between_sources() -> None:
    scores = position_adjusted_word_count("华为很大[1]。Acme is fast and small [1][2]. Nothing here.")
    assert scores is not None
    total = 4 + 5 + 2
    assert scores[1] == pytest.approx((4 + 5 * math.exp(-1 / 3) / 2) / total)
    assert scores[2] == pytest.approx(5 * math.exp(-1 / 3) / 2 / total)
    assert position_adjusted_word_count("No citation. At all 3.5.") is None


def _campaign(prompts: int, *, gain: bool) -> list[Sample]:
    made = []
    for i in range(prompts):
        for replicate in range(4):
            base = replicate == 0
            made.append(sample(f"t{i}", window="baseline", named=base))
            made.append(sample(f"t{i}", window="after", named=gain or base))
            made.append(sample(f"c{i}", window="baseline", named=base, keyword=None))
            made.append(sample(f"c{i}", window="after", named=base, keyword=None))
    return made


def test_lift_is_the_difference_of_differences_and_is_judged_from_ten_prompts_a_side() -> None:
    mention = lifts(_campaign(12, gain=True), seed=7, draws=400)[0]
    assert (mention.metric, mention.value, mention.treated_prompts) == ("mention rate", 0.75, 12)
    assert mention.significant is True
    assert mention.balanced
    few = lifts(_campaign(9, gain=True), seed=7, draws=400)[0]
    assert (few.value, few.significant, few.label) == (0.75, None, "exploratory")
    none = lifts(_campaign(12, gain=False), seed=7, draws=400)[0]
    assert (none.value, none.significant) == (0.0, False)


def test_lift_is_the_same_for_the_same_seed_and_null_without_controls() -> None:
    mixed = [s for i, s in enumerate(_campaign(12, gain=True)) if i % 7]
    assert lifts(mixed, seed=1, draws=200) == lifts(mixed, seed=1, draws=200)
    assert lifts([s for s in mixed if s.keyword], seed=1, draws=200)[0].value is None


def test_holm_steps_down() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []


def test_an_article_is_measured_by_its_own_prompts_and_its_own_pages() -> None:
    page = "https://blog.acme.com/post"
    samples = [
        sample(window="baseline", named=False),
        sample(window="baseline", status=SampleStatus.FAILED),
        sample(named=True, urls=(page,), day=3),
        sample(named=True, urls=("https://acme.com/other",), cited=True, day=1),
        sample(status=SampleStatus.REFUSED, day=7),
        sample(keyword=None, urls=(page,), named=True, day=1),
    ]
    measured = measure_article(samples, [page + "/"], START)
    assert (measured.baseline_ok, measured.baseline_named) == (1, 0)
    assert (measured.after_planned, measured.after_ok, measured.after_named) == (3, 2, 2)
    assert (measured.after_grounded, measured.after_cited, measured.first_cited_days) == (2, 1, 3.0)
    assert measure_article(samples, [page], START, day=timedelta(hours=12)).first_cited_days == 6.0
    assert measure_article([], [page], None).first_cited_days is None


def _figure(value: float, low: float, high: float) -> Figure:
    return Figure(name="x", value=value, low=low, high=high)


def test_alerts_fire_on_the_edge_only() -> None:
    assert alerts.mention_dropped(_figure(0.6, 0.5, 0.7), _figure(0.3, 0.2, 0.4))
    assert not alerts.mention_dropped(_figure(0.6, 0.35, 0.7), _figure(0.3, 0.2, 0.4))
    assert not alerts.mention_dropped(_figure(0.9, 0.85, 0.95), _figure(0.7, 0.65, 0.75))
    assert alerts.citation_lost([True, False, False, False])
    assert not alerts.citation_lost([True, False, False, False, False])
    assert not alerts.citation_lost([True, None, False, False])
    ahead, behind = _figure(0.6, 0.5, 0.7), _figure(0.3, 0.2, 0.4)
    assert alerts.overtaken([ahead, behind], [behind, ahead])
    assert not alerts.overtaken([behind, behind], [ahead, ahead])
    assert not alerts.engine_healthy(2, 10)
    assert alerts.comparable("a", "b") is not None
