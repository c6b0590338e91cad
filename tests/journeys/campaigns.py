"""A small campaign on its way through the sandbox, and what may be said of it at its end."""

import asyncio
import time
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from citeloop.models.plan import MonitorPolicy, ReviewMode, State
from citeloop.models.request import CampaignRequest
from citeloop.store.repositories.articles import ArticleView
from starter import files, simulated
from starter.watching import over, views
from tests.installation import WRITERS, Installation, brand, eventually, request

REFUSED = "LangChain memory"
"""The sandbox's writers refuse every prompt with these words."""

QUIET = 5.0
"""Seconds without a call after which there is nothing more to ask: the last control questions come two seconds after
those before."""


def thirteen() -> CampaignRequest:
    """Twelve keywords that can be written about, and the one that is refused."""
    lines = files.read_keywords(simulated.KEYWORDS)
    refused = [line for line in lines if REFUSED in line.keyword]
    others = [line for line in lines if REFUSED not in line.keyword]
    monitor = MonitorPolicy(offsets=(1, 3), day=timedelta(seconds=1))
    return request("journey", mode=ReviewMode.AUTO, keywords=(*others[:12], *refused[:1]), monitor=monitor)


async def submit(journey: Installation) -> str:
    done = await journey.commands.submit_campaign(brand(), thirteen())
    assert (done.new, done.started) == (13, True)
    assert done.campaign_id is not None
    return done.campaign_id


async def written(journey: Installation, count: int) -> None:
    """Until the writers have answered `count` times."""

    async def enough() -> bool:
        providers = (await journey.sandbox.ledger())["providers"]
        return sum(int(providers[name]["ok"]) for name in WRITERS if name in providers) >= count

    await eventually(enough, within=40, every=0.05)


async def posted(journey: Installation, count: int) -> None:
    async def enough() -> bool:
        return int((await journey.sandbox.ledger())["totals"]["posts"]) >= count

    await eventually(enough, within=60, every=0.05)


async def ended(journey: Installation, campaign_id: str, *, within: float = 120) -> list[ArticleView]:
    async def all_over() -> list[ArticleView] | None:
        rows = await views(journey.database, journey.tenant.id, campaign_id)
        return list(rows) if all(over(row, settled=True) for row in rows) else None

    return await eventually(all_over, within=within, every=0.5)


@dataclass(frozen=True)
class Blow:
    """A kill: when, how many paid calls it can have cost at most, and how long the process was away."""

    at: float
    open_calls: int
    back_after: float

    def first_call_after(self, ledger: dict[str, Any]) -> float:
        """Seconds until a provider was called again."""
        calls = (float(at) for entry in ledger["providers"].values() for at in entry["times"])
        return min(at for at in calls if at > self.at) - self.at


async def open_calls(journey: Installation) -> int:
    """Begun and not answered, or answered and not yet kept.

    What is kept is read first, so that a call that ends in between counts as open.
    """
    kept = await journey.purchases()
    ledger = await journey.sandbox.ledger()
    totals = ledger["totals"]
    begun = sum(int(entry["inside"]) for entry in ledger["providers"].values())
    return begun + int(totals["ok"]) - int(totals["bought_twice"]) - kept


async def assert_nothing_lost_or_doubled(
    journey: Installation, rows: list[ArticleView], *blows: Blow
) -> dict[str, object]:
    """Every article ended, every paid answer and every page is ours exactly once. Returns the figures."""
    ledger = await _settled(journey)
    totals = ledger["totals"]
    states = Counter(row.state for row in rows)
    parked = [row.keyword for row in rows if row.state is State.PARKED]
    assert set(states) <= {State.MEASURED, State.PARKED}, [(row.keyword, row.state, row.reason) for row in rows]
    assert len(parked) == 1, [(row.keyword, row.reason) for row in rows if row.state is State.PARKED]
    assert set(parked) <= set(totals["refused"])
    assert totals["duplicate_posts"] == 0
    assert totals["limited"] <= 1
    pages = [url for row in rows for _, url, state in row.urls if state == "published"]
    assert (len(pages), len(set(pages)), totals["posts"]) == (24, 24, 24)
    at_the_kills = sum(blow.open_calls for blow in blows)
    assert totals["bought_twice"] <= at_the_kills, totals["bought_twice_ids"]
    return {
        "ended": f"{len(rows)} of 13",
        "parked_by_refusal": len(parked),
        "back_after_s": [round(blow.back_after, 1) for blow in blows],
        "first_call_after_s": [round(blow.first_call_after(ledger), 1) for blow in blows],
        "rate_limited": totals["limited"],
        "duplicate_posts": totals["duplicate_posts"],
        "bought_twice": f"{totals['bought_twice']} (open at the kills: {at_the_kills})",
        "lost_replies": totals["lost_replies"],
        "abandoned": totals["abandoned"],
    }


async def _settled(journey: Installation) -> dict[str, Any]:
    """The ledger after the campaign's control questions, which go on after its articles: every paid answer is kept,
    and nobody asks any more."""
    began = since = time.monotonic()
    calls = -1
    while (now := time.monotonic()) - since < QUIET:
        still_open, ledger = await open_calls(journey), await journey.sandbox.ledger()
        if still_open or ledger["totals"]["calls"] != calls:
            calls, since = ledger["totals"]["calls"], now
        assert now - began < 90, (still_open, await journey.purchases(), ledger["totals"])
        await asyncio.sleep(0.3)
    return ledger
