"""Callbacks of sites: genuine, doubled, early, late, out of order, forged, too old, too large, unknown."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from citeloop.channels.signing import signed_headers
from citeloop.models.plan import State
from citeloop.models.request import KeywordLine
from citeloop.models.work import PublicationState
from citeloop.store.database import Database
from citeloop.store.repositories import articles, callbacks, publications
from citeloop.store.repositories.publications import Publication
from citeloop.store.repositories.tenants import TenantRow
from starter import files, simulated
from starter.commands import Commands
from starter.stack import Stack
from tests.starter.test_steering import BRAND_FILE, client, commands, database, human, tenant, until

__all__ = ["client", "commands", "database", "tenant"]
SECRET = simulated.ENVIRONMENT["SANDBOX_HOOK_SECRET"]
BODY = json.dumps(
    {
        "type": "article.published",
        "timestamp": "2026-01-01T00:00:00Z",
        "data": {"remote_id": "7", "url": "http://site/7", "marker": "m"},
    }
).encode()


@pytest.fixture
async def http(stack: Stack) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=stack.api_url or "", trust_env=False) as made:
        yield made


@pytest.fixture
async def publication(commands: Commands, database: Database, tenant: TenantRow) -> Publication:
    keyword = KeywordLine(keyword=f"called back {datetime.now(UTC).timestamp()}")
    request = human("x").model_copy(update={"keywords": (keyword,)})
    done = await commands.submit_article(files.read_brand(BRAND_FILE), request)
    async with database.tenant(tenant.id) as scope:
        return await publications.reserve(
            scope, article_id=done.article_ids[0], site="hook", kind="webhook", marker="m", digest="d"
        )


async def post(
    http: httpx.AsyncClient,
    token: str,
    *,
    secret: str = SECRET,
    body: bytes = BODY,
    at: datetime | None = None,
    event_id: str = "msg_1",
) -> int:
    headers = signed_headers(secret, event_id, at or datetime.now(UTC), body)
    return (await http.post(f"/v1/callbacks/{token}", content=body, headers=headers)).status_code


async def test_a_doubled_callback_is_kept_once(
    http: httpx.AsyncClient, publication: Publication, database: Database, tenant: TenantRow
) -> None:
    assert [await post(http, publication.token) for _ in range(2)] == [200, 200]
    async with database.tenant(tenant.id) as scope:
        kept = await callbacks.pending(scope, publication.id)
    assert [(one.event_id, one.remote_id, one.url) for one in kept] == [("msg_1", "7", "http://site/7")]


@pytest.mark.parametrize("late", [timedelta(minutes=-6), timedelta(minutes=6)])
async def test_an_old_or_future_callback_is_refused(
    http: httpx.AsyncClient, publication: Publication, late: timedelta
) -> None:
    assert await post(http, publication.token, at=datetime.now(UTC) + late) == 401


async def test_a_forged_callback_changes_nothing(
    http: httpx.AsyncClient, publication: Publication, database: Database, tenant: TenantRow
) -> None:
    assert await post(http, publication.token, secret="whsec_" + "A" * 32) == 401
    unsigned = await http.post(f"/v1/callbacks/{publication.token}", content=BODY)
    assert unsigned.status_code == 401
    async with database.tenant(tenant.id) as scope:
        assert await callbacks.pending(scope, publication.id) == []


async def test_an_unknown_token_is_not_found(http: httpx.AsyncClient) -> None:
    assert await post(http, "guess") == 404


async def test_a_body_over_64_kilobytes_is_refused(http: httpx.AsyncClient, publication: Publication) -> None:
    assert await post(http, publication.token, body=b" " * 65_537) == 413


async def test_a_signed_body_that_is_no_event_is_refused(http: httpx.AsyncClient, publication: Publication) -> None:
    assert await post(http, publication.token, body=b"[1]") == 422


async def test_the_api_is_healthy_and_ready(http: httpx.AsyncClient) -> None:
    assert (await http.get("/healthz")).json() == {"status": "ok"}
    assert (await http.get("/readyz")).json() == {"status": "ready"}


async def test_a_callback_to_an_article_that_has_ended_is_still_in_the_record(
    http: httpx.AsyncClient, publication: Publication, database: Database, tenant: TenantRow, commands: Commands
) -> None:
    """Parked, then given up: the site confirms weeks later."""
    await commands.cancel(publication.article_id, "given up")
    await until(commands, publication.article_id, State.CANCELLED)
    async with database.tenant(tenant.id) as scope:
        await publications.advance(
            scope, publication.id, expected={PublicationState.RESERVED}, to=PublicationState.PARKED, reason="no answer"
        )
    assert [await post(http, publication.token) for _ in range(2)] == [200, 200]
    async with database.tenant(tenant.id) as scope:
        row = await publications.get(scope, publication.article_id, "hook")
        told = [event for event in await articles.events(scope, publication.article_id) if event.kind == "callback"]
        assert await callbacks.pending(scope, publication.id) == []
    assert row is not None
    assert (row.state, row.url, row.remote_id) == (PublicationState.PUBLISHED, "http://site/7", "7")
    assert [event.detail for event in told] == ["hook has called back: published http://site/7"]


@pytest.mark.parametrize("state", [PublicationState.SENDING, PublicationState.UNKNOWN, PublicationState.RESERVED])
async def test_a_callback_before_the_send_has_returned_confirms(
    http: httpx.AsyncClient, publication: Publication, database: Database, tenant: TenantRow, state: PublicationState
) -> None:
    async with database.tenant(tenant.id) as scope:
        await publications.advance(scope, publication.id, expected={PublicationState.RESERVED}, to=state)
    assert await post(http, publication.token) == 200
    async with database.tenant(tenant.id) as scope:
        row = await publications.get(scope, publication.article_id, "hook")
    assert row is not None
    assert row.state is PublicationState.PUBLISHED


async def test_events_out_of_order_move_a_page_once_and_never_back(
    http: httpx.AsyncClient, publication: Publication, database: Database, tenant: TenantRow
) -> None:
    """A newer word about something else comes first; an older repeat of the confirmation comes last."""
    other = BODY.replace(b"article.published", b"article.seen")
    assert await post(http, publication.token, body=other, event_id="msg_2") == 200
    assert await post(http, publication.token) == 200
    moved = BODY.replace(b"http://site/7", b"http://elsewhere/")
    assert await post(http, publication.token, body=moved, event_id="msg_0") == 200
    async with database.tenant(tenant.id) as scope:
        row = await publications.get(scope, publication.article_id, "hook")
    assert row is not None
    assert (row.state, row.url) == (PublicationState.PUBLISHED, "http://site/7")


async def test_a_callback_never_brings_a_withdrawn_page_back(
    http: httpx.AsyncClient, publication: Publication, database: Database, tenant: TenantRow
) -> None:
    async with database.tenant(tenant.id) as scope:
        await publications.advance(
            scope, publication.id, expected={PublicationState.RESERVED}, to=PublicationState.WITHDRAWN
        )
    assert await post(http, publication.token) == 200
    async with database.tenant(tenant.id) as scope:
        row = await publications.get(scope, publication.article_id, "hook")
    assert row is not None
    assert row.state is PublicationState.WITHDRAWN


async def test_a_word_that_postgres_cannot_keep_is_refused(http: httpx.AsyncClient, publication: Publication) -> None:
    assert await post(http, publication.token, body=BODY.replace(b"site/7", b"site\\u0000")) == 422
