import asyncio
from datetime import UTC, datetime, timedelta

from citeloop.models.work import PublicationState
from citeloop.store.database import Database
from citeloop.store.repositories import articles, callbacks, publications
from citeloop.store.repositories.callbacks import Inbound
from citeloop.store.repositories.publications import Publication
from citeloop.store.repositories.tenants import TenantRow
from tests.store.material import one_article

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
RESERVED, SENDING, SENT = PublicationState.RESERVED, PublicationState.SENDING, PublicationState.SENT


async def reserved(database: Database, tenant: TenantRow, site: str = "blog") -> Publication:
    async with database.tenant(tenant.id) as scope:
        plan = await one_article(scope)
        return await publications.reserve(
            scope, article_id=plan.article_id, site=site, kind="webhook", marker="m", digest="d"
        )


def event(event_id: str = "evt_1") -> Inbound:
    return Inbound(event_id=event_id, type="article.published", remote_id="7", url="http://site/7", received_at=NOW)


async def test_a_reservation_made_twice_is_the_same_row_with_the_same_token(
    database: Database, tenant: TenantRow
) -> None:
    first, second = await asyncio.gather(reserved(database, tenant), reserved(database, tenant))
    other = await reserved(database, tenant, "magazine")
    assert first == second
    assert first.state is RESERVED
    assert len(first.token) >= 32
    assert other.token != first.token


async def test_of_two_that_advance_at_once_one_wins(database: Database, tenant: TenantRow) -> None:
    row = await reserved(database, tenant)

    async def send() -> bool:
        async with database.tenant(tenant.id) as scope:
            moved = await publications.advance(scope, row.id, expected={RESERVED}, to=SENDING, sent_at=NOW)
            return moved is not None

    assert sorted(await asyncio.gather(send(), send())) == [False, True]


async def test_advancing_changes_only_what_is_named(database: Database, tenant: TenantRow) -> None:
    row = await reserved(database, tenant)
    deadline = NOW + timedelta(minutes=10)
    async with database.tenant(tenant.id) as scope:
        await publications.advance(
            scope, row.id, expected={RESERVED}, to=SENT, remote_id="7", url="http://site/7", deadline=deadline
        )
        await publications.advance(
            scope, row.id, expected={SENT}, to=PublicationState.PUBLISHED, deadline=None, look_ups=2
        )
        moved = await publications.get(scope, row.article_id, "blog")
        listed = await publications.of_article(scope, row.article_id)
        view = await articles.find(scope, row.article_id)
    assert moved is not None
    assert (moved.state, moved.remote_id, moved.url) == (PublicationState.PUBLISHED, "7", "http://site/7")
    assert (moved.deadline, moved.look_ups, moved.sent_at) == (None, 2, None)
    assert listed == [moved]
    assert view is not None
    assert view.urls == (("blog", "http://site/7", PublicationState.PUBLISHED),)


async def test_a_doubled_callback_is_fresh_once_and_delivered_once(database: Database, tenant: TenantRow) -> None:
    row = await reserved(database, tenant)

    async def receive(said: Inbound) -> callbacks.Delivery:
        async with database.operator() as op:
            delivery = await callbacks.receive(op, row.token, said)
        assert delivery is not None
        return delivery

    first, second = await asyncio.gather(receive(event()), receive(event()))
    async with database.tenant(tenant.id) as scope:
        waiting = await callbacks.pending(scope, row.id)
        await callbacks.delivered(scope, row.id)
        assert await callbacks.pending(scope, row.id) == []
    third = await receive(event())
    assert sorted([first.fresh, second.fresh]) == [False, True]
    assert not first.delivered
    assert waiting == [event()]
    assert (third.fresh, third.delivered) == (False, True)
    assert (third.tenant_id, third.article_id, third.site) == (tenant.id, row.article_id, "blog")


async def test_a_callback_that_arrives_while_the_inbox_is_read_stays_pending(
    database: Database, tenant: TenantRow
) -> None:
    row = await reserved(database, tenant)

    async def receive() -> None:
        async with database.operator() as op:
            await callbacks.receive(op, row.token, event("evt_late"))

    async with database.tenant(tenant.id) as scope:
        assert await callbacks.pending(scope, row.id) == []
        late = asyncio.create_task(receive())
        await asyncio.sleep(0.1)
        await callbacks.delivered(scope, row.id)
    await late
    async with database.tenant(tenant.id) as scope:
        assert [each.event_id for each in await callbacks.pending(scope, row.id)] == ["evt_late"]


async def test_an_unknown_token_leads_nowhere(database: Database, tenant: TenantRow) -> None:
    row = await reserved(database, tenant)
    async with database.operator() as op:
        assert await callbacks.receive(op, "guessed", event()) is None
        assert await callbacks.reservation(op, "guessed") is None
        assert await callbacks.reservation(op, row.token) == (tenant.id, row.article_id, "blog")
