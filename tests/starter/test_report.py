"""The demo's closing figures, and what makes it fail."""

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest
from temporalio.client import Client

from citeloop.models.channel import ChannelSpec, Role
from citeloop.models.money import Money
from citeloop.models.plan import Kind, Stage, State
from citeloop.models.work import Measurement, PublicationState
from citeloop.store.repositories.articles import ArticleView
from starter.report import Ledger, summarise
from starter.utilisation import Gauge

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CLEAN = Ledger(limited=0, duplicate_posts=0, bought_twice=0, calls={})


def article(number: int, state: State = State.MEASURED, **more: Any) -> ArticleView:
    published = (("blog", f"http://x/{number}", PublicationState.PUBLISHED),) if state is State.MEASURED else ()
    fields: dict[str, Any] = {
        "id": str(number),
        "campaign_id": "C",
        "manifest_id": "M",
        "keyword": f"k{number}",
        "locale": "en",
        "kind": Kind.ARTICLE,
        "priority": 3,
        "state": state,
        "stage": Stage.MONITOR,
        "round": 0,
        "channel": "c",
        "writer": "w",
        "attempts": 1,
        "faults": 0,
        "reason": "",
        "hold": None,
        "urls": published,
        "measurement": Measurement(after_ok=4, after_grounded=4, after_cited=1),
        "cost": Money(),
        "run_id": None,
        "submitted_at": NOW,
        "started_at": NOW,
        "updated_at": NOW,
        "ended_at": NOW + timedelta(seconds=9),
        "done": (),
    }
    return ArticleView.model_validate({**fields, **more})


def test_twenty_two_of_twenty_four_published_and_the_rest_parked_is_as_it_should_be() -> None:
    rows = [article(n) for n in range(22)] + [article(n, State.PARKED, measurement=None) for n in (22, 23)]
    result = summarise(rows, [], CLEAN, seconds=90.04)
    figures = result.figures
    assert result.problems == ()
    assert (figures.articles, figures.published, figures.parked, figures.failed) == (24, 22, 2, 0)
    assert (figures.citation_rate_after, figures.mention_rate_before, figures.seconds) == (0.25, None, 90.0)


@pytest.mark.parametrize(
    ("rows", "ledger", "problem"),
    [
        ([article(0, State.RUNNING)] + [article(n) for n in range(1, 24)], {}, "not ended: k0"),
        ([article(n, State.PARKED) for n in range(3)] + [article(n) for n in range(3, 24)], {}, "21 published"),
        ([article(n) for n in range(24)], {"duplicate_posts": 1}, "1 duplicate posts"),
        ([article(n) for n in range(24)], {"bought_twice": 1}, "1 calls bought twice"),
        ([article(n) for n in range(24)], {"limited": 2}, "2 calls answered with 429"),
    ],
)
def test_what_the_demo_must_not_do_is_named(rows: list[ArticleView], ledger: dict[str, int], problem: str) -> None:
    (found,) = summarise(rows, [], CLEAN.model_copy(update=ledger), seconds=1).problems
    assert found.startswith(problem)


def gauge_of(client: Client, *busy: tuple[float, float], rate: int = 2) -> Gauge:
    channel = ChannelSpec(
        name="c",
        roles=frozenset({Role.WRITE}),
        dialect="openai_chat",
        base_url="http://x",
        model="m",
        rate=Fraction(rate),
    )
    gauge = Gauge(client, [channel])
    gauge.busy["c"] = list(busy)
    return gauge


async def test_only_calls_made_while_work_waited_count_as_use(client: Client) -> None:
    (use,) = gauge_of(client, (10.0, 11.0), (11.0, 13.0)).read({"c": (9.9, 10.0, 10.5, 11.5, 12.5, 13.0)})
    assert (use.calls, use.seconds, use.share) == (4, 3.0, 3 / 5)
    assert gauge_of(client).read({})[0].share is None


@pytest.mark.parametrize("first", [10.0, 10.1, 10.25, 10.499])
async def test_a_channel_that_runs_at_its_limit_is_used_to_100_percent(client: Client, first: float) -> None:
    calls = [first + n / 2 for n in range(-3, 30)]
    (use,) = gauge_of(client, (10.0, 12.0), (12.0, 13.0), (15.0, 18.3)).read({"c": calls})
    assert use.share == pytest.approx(1.0)


async def test_a_channel_that_stalls_while_work_waits_is_not_used_well(client: Client) -> None:
    early = [10 + n / 2 for n in range(10)]
    (stalled,) = gauge_of(client, (10.0, 20.0)).read({"c": early})
    (silent,) = gauge_of(client, (10.0, 20.0)).read({})
    assert stalled.share == pytest.approx(9 / 19)
    assert silent.share == 0
