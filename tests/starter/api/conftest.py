"""The whole API over the test run's Postgres; Temporal is away unless a test asks for it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from fractions import Fraction
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi import FastAPI
from temporalio.client import Client

from citeloop.channels.outside import Outside
from citeloop.models import ids
from citeloop.models.channel import Catalog, ChannelSpec, Role, SiteKind, SiteSpec
from citeloop.store.database import Database
from citeloop.store.repositories import channels, tenants
from citeloop.store.repositories.api_keys import KeyRole
from citeloop.store.repositories.tenants import TenantRow
from starter import keys
from starter.api import examples
from starter.api.app import assemble
from starter.api.starting import Starter
from starter.api.wiring import Wiring
from starter.embedded import ports
from workflows.client import connect

CATALOG = Catalog(
    channels=(
        ChannelSpec(
            name="deepseek",
            roles=frozenset({Role.WRITE}),
            dialect="openai_chat",
            base_url="http://127.0.0.1:1/v1",
            model="m",
            rate=Fraction(2),
        ),
        ChannelSpec(
            name="perplexity",
            roles=frozenset({Role.ANSWER}),
            dialect="openai_chat",
            base_url="http://127.0.0.1:1",
            model="m",
        ),
    ),
    sites=(SiteSpec(name="blog", kind=SiteKind.WORDPRESS, base_url="http://127.0.0.1:1/blog"),),
    allow_private_addresses=True,
)


@dataclass(frozen=True)
class Door:
    """One tenant's operator at the API, and what stands behind it."""

    http: httpx.AsyncClient
    tenant: TenantRow
    database: Database
    app: FastAPI

    async def get(self, path: str, **query: Any) -> Any:
        answer = await self.http.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def brand(self, handle: str = "milvus") -> str:
        answer = await self.http.put(f"/v1/brands/{handle}", json=examples.BRAND)
        assert answer.status_code in {200, 201}, answer.text
        return handle

    async def campaign(self, *keywords: str, **more: Any) -> str:
        lines = [{"keyword": keyword} for keyword in keywords or ("vector database", "向量数据库")]
        body = {"name": "autumn", "brand": await self.brand(), "keywords": lines, **more}
        answer = await self.http.post("/v1/campaigns", json=body)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    async def article(self, keyword: str = "vector database", **more: Any) -> str:
        body = {"brand": await self.brand(), "keyword": keyword, **more}
        answer = await self.http.post("/v1/articles", json=body)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    async def every(self, path: str, **query: Any) -> list[dict[str, Any]]:
        """All items, page by page."""
        found: list[dict[str, Any]] = []
        after: dict[str, str] = {}
        while True:
            page = await self.get(path, **query, **after)
            found.extend(page["items"])
            if page["next"] is None:
                return found
            after = {"after": str(page["next"])}


@pytest.fixture(scope="session")
async def nowhere() -> Client:
    """A Temporal that does not answer."""
    (port,) = ports.free(1)
    return await connect(f"127.0.0.1:{port}", lazy=True)


@pytest.fixture(scope="session")
async def app(database: Database, nowhere: Client) -> AsyncIterator[FastAPI]:
    made = assemble()
    outside = Outside(CATALOG, {})
    async with Starter() as starter:
        made.state.wiring = Wiring(database, nowhere, outside, CATALOG, starter, patience=timedelta(milliseconds=500))
        async with database.operator() as operator:
            await channels.sync(operator, CATALOG)
        yield made
    await outside.close()


@pytest.fixture
async def door(app: FastAPI, database: Database, tenant: TenantRow) -> AsyncIterator[Door]:
    async with opened(app, database, tenant) as made:
        yield made


@pytest.fixture
async def stranger(app: FastAPI, database: Database) -> AsyncIterator[Door]:
    """Another tenant's operator."""
    async with database.operator() as operator:
        other = await tenants.ensure(operator, f"stranger {ids.new_id()}")
    async with opened(app, database, other) as made:
        yield made


@pytest.fixture
async def viewer(app: FastAPI, door: Door) -> AsyncIterator[Door]:
    """The same tenant, with a key that may only look."""
    async with opened(app, door.database, door.tenant, KeyRole.VIEWER) as made:
        yield made


@asynccontextmanager
async def opened(
    app: FastAPI, database: Database, tenant: TenantRow, role: KeyRole = KeyRole.OPERATOR
) -> AsyncIterator[Door]:
    made = await keys.create(database, tenant, "editor", role)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    headers = {"Authorization": f"Bearer {made.key}"}
    async with httpx.AsyncClient(transport=transport, base_url="http://api", headers=headers) as http:
        yield Door(http, tenant, database, app)


@pytest.fixture
async def served(app: FastAPI, door: Door) -> AsyncIterator[Door]:
    """The same door over real HTTP on loopback: a stream is seen while it runs."""
    async with serving(app) as url, httpx.AsyncClient(base_url=url, headers=door.http.headers, trust_env=False) as http:
        yield replace(door, http=http)


@asynccontextmanager
async def serving(app: FastAPI) -> AsyncIterator[str]:
    (port,) = ports.free(1)
    config = uvicorn.Config(app, host=ports.LOOPBACK, port=port, log_level="warning", lifespan="off")
    server = uvicorn.Server(config)
    running = asyncio.create_task(server._serve())
    while not server.started:
        await asyncio.sleep(0.02)
    yield f"http://{ports.LOOPBACK}:{port}"
    server.should_exit = True
    server.force_exit = True
    await running
