"""A running stack, with all that a test needs to steer it and to judge what it did."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from temporalio.client import Client, WorkflowHandle

from citeloop.channels import catalog
from citeloop.models import ids
from citeloop.models.brand import Brand
from citeloop.models.plan import MonitorPolicy, ReviewMode, ReviewPolicy, State
from citeloop.models.request import CampaignRequest, KeywordLine
from citeloop.store.database import Database
from citeloop.store.repositories import articles
from citeloop.store.repositories.articles import ArticleView, EventView
from citeloop.store.repositories.tenants import TenantRow
from citeloop.store.statements import text
from starter import files, simulated
from starter.commands import Commands
from starter.connecting import tenant_of
from starter.stack import Stack
from tests.fixtures_sandbox import Sandbox
from workflows.client import connect

Found = TypeVar("Found")
WRITERS = ("deepseek", "doubao", "qwen")

_PURCHASES = text("SELECT count(*) FROM purchases WHERE tenant_id = :tenant")


@dataclass(frozen=True)
class Installation:
    stack: Stack
    database: Database
    tenant: TenantRow
    client: Client
    commands: Commands
    sandbox: Sandbox

    @property
    def home(self) -> Path:
        return self.stack.home

    async def submit(self, keyword: str, *, mode: ReviewMode = ReviewMode.HUMAN, **more: Any) -> str:
        """One article whose `day` is a second; its id."""
        done = await self.commands.submit_article(brand(), request(keyword, mode=mode, **more))
        assert (done.new, done.started) == (1, True)
        return done.article_ids[0]

    def workflow(self, article_id: str) -> WorkflowHandle[Any, Any]:
        return self.client.get_workflow_handle(ids.workflow_id(self.tenant.id, article_id))

    async def article(self, article_id: str) -> ArticleView:
        return await self.commands.article(article_id)

    async def events(self, article_id: str) -> list[EventView]:
        async with self.database.tenant(self.tenant.id) as scope:
            return await articles.events(scope, article_id)

    async def until(self, article_id: str, *states: State, round_: int = 0, within: float = 40) -> ArticleView:
        """The article once it is in one of `states`, in that round or a later one. TimeoutError."""

        async def reached() -> ArticleView | None:
            article = await self.article(article_id)
            return article if article.state in states and article.round >= round_ else None

        return await eventually(reached, within=within)

    async def purchases(self) -> int:
        """Paid answers that are kept."""
        async with self.database.tenant(self.tenant.id) as scope:
            found = await scope.sql.execute(_PURCHASES, {"tenant": scope.tenant_id})
            return int(found.scalar_one())

    async def calls(self, *names: str) -> int:
        """How often these services, by default the writers, were called."""
        ledger = await self.sandbox.ledger()
        return sum(ledger["providers"].get(name, {"calls": 0})["calls"] for name in names or WRITERS)


@asynccontextmanager
async def opened(stack: Stack) -> AsyncIterator[Installation]:
    assert stack.sandbox_url is not None
    database = Database(stack.database_url, pool_size=2)
    sandbox = Sandbox(stack.sandbox_url)
    try:
        tenant = await tenant_of(database, stack.parts.tenant)
        client = await connect(stack.temporal_address)
        known = catalog.load(stack.parts.channels, {**os.environ, **stack.child_env()})
        yield Installation(stack, database, tenant, client, Commands(client, database, known, tenant), sandbox)
    finally:
        await sandbox.close()
        await database.close()


async def eventually(look: Callable[[], Awaitable[Found | None]], *, within: float, every: float = 0.1) -> Found:
    """What `look` returns, once it is something: neither None nor False nor empty. TimeoutError."""
    async with asyncio.timeout(within):
        while not (found := await look()):
            await asyncio.sleep(every)
    return found


def brand() -> Brand:
    return files.read_brand(simulated.BRAND)


def request(*keywords: str, mode: ReviewMode = ReviewMode.HUMAN, **more: Any) -> CampaignRequest:
    fields: dict[str, Any] = {
        "name": keywords[0],
        "keywords": tuple(KeywordLine(keyword=keyword) for keyword in keywords),
        "review": ReviewPolicy(mode=mode),
        "monitor": MonitorPolicy(offsets=(1,), day=timedelta(seconds=1)),
    }
    return CampaignRequest(**{**fields, **more})
