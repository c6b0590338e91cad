"""Callbacks of sites: genuine, doubled, forged, too old, too large, unknown."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from citeloop.channels.signing import signed_headers
from citeloop.models.request import KeywordLine
from citeloop.store.database import Database
from citeloop.store.repositories import callbacks, publications
from citeloop.store.repositories.publications import Publication
from citeloop.store.repositories.tenants import TenantRow
from starter import files, simulated
from starter.commands import Commands
from starter.stack import Stack
from tests.starter.test_steering import BRAND_FILE, client, commands, database, human, tenant

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
    http: httpx.AsyncClient, token: str, *, secret: str = SECRET, body: bytes = BODY, at: datetime | None = None
) -> int:
    headers = signed_headers(secret, "msg_1", at or datetime.now(UTC), body)
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
