"""Articles at a paused channel, and those that may still come to one: what is told of them."""

from fractions import Fraction

import pytest

from citeloop.models.channel import Catalog
from citeloop.models.plan import Plan, Route, Stage
from citeloop.store.database import Database, Scope
from citeloop.store.repositories import articles, channels
from citeloop.store.repositories.articles import NewArticle
from citeloop.store.repositories.tenants import TenantRow
from tests.store.channel_material import name, spec
from tests.store.material import one_article, plan, step


@pytest.fixture
async def pair(database: Database) -> tuple[str, str]:
    """Two channels; the first is paused."""
    pair = name(), name()
    async with database.operator() as op:
        await channels.sync(op, Catalog(channels=tuple(spec(one, None) for one in pair)))
        await channels.pause(op, pair[0], f"{pair[0]}: no money")
    return pair


async def by(scope: Scope, generate: str, rewrite: str) -> Plan:
    """An article of one writer and another for the second pass."""
    frozen = await one_article(scope, keyword="base")
    routes = {
        stage: (Route(name=channel, queue=f"channel.{channel}"),)
        for stage, channel in ((Stage.GENERATE, generate), (Stage.REWRITE, rewrite))
    }
    made = plan(scope.tenant_id, frozen.brand_id).model_copy(update={"routes": routes})
    await articles.submit(scope, [NewArticle(plan=made, position=0)])
    return made


async def test_an_article_at_a_paused_channel_says_why_it_stands(
    database: Database, tenant: TenantRow, pair: tuple[str, str]
) -> None:
    paused, open_ = pair
    async with database.tenant(tenant.id) as scope:
        made = await by(scope, paused, open_)
        await articles.enter(scope, step(made), channel=paused, attempt=1)
        standing = await articles.find(scope, made.article_id)
        (listed,) = [row for row in await articles.list_(scope) if row.id == made.article_id]
        await articles.hold(scope, made.article_id, "later")
        held = await articles.find(scope, made.article_id)
    assert standing is not None
    assert held is not None
    assert standing.reason == listed.reason == f"{paused} is paused: no money"
    assert held.reason == ""


async def test_an_article_at_an_open_channel_says_nothing_and_one_at_a_stopped_channel_does(
    database: Database, tenant: TenantRow, pair: tuple[str, str]
) -> None:
    _, open_ = pair
    async with database.tenant(tenant.id) as scope:
        made = await by(scope, open_, open_)
        await articles.enter(scope, step(made), channel=open_, attempt=1)
        before = await articles.find(scope, made.article_id)
    async with database.operator() as op:
        await channels.set_rate(op, open_, Fraction(0))
    async with database.tenant(tenant.id) as scope:
        after = await articles.find(scope, made.article_id)
    assert before is not None
    assert after is not None
    assert (before.reason, after.reason) == ("", f"{open_} is paused: its rate is set to 0")


async def test_a_paused_channel_that_an_article_may_still_come_to_is_told(
    database: Database, tenant: TenantRow, pair: tuple[str, str]
) -> None:
    paused, open_ = pair
    async with database.tenant(tenant.id) as scope:
        coming = await by(scope, open_, paused)
        before = await articles.paused_ahead(scope, [coming.article_id])
        await articles.enter(
            scope,
            step(coming).model_copy(update={"stage": Stage.REVIEW, "done": (Stage.GENERATE, Stage.REWRITE)}),
            channel="rules",
            attempt=1,
        )
        after = await articles.paused_ahead(scope, [coming.article_id])
    assert before == [f"{paused} is paused: no money"]
    assert after == []
