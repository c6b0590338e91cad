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


async def test_only_calls_made_while_work_waited_count_as_use(client: Client) -> None:
    channel = ChannelSpec(
        name="c",
        roles=frozenset({Role.WRITE}),
        dialect="openai_chat",
        base_url="http://x",
        model="m",
        rate=Fraction(2),
    )
    gauge = Gauge(client, [channel])
    gauge.busy["c"] = [(10.0, 11.0), (11.0, 12.0)]
    (use,) = gauge.read({"c": (9.9, 10.0, 10.5, 11.0, 12.0)})
    assert (use.calls, use.seconds, use.share) == (3, 2.0, 0.75)
    assert Gauge(client, [channel]).read({})[0].share is None
