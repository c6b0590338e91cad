import asyncio
from datetime import timedelta

import pytest

from activities import sites
from activities.sites import visit
from citeloop.models.work import Waiting
from citeloop.store.repositories import lanes
from tests.activities.workshop import Workshop

SHORT = timedelta(seconds=0.6)


async def test_a_visit_keeps_its_place_for_as_long_as_it_lasts(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sites, "LEASE", SHORT)
    await workshop.change_site("blog", concurrency=1)
    outside, place = workshop.outside(), (workshop.database, workshop.tenant.id)
    async with visit(*place, outside, workshop.name("blog")) as waiting:
        assert waiting is None
        await asyncio.sleep(2 * SHORT.total_seconds())
        async with visit(*place, outside, workshop.name("blog")) as early:
            assert isinstance(early, Waiting)
    async with visit(*place, outside, workshop.name("blog")) as late:
        assert late is None


async def test_a_visit_whose_worker_died_is_over_soon(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sites, "LEASE", SHORT)
    await workshop.change_site("blog", concurrency=1)
    outside, place = workshop.outside(), (workshop.database, workshop.tenant.id)
    died = sites.Lane(*place, "", workshop.name("blog"))
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        turn = await lanes.take(scope, *died.place, rate=None, most=1, lasting=SHORT)
    assert turn.granted
    async with visit(*place, outside, workshop.name("blog")) as early:
        assert isinstance(early, Waiting)
    await asyncio.sleep(SHORT.total_seconds())
    async with visit(*place, outside, workshop.name("blog")) as late:
        assert late is None
