"""A site or channel that cannot be used for a while: how long it is tried, and what is told meanwhile."""

from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from temporalio.client import WorkflowFailureError

from citeloop.models.channel import SiteKind, SiteSpec
from citeloop.models.plan import Route, Stage, State
from citeloop.models.work import PublicationState, Receipt, Step, Waiting
from tests.workflows.conftest import Theatre
from tests.workflows.test_article import until
from tests.workflows.world import plan, receipt, soon
from workflows.article import ArticleWorkflow
from workflows.orders import Word

BLOG = Route(
    name="blog",
    queue="channel.test",
    policy=SiteSpec(name="blog", kind=SiteKind.WEBHOOK, base_url="").policy,
)
"""As patient as a site of channels.toml that says nothing of it."""
PUBLISHING = plan(stages=(Stage.GENERATE, Stage.PUBLISH))
PUBLISHING = PUBLISHING.model_copy(update={"routes": PUBLISHING.routes | {Stage.PUBLISH: (BLOG,)}})


class Down:
    """A site that cannot be reached before `until`."""

    def __init__(self, years: Theatre, *, lasting: timedelta) -> None:
        self._years = years
        self._lasting = lasting
        self.tried: list[datetime] = []

    async def __call__(self, step: Step) -> Receipt | None:
        now = await self._years.env.get_current_time()
        self.tried.append(now)
        if now - self.tried[0] < self._lasting:
            again = now + timedelta(seconds=5)
            return receipt(step, PublicationState.RESERVED, reason="connection refused", look_again=again)
        return None


async def test_a_site_that_is_down_for_an_hour_gets_its_post_when_it_is_back(years: Theatre) -> None:
    years.world.script["publish"] = site = Down(years, lasting=timedelta(hours=1))
    ended = await (await years.start(PUBLISHING)).result()
    waits = [later - earlier for earlier, later in pairwise(site.tried)]
    assert ended.state is State.DONE
    assert site.tried[-1] - site.tried[0] < timedelta(hours=1, minutes=6)
    assert timedelta(seconds=5) <= waits[0] < timedelta(seconds=15)
    assert timedelta(minutes=5) <= waits[-1] < timedelta(minutes=6)


async def test_meanwhile_it_is_told_why_the_article_waits(years: Theatre) -> None:
    years.world.script["publish"] = Down(years, lasting=timedelta(hours=1))
    await (await years.start(PUBLISHING)).result()
    told = {(note.progress.stage, note.progress.state, note.progress.reason) for note in years.world.notes}
    assert (Stage.PUBLISH, State.RUNNING, "blog: connection refused") in told
    assert years.world.notes[-1].progress.reason == ""


async def test_a_site_that_stays_away_is_left_to_a_person_after_some_two_hours(years: Theatre) -> None:
    years.world.script["publish"] = site = Down(years, lasting=timedelta(days=9))
    with pytest.raises(WorkflowFailureError):  # nobody came for seven days
        await (await years.start(PUBLISHING)).result()
    parked = next(note.progress for note in years.world.notes if note.progress.state is State.PARKED)
    assert "blog: not posted: connection refused" in parked.reason
    assert timedelta(hours=1, minutes=45) < site.tried[-1] - site.tried[0] < timedelta(hours=2, minutes=30)


async def test_a_site_that_somebody_paused_is_named(theatre: Theatre) -> None:
    theatre.world.script["publish"] = lambda step: Waiting(until=soon(3600), reason=f"site {step.route} is paused")
    handle = await theatre.start(PUBLISHING)
    await until(lambda: bool(theatre.world.notes))
    standing = theatre.world.notes[-1].progress
    assert (standing.stage, standing.state, standing.reason) == (Stage.PUBLISH, State.RUNNING, "site blog is paused")
    await handle.signal(ArticleWorkflow.cancel, Word())
    assert (await handle.result()).state is State.CANCELLED
