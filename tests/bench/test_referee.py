"""The referee's arithmetic, on ledgers small enough to be counted by hand."""

from pathlib import Path

import pytest

from bench import figures, jobs, referee, terms
from bench.jobs import SIX, Batch
from bench.referee import Call, Ledger
from bench.terms import Terms


def call(purchase: str, at: float, *, ended: float | None = None, service: str = "deepseek", **more: bool) -> Call:
    return Call(service, purchase, at, ended, more.get("limited", False), more.get("paid", False))


def ledger(*calls: Call, posted_at: tuple[float, ...] = (), bought_twice: int = 0) -> Ledger:
    return Ledger(
        calls=calls,
        posts=len(posted_at),
        duplicate_posts=0,
        posted_at=posted_at,
        bought_twice=bought_twice,
        violations=0,
        max_concurrent=0,
    )


def test_the_limit_is_the_calls_beyond_the_burst_over_the_summed_rates_and_one_article() -> None:
    assert referee.limit(1006, 6, [4, 3, 3], 0.5) == pytest.approx(100.5)


def test_the_limit_of_fewer_calls_than_the_burst_is_one_article() -> None:
    assert referee.limit(3, 6, [4, 3, 3], 0.5) == 0.5


def test_calls_at_the_rate_overdraw_no_bucket_and_faster_ones_do() -> None:
    at_the_rate = [number / 4 for number in range(40)]
    twice_as_fast = [number / 8 for number in range(40)]
    assert referee.above_bucket(at_the_rate, 4, 1) == 0
    assert referee.above_bucket(twice_as_fast, 4, 2) == 19


def test_the_burst_is_there_again_after_a_rest() -> None:
    assert referee.above_bucket([0, 0, 10, 10], 1, 2) == 0
    assert referee.above_bucket([0, 0, 0], 1, 2) == 1


def test_the_busiest_second_is_a_window_that_slides() -> None:
    assert referee.busiest([0.0, 0.9, 1.5, 1.8, 3.0]) == 3
    assert referee.busiest([]) == 0


def test_a_rate_has_settled_when_its_gaps_and_its_mean_are_there() -> None:
    slow = [0.0, 0.5]
    fast = [1.0 + number / 5 for number in range(45)]
    assert referee.settled_after([*slow, *fast], 0.0, 5, 10.0) == pytest.approx(1.0)
    assert referee.settled_after([number / 2 for number in range(20)], 0.0, 5, 10.0) is None


def test_a_rate_of_zero_has_settled_with_the_last_call() -> None:
    assert referee.settled_after([0.0, 1.4], 1.0, 0, 9.0) == pytest.approx(0.4)
    assert referee.settled_after([0.0], 1.0, 0, 9.0) == 0.0


def test_the_longest_silence_counts_from_the_blow() -> None:
    assert referee.longest_gap([0.0, 1.0, 4.0, 4.5], 1.5, 5.0) == (2.5, 4.0)
    assert referee.longest_gap([2.0, 3.0, 9.0], 1.5, 10.0, begun_before=3.0) == (1.0, 3.0)


def test_a_call_on_the_wire_at_the_blow_is_back_when_it_is_made_again() -> None:
    book = ledger(
        call("t/a/generate", 1.0, ended=5.0, paid=False),
        call("t/b/generate", 2.0, ended=3.0, paid=True),
        call("t/a/generate", 9.0, ended=9.5, paid=True),
    )
    interrupted = referee.open_at(book, 4.0)
    assert interrupted == {"t/a/generate"}
    assert referee.last_back(book, interrupted, 4.0) == 5.0


def test_a_call_that_never_comes_back_is_told_as_such() -> None:
    assert referee.last_back(ledger(call("t/a/generate", 1.0, ended=5.0)), {"t/a/generate"}, 4.0) is None


def test_a_call_that_was_paid_in_spite_of_the_blow_need_not_come_back() -> None:
    book = ledger(call("t/a/generate", 1.0, ended=5.0, paid=True))
    assert referee.last_back(book, {"t/a/generate"}, 4.0) == 0.0


def test_growth_compares_the_end_with_the_tenth_after_the_middle() -> None:
    steady = [(float(second), 100.0 + (20 if second < 50 else 0)) for second in range(101)]
    growing = [(float(second), 100.0 if second < 90 else 110.0) for second in range(101)]
    assert referee.growth(steady) == 0
    assert referee.growth(growing) == pytest.approx(0.1)
    assert referee.growth([]) == 0


def test_an_article_is_written_when_a_call_of_its_stage_was_paid_once_or_twice() -> None:
    book = ledger(
        call("t/a/generate/0.0/deepseek", 0.0, paid=True),
        call("t/a/generate/0.0/qwen", 1.0, paid=True),
        call("t/b/generate/0.0/qwen", 1.0, paid=False),
        call("t/c/rewrite/0.0/qwen", 1.0, paid=True),
    )
    assert book.paid_articles("generate") == {"t/a"}


def test_the_end_is_the_last_reply_or_the_last_post() -> None:
    assert ledger(call("x", 1.0, ended=2.0)).end == 2.0
    assert ledger(call("x", 1.0, ended=2.0), posted_at=(3.0,)).end == 3.0


def test_medians_go_into_dictionaries_and_never_hide_a_failure() -> None:
    runs = [{"s": {"wall": 3.0}, "met": True}, {"s": {"wall": 1.0}, "met": False}, {"s": {"wall": 2.0}, "met": True}]
    assert referee.medians(runs) == {"s": {"wall": 2.0}, "met": False}


def test_what_must_not_happen_even_once_is_told_by_the_worst_run() -> None:
    runs = [{"one": {"lost": lost, "wall": wall}} for lost, wall in ((0, 1.0), (1, 3.0), (0, 2.0))]
    assert referee.medians(runs) == {"one": {"lost": 1, "wall": 2.0}}


def test_medians_of_a_figure_that_one_run_lacks_are_of_the_others() -> None:
    assert referee.medians([{"back": None}, {"back": 2.0}]) == {"back": 2.0}
    assert referee.medians([{"back": None}]) == {"back": None}


def test_rivals_get_the_channels_in_the_proportion_of_the_rates() -> None:
    told = jobs.for_rivals(
        [jobs.batch(100, "x")], Terms(rates={"deepseek": 4, "doubao": 3, "qwen": 3}), SIX, "http://x"
    )
    chosen = [job["channel"] for job in told["jobs"]]
    assert [chosen.count(name) for name in ("deepseek", "doubao", "qwen")] == [40, 30, 30]
    assert len({job["id"] for job in told["jobs"]}) == 100
    assert all(jobs.DRAFT in job["user"][1] for job in told["jobs"])


def test_a_batch_holds_no_keyword_twice() -> None:
    assert len(set(jobs.batch(2000, "x").keywords)) == 2000
    assert Batch(("a",)).tenant == "default"


def test_both_sides_of_the_terms_are_understood(tmp_path: Path) -> None:
    from citeloop.channels import catalog
    from sandbox import config

    made = Terms(rates={"deepseek": 6, "doubao": 5, "qwen": 4}, lost_replies=0.05)
    sandbox_file, channels_file = terms.written(made, tmp_path)
    world = config.load(sandbox_file)
    environ = {"CITELOOP_SANDBOX_URL": "http://127.0.0.1:1", "SANDBOX_KEY": "k"}
    known = catalog.load(channels_file, {**environ, "SANDBOX_BLOG_USER": "u", "SANDBOX_BLOG_PASSWORD": "p"})
    assert {name: world.providers[name].rate for name in made.rates} == dict(made.rates)
    assert {c.name: float(c.rate) for c in known.channels if c.rate} == dict(made.rates)


def test_a_missed_target_is_named_and_a_bar_is_drawn_for_each_contender() -> None:
    run = {
        "wall_over_limit": 1.2, "limited_share": 0.0, "above_bucket": 0, "success": 1.0, "residual": 0,
        "duplicate_posts": 0, "wall_s": 60.0,
    }  # fmt: skip
    found = {"six": {"citeloop": run, "dbos": {**run, "wall_s": 50.0}}}
    assert figures.summary(found)["missed"] == ["six: citeloop: wall ≤ 1.1 × limit", "six: wall below DBOS"]
    assert figures.plot(found).count("<rect x=") == 2
