import asyncio
from datetime import UTC, datetime

from citeloop.models.money import Money
from citeloop.store.database import Database
from citeloop.store.repositories import articles, purchases
from citeloop.store.repositories.purchases import Purchase
from citeloop.store.repositories.tenants import TenantRow
from citeloop.store.statements import text
from tests.store.material import one_article


def bought(purchase_id: str, article_id: str | None, *, micros: int = 1500, currency: str = "CNY") -> Purchase:
    return Purchase(
        id=purchase_id,
        channel="deepseek",
        stage="generate",
        article_id=article_id,
        model="deepseek-chat",
        request_id="r1",
        reply={"draft": "d1", "more": [1, None, "二"]},
        cost=Money(micros=micros, currency=currency),
        input_tokens=10,
        output_tokens=20,
        created_at=datetime(2026, 11, 29, 23, 30, tzinfo=UTC),
    )


async def test_a_purchase_is_kept_once_and_billed_once(database: Database, tenant: TenantRow) -> None:
    async with database.tenant(tenant.id) as scope:
        plan = await one_article(scope)
    first = bought("p1", plan.article_id)

    async def put(purchase: Purchase) -> bool:
        async with database.tenant(tenant.id) as scope:
            return await purchases.put(scope, purchase)

    fresh = await asyncio.gather(*(put(first) for _ in range(8)))
    assert await put(bought("p2", plan.article_id))
    async with database.tenant(tenant.id) as scope:
        kept = await purchases.get(scope, "p1")
        view = await articles.find(scope, plan.article_id)
        usage = (
            await scope.sql.execute(
                text("SELECT day::text, currency, calls, cost_micros, input_tokens, output_tokens FROM usage_daily")
            )
        ).all()
    assert sum(fresh) == 1
    assert kept == first
    assert view is not None
    assert view.cost == Money(micros=3000)
    assert [tuple(row) for row in usage] == [("2026-11-29", "CNY", 2, 3000, 20, 40)]


async def test_usage_knows_every_currency_and_an_article_its_first(database: Database, tenant: TenantRow) -> None:
    async with database.tenant(tenant.id) as scope:
        plan = await one_article(scope)
        await purchases.put(scope, bought("p1", plan.article_id, micros=70, currency="USD"))
        await purchases.put(scope, bought("p2", plan.article_id, micros=500))
        await purchases.put(scope, bought("p3", None, micros=5))
        view = await articles.find(scope, plan.article_id)
        rows = await scope.sql.execute(text("SELECT currency, cost_micros FROM usage_daily"))
        usage = {row.currency: row.cost_micros for row in rows}
    assert view is not None
    assert view.cost == Money(micros=70, currency="USD")
    assert usage == {"USD": 70, "CNY": 505}


async def test_only_ordinary_faults_count(database: Database, tenant: TenantRow) -> None:
    async with database.tenant(tenant.id) as scope:
        plan = await one_article(scope)
        counts = [
            await purchases.fault(
                scope,
                "p1",
                article_id=plan.article_id,
                channel="deepseek",
                fault=fault,
                message="m" * 5000,
                counts=fault != "rate_limited",
            )
            for fault in ("overloaded", "rate_limited", "timed_out")
        ]
        assert await purchases.faults(scope, "p1") == 2
        assert await purchases.faults(scope, "p2") == 0
        view = await articles.find(scope, plan.article_id)
    assert counts == [1, 1, 2]
    assert view is not None
    assert view.faults == 2


async def test_a_purchase_that_was_never_made_is_none(database: Database, tenant: TenantRow) -> None:
    async with database.tenant(tenant.id) as scope:
        assert await purchases.get(scope, "nothing") is None
