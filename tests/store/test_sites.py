import asyncio
import re
from datetime import timedelta
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest

from citeloop.models import ids
from citeloop.models.channel import SiteKind
from citeloop.models.site import SiteEntry, SiteState
from citeloop.store.database import Database
from citeloop.store.repositories import lanes, sites, tenants
from citeloop.store.repositories.lanes import Turn
from citeloop.store.repositories.sites import Put, SealedEntry
from citeloop.store.repositories.tenants import TenantRow
from citeloop.store.statements import text

LONG = timedelta(minutes=1)


def entry(name: str, **changes: Any) -> SiteEntry:
    made = SiteEntry(name=name, kind=SiteKind.WORDPRESS, base_url=f"https://{name}.example.com", concurrency=2)
    return made.model_copy(update=changes)


def closed(name: str, print_: str = "p", **changes: Any) -> SealedEntry:
    return SealedEntry(entry=entry(name, **changes), sealed=ids.new_id().encode(), sealed_print=print_)


async def take(
    database: Database, tenant: TenantRow, holder: str, *, most: int = 2, rate: int | None = None, **more: Any
) -> Turn:
    spaced = Fraction(rate) if rate is not None else None
    async with database.tenant(tenant.id) as scope:
        owner, lasting = more.get("owner", tenant.id), more.get("lasting", LONG)
        return await lanes.take(scope, owner, "blog", holder, rate=spaced, most=most, lasting=lasting)


async def leave(database: Database, tenant: TenantRow, holder: str, held: timedelta = timedelta(seconds=1)) -> None:
    async with database.tenant(tenant.id) as scope:
        await lanes.leave(scope, tenant.id, "blog", holder, held=held)


# the registry


async def test_what_is_put_again_is_new_changed_or_as_it_was(database: Database, tenant: TenantRow) -> None:
    async with database.tenant(tenant.id) as scope:
        assert await sites.put(scope, [closed("a"), closed("b", labels=("x", "y"))]) == Put(new=2, changed=0, same=0)
    async with database.tenant(tenant.id) as scope:
        again = [closed("a"), closed("b", labels=("y",)), closed("c")]
        assert await sites.put(scope, again) == Put(new=1, changed=1, same=1)
        found = {site.name: site.revision for site in await sites.page(scope, limit=10)}
        assert found == {"a": 1, "b": 2, "c": 1}
        assert await sites.page(scope, limit=10, label="x") == []
        assert [site.name for site in await sites.page(scope, limit=10, label="y")] == ["b"]


async def test_another_secret_is_a_change_and_the_same_one_is_not(database: Database, tenant: TenantRow) -> None:
    async with database.tenant(tenant.id) as scope:
        await sites.put(scope, [closed("a", "one")])
        before = (await sites.sealed(scope, ["a"]))[0][1]
        assert (await sites.put(scope, [closed("a", "one")])).same == 1
        assert (await sites.sealed(scope, ["a"]))[0][1] == before
        assert (await sites.put(scope, [closed("a", "two")])).changed == 1
        assert (await sites.sealed(scope, ["a"]))[0][1] != before


async def test_pages_go_on_where_they_ended_by_kind_and_by_label(database: Database, tenant: TenantRow) -> None:
    given = [
        closed(
            f"s{n:02}", kind=SiteKind.GHOST if n % 2 else SiteKind.WORDPRESS, labels=("three",) if n % 3 == 0 else ()
        )
        for n in range(20)
    ]
    async with database.tenant(tenant.id) as scope:
        await sites.put(scope, given)
        first = await sites.page(scope, limit=12)
        rest = await sites.page(scope, after=first[-1].name, limit=12)
        assert [site.name for site in (*first, *rest)] == [f"s{n:02}" for n in range(20)]
        ghosts = await sites.page(scope, after="s05", limit=3, kind="ghost")
        assert [site.name for site in ghosts] == ["s07", "s09", "s11"]
        both = await sites.page(scope, limit=10, kind="ghost", label="three")
        assert [site.name for site in both] == ["s03", "s09", "s15"]


async def test_no_tenant_sees_or_removes_anothers_site(database: Database, tenant: TenantRow) -> None:
    async with database.operator() as op:
        stranger = await tenants.ensure(op, f"stranger {ids.new_id()}")
    async with database.tenant(tenant.id) as scope:
        await sites.put(scope, [closed("mine", labels=("x",))])
    async with database.tenant(stranger.id) as scope:
        assert await sites.page(scope, limit=10) == []
        assert await sites.sealed(scope, ["mine"]) == []
        for table in ("registered_sites", "site_labels"):
            assert (await scope.sql.execute(text(f"DELETE FROM {table} RETURNING tenant_id"))).all() == []
    async with database.tenant(tenant.id) as scope:
        assert await sites.find(scope, "mine") is not None


async def test_a_removed_site_takes_its_labels_along(database: Database, tenant: TenantRow) -> None:
    async with database.tenant(tenant.id) as scope:
        await sites.put(scope, [closed("a", labels=("x",))])
        assert await sites.remove(scope, "a")
        assert not await sites.remove(scope, "a")
        assert await sites.page(scope, limit=10, label="x") == []


async def test_a_pause_is_a_revision_of_its_own(database: Database, tenant: TenantRow) -> None:
    async with database.tenant(tenant.id) as scope:
        await sites.put(scope, [closed("a")])
        await sites.set_state(scope, "a", SiteState.PAUSED)
        await sites.set_state(scope, "a", SiteState.PAUSED)
        found = await sites.find(scope, "a")
    assert found is not None
    assert (found.state, found.revision) == (SiteState.PAUSED, 2)


@pytest.mark.parametrize("by", ["name", "kind", "label"])
async def test_pages_are_read_from_an_index_under_row_level_security(
    database: Database, tenant: TenantRow, by: str
) -> None:
    where = {
        "name": "registered_sites WHERE tenant_id = '{0}' AND name > 'k' ORDER BY name LIMIT 50",
        "kind": "registered_sites WHERE tenant_id = '{0}' AND kind = 'ghost' AND name > 'k' ORDER BY name LIMIT 50",
        "label": "site_labels WHERE tenant_id = '{0}' AND label = 'x' AND name > 'k' ORDER BY name LIMIT 50",
    }[by].format(tenant.id)
    async with database.tenant(tenant.id) as scope:
        for way in ("seqscan", "bitmapscan"):
            await scope.sql.execute(text(f"SET LOCAL enable_{way} = off"))
        plan = "\n".join((await scope.sql.execute(text(f"EXPLAIN SELECT name FROM {where}"))).scalars())
    conditions = next(line for line in plan.splitlines() if "Index Cond" in line)
    assert re.search(r"name\S* > 'k'", conditions)
    assert "Sort" not in plan


# visits


async def test_a_site_is_visited_by_no_more_than_its_concurrency_at_once(database: Database, tenant: TenantRow) -> None:
    turns = await asyncio.gather(*(take(database, tenant, f"h{n}", most=3) for n in range(20)))
    assert sum(turn.granted for turn in turns) == 3
    granted = next(n for n, turn in enumerate(turns) if turn.granted)
    await leave(database, tenant, f"h{granted}")
    assert (await take(database, tenant, "next", most=3)).granted
    assert not (await take(database, tenant, "one more", most=3)).granted


async def test_visits_are_as_far_apart_as_the_rate_says(database: Database, tenant: TenantRow) -> None:
    turns = [await take(database, tenant, f"h{n}", most=100, rate=2) for n in range(8)]
    waits = [turn.wait.total_seconds() for turn in turns if turn.granted]
    assert len(waits) in {4, 5}, "turns up to two seconds ahead are given out"
    assert all(0.3 < after - before < 0.51 for before, after in pairwise(waits))


async def test_a_dead_workers_visit_ends_by_itself(database: Database, tenant: TenantRow) -> None:
    assert (await take(database, tenant, "dead", most=1, lasting=timedelta(seconds=0.4))).granted
    assert not (await take(database, tenant, "early", most=1)).granted
    await asyncio.sleep(0.5)
    assert (await take(database, tenant, "late", most=1)).granted
    await leave(database, tenant, "dead")
    assert not (await take(database, tenant, "third", most=1)).granted, "a late leave ends no other's visit"


async def test_a_visit_lasts_as_long_as_it_is_renewed(database: Database, tenant: TenantRow) -> None:
    short = timedelta(seconds=0.4)
    assert (await take(database, tenant, "long", most=1, lasting=short)).granted
    for _ in range(3):
        await asyncio.sleep(0.3)
        async with database.tenant(tenant.id) as scope:
            await lanes.renew(scope, tenant.id, "blog", "long", lasting=short)
    assert not (await take(database, tenant, "early", most=1)).granted
    await leave(database, tenant, "long")
    assert (await take(database, tenant, "late", most=1)).granted


async def test_a_thousand_who_wait_come_back_one_after_the_other(database: Database, tenant: TenantRow) -> None:
    for n in range(4):
        await take(database, tenant, f"h{n}", most=4)
    await leave(database, tenant, "h0", held=timedelta(seconds=2))
    await take(database, tenant, "h4", most=4)
    waits = sorted([(await take(database, tenant, f"w{n}", most=4)).wait.total_seconds() for n in range(1000)])
    busiest = max(sum(1 for wait in waits if start <= wait < start + 1) for start in range(int(waits[-1]) + 1))
    assert busiest <= 14, "a visit takes half a second here, four at once: about eleven a second may come back"
    assert waits[-1] <= 300


async def test_a_site_that_hangs_is_asked_less_and_less(database: Database, tenant: TenantRow) -> None:
    assert (await take(database, tenant, "hangs", most=1)).granted
    first = await take(database, tenant, "a", most=1)
    await asyncio.sleep(1)
    later = await take(database, tenant, "b", most=1)
    assert later.wait > first.wait + timedelta(seconds=0.3)


async def test_an_operators_site_is_one_lane_for_all_tenants(database: Database, tenant: TenantRow) -> None:
    site = f"op-{ids.new_id()[-10:].lower()}"
    async with database.operator() as op:
        other = await tenants.ensure(op, f"other {ids.new_id()}")
    granted = []
    for one in (tenant, other):
        async with database.tenant(one.id) as scope:
            granted.append((await lanes.take(scope, "", site, one.id, rate=None, most=1, lasting=LONG)).granted)
    assert granted == [True, False]
