"""300 articles (in `.ci/run` 120) to 30 sites that lose replies, break, hide behind firewalls and call back twice or
late, while the worker is killed twice: nothing is posted twice, nothing is lost, and what cannot be decided waits with
its reason.
"""

import asyncio
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from citeloop.models.plan import ReviewMode, Stage, State
from citeloop.models.work import PublicationState
from citeloop.store.repositories import articles, publication_views
from citeloop.store.repositories.articles import ArticleView
from citeloop.store.repositories.publication_views import PublicationView
from citeloop.store.statements import text
from tests.installation import Installation, eventually
from tests.journeys.conftest import Installing, Tell
from tests.journeys.test_killed_processes import strike

pytestmark = [pytest.mark.journey, pytest.mark.timeout(420)]

BLOGS = tuple(f"blog-{number:02}" for number in range(15))
HOOKS = tuple(f"hook-{number:02}" for number in range(15))
EACH = int(os.environ.get("CHAOS_EACH", "10"))
"""Articles to each of thirty sites; `.ci/run` sends fewer."""

OPEN = 60
ARTICLES = EACH * (len(BLOGS) + len(HOOKS))
PRODUCING = (Stage.GENERATE, Stage.REVIEW, Stage.PUBLISH)

WRITER = """
allow_private_addresses = true

[channels.deepseek]
roles = ["write"]
dialect = "openai_chat"
base_url = "{env:CITELOOP_SANDBOX_URL}/deepseek/v1"
model = "deepseek-flash"
key_env = "SANDBOX_KEY"
concurrency = 16
stream = false
"""
BLOG = """
[sites.NAME]
kind = "wordpress"
base_url = "{env:CITELOOP_SANDBOX_URL}/NAME"
user_env = "SANDBOX_BLOG_USER"
secret_env = "SANDBOX_BLOG_PASSWORD"
concurrency = 4
max_server_time = "2s"
timeouts = { connect = "2s", first_byte = "4s", between_chunks = "4s", total = "8s", heartbeat = "5s" }
"""
HOOK = """
[sites.NAME]
kind = "webhook"
base_url = "{env:CITELOOP_SANDBOX_URL}/NAME"
secret_env = "SANDBOX_HOOK_SECRET"
concurrency = 4
max_server_time = "2s"
callback_deadline = "3s"
timeouts = { connect = "2s", first_byte = "4s", between_chunks = "4s", total = "8s", heartbeat = "5s" }
"""
_OPEN = text("SELECT count(*) FROM articles WHERE tenant_id = :tenant AND ended_at IS NULL AND state <> 'parked'")
FAULTS = "lost_reply = 0.1\nhttp_500 = 0.1\nhtml_403 = 0.05\n"
LATE = "delay = [0.0, 0.3]\ndoubled = 0.2\nlate = 0.1\nlate_seconds = 5.0\nnever = 0.02\n"


@pytest.fixture
def channels(tmp_path: Path) -> Path:
    file = tmp_path / "channels.toml"
    sites = [BLOG.replace("NAME", name) for name in BLOGS] + [HOOK.replace("NAME", name) for name in HOOKS]
    file.write_text("\n".join([WRITER, *sites]))
    return file


@pytest.fixture
def sandbox(tmp_path: Path) -> Path:
    """A writer without limits; the sites share the faults of the field."""
    file = tmp_path / "sandbox.toml"
    blogs = [f'[sites.{name}]\nkind = "wordpress"\n{FAULTS}' for name in BLOGS]
    hooks = [f'[sites.{name}]\nkind = "webhook"\n{FAULTS}{LATE}' for name in HOOKS]
    file.write_text("\n".join(["seed = 5\n[providers.deepseek]\nfirst_byte = [0.0, 0.05]\n", *blogs, *hooks]))
    return file


async def test_articles_reach_thirty_sites_once_through_every_fault(
    installing: Installing, tell: Tell, channels: Path, sandbox: Path
) -> None:
    async with installing(channels=channels, sandbox=sandbox) as journey:
        began = time.monotonic()
        submitting = asyncio.create_task(_submit(journey))
        await _posted(journey, ARTICLES // 5)
        first = await strike(journey, "worker")
        await _posted(journey, ARTICLES // 2)
        second = await strike(journey, "worker")
        await submitting
        rows = await _settled(journey)
        parked = [row for row in rows if row.state is State.PARKED]
        for _ in range(5):  # a person retries what was parked, as the dead-letter list asks
            unmended = [row for row in rows if row.state is State.PARKED]
            if not unmended:
                break
            await asyncio.gather(*(journey.commands.retry(row.id) for row in unmended))
            await asyncio.sleep(1)  # their rows follow the signal
            rows = await _settled(journey)
        seconds = round(time.monotonic() - began)
        pages, ledger = await _pages(journey), await journey.sandbox.ledger()
    _judge(rows, pages, ledger, parked)
    sites = ledger["sites"].values()
    tell(
        seconds=seconds,
        articles=len(rows),
        published=len(pages),
        duplicate_posts=ledger["totals"]["duplicate_posts"],
        lost=ARTICLES - len(pages),
        parked_with_a_reason=len(parked),
        reasons=dict(Counter(row.reason.partition(": ")[2][:40] for row in parked)),
        faults=dict(sum((Counter(site["faults"]) for site in sites), Counter())),
        doubled_callbacks=sum(site["doubled"] for site in sites),
        late_callbacks=sum(site["late"] for site in sites),
        back_after_s=[round(blow.back_after, 1) for blow in (first, second)],
    )


def _judge(
    rows: list[ArticleView], pages: list[PublicationView], ledger: dict[str, Any], parked: list[ArticleView]
) -> None:
    assert Counter(row.state for row in rows) == {State.DONE: ARTICLES}, [
        (row.keyword, row.state, row.reason) for row in rows if row.state is not State.DONE
    ]
    assert [page for page in pages if page.state is not PublicationState.PUBLISHED] == []
    assert len({page.url for page in pages}) == len(pages) == ARTICLES
    assert ledger["totals"]["duplicate_posts"] == 0
    assert ledger["totals"]["posts"] == ARTICLES
    assert all(row.reason for row in parked)
    met = sum((Counter(site["faults"]) for site in ledger["sites"].values()), Counter[str]())
    assert min(met["lost_reply"], met["http_500"], met["html_403"]) >= EACH / 2, met


async def _submit(journey: Installation) -> None:
    """Ten for each site, at most `OPEN` on their way at once."""
    for number in range(EACH):
        for site in (*BLOGS, *HOOKS):
            while await _open(journey) >= OPEN:
                await asyncio.sleep(0.5)
            keyword = f"vector database {site} {number}"
            await journey.submit(keyword, mode=ReviewMode.AUTO, stages=PRODUCING, sites=(site,))


async def _open(journey: Installation) -> int:
    async with journey.database.tenant(journey.tenant.id) as scope:
        return int((await scope.sql.execute(_OPEN, {"tenant": scope.tenant_id})).scalar_one())


async def _rows(journey: Installation) -> list[ArticleView]:
    async with journey.database.tenant(journey.tenant.id) as scope:
        return await articles.list_(scope, limit=2 * ARTICLES)


async def _posted(journey: Installation, count: int) -> None:
    async def enough() -> bool:
        return int((await journey.sandbox.ledger())["totals"]["posts"]) >= count

    await eventually(enough, within=180, every=0.1)


async def _settled(journey: Installation) -> list[ArticleView]:
    """All of them, once each has ended or waits for a person."""

    async def all_over() -> bool:
        return await _open(journey) == 0

    await eventually(all_over, within=300, every=0.5)
    return await _rows(journey)


async def _pages(journey: Installation) -> list[PublicationView]:
    async with journey.database.tenant(journey.tenant.id) as scope:
        return await publication_views.list_(scope, limit=2 * ARTICLES)
