"""Pages that stand are corrected and taken away from each door, while their article is monitored and after its end."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from temporalio.client import Client

from citeloop.models.channel import SiteKind
from citeloop.models.plan import MonitorPolicy, Stage, State
from citeloop.models.work import Action, CorrectionKind, PublicationState
from citeloop.store.database import Database
from citeloop.store.repositories import drafts
from citeloop.store.repositories.articles import ArticleView
from citeloop.store.repositories.corrections import CorrectionState
from citeloop.store.repositories.tenants import TenantRow
from starter import files
from starter.commands import Commands
from starter.errors import CommandError, Conflict, Missing
from starter.page_commands import Corrected, PageCommands
from starter.stack import Stack
from tests.starter.cli import citeloop
from tests.starter.test_steering import BRAND_FILE, cli, client, commands, database, human, submit, tenant, until

__all__ = ["client", "commands", "database", "tenant"]
PRODUCING = (Stage.GENERATE, Stage.REVIEW, Stage.PUBLISH)
WEEKS = MonitorPolicy(offsets=(28,))
SECONDS = MonitorPolicy(offsets=(1,), day=timedelta(seconds=1))
SENTENCE = "Milvus is a database for vectors that keeps them on disk."


@pytest.fixture
def pages(client: Client, database: Database, tenant: TenantRow) -> PageCommands:
    return PageCommands(client, database, tenant, by="ann", patience=timedelta(seconds=20))


@pytest.fixture
async def done(commands: Commands) -> ArticleView:
    """Published on both sites, and its workflow has ended."""
    return await published(commands, f"pages {asyncio.get_running_loop().time()}", State.DONE, stages=PRODUCING)


async def published(
    commands: Commands, keyword: str, *states: State, monitor: MonitorPolicy = SECONDS, **more: Any
) -> ArticleView:
    wanted = human(keyword, **more).model_copy(update={"monitor": monitor})
    (article_id,) = (await commands.submit_article(files.read_brand(BRAND_FILE), wanted)).article_ids
    await until(commands, article_id, State.REVIEW)
    await commands.decide(article_id, Action.APPROVE)
    return await until(commands, article_id, *states)


async def text_of(database: Database, tenant: TenantRow, article_id: str) -> str:
    async with database.tenant(tenant.id) as scope:
        stored = await drafts.latest(scope, article_id)
    assert stored is not None
    return f"{stored.body}\n\n{SENTENCE}\n"


async def shown(article: ArticleView) -> list[httpx.Response]:
    async with httpx.AsyncClient(trust_env=False) as http:
        return [await http.get(url) for _, url, _ in article.urls]


def of(site: str, done: Corrected) -> tuple[CorrectionState, str]:
    return next((page.state, page.problem) for page in done.pages if page.site == site)


async def test_a_correction_from_the_cli_reaches_every_page_of_an_article_that_has_ended(
    stack: Stack, commands: Commands, database: Database, tenant: TenantRow, done: ArticleView, tmp_path: Path
) -> None:
    file = tmp_path / "new.md"
    file.write_text(await text_of(database, tenant, done.id), encoding="utf-8")
    ran = await cli(stack, "correct", done.id, "--file", str(file), "--reason", "on disk")
    assert {page["state"] for page in ran.json["pages"]} == {"done"}
    assert [SENTENCE in page.text for page in await shown(done)] == [True, True]
    again = await commands.article(done.id)
    assert (again.state, again.urls) == (State.DONE, done.urls)


async def test_unpublishing_from_the_cli_takes_every_page_away_and_twice_is_once(
    stack: Stack, commands: Commands, done: ArticleView
) -> None:
    first = await cli(stack, "unpublish", done.id, "--reason", "wrong product")
    assert {page["state"] for page in first.json["pages"]} == {"done"}
    assert first.json["message"] == "done"
    assert [page.status_code for page in await shown(done)] == [404, 404]
    assert {state for *_, state in (await commands.article(done.id)).urls} == {PublicationState.WITHDRAWN}
    again = await cli(stack, "unpublish", done.id)
    assert {page["state"] for page in again.json["pages"]} == {"done"}
    assert again.json["message"] == "it had been withdrawn already; nothing was left to do"


async def test_an_article_whose_last_page_is_withdrawn_is_measured_no_longer(
    commands: Commands, pages: PageCommands
) -> None:
    article = await published(commands, "withdrawn while monitored", State.PUBLISHED, monitor=WEEKS)
    (one, other) = [site for site, *_ in article.urls]
    assert of(one, await pages.unpublish(article.id, site=one)) == (CorrectionState.DONE, "")
    assert (await commands.article(article.id)).state is State.PUBLISHED
    await pages.unpublish(article.id, site=other)
    ended = await until(commands, article.id, State.MEASURED)
    assert ended.reason == f"no longer monitored: withdrawn from {one}, {other}"


async def test_a_corrected_text_is_a_draft_that_its_asker_has_approved(
    database: Database, tenant: TenantRow, pages: PageCommands, done: ArticleView
) -> None:
    site = done.urls[0][0]
    text = await text_of(database, tenant, done.id)
    changed = await pages.correct(done.id, text=text, site=site)
    assert of(site, changed) == (CorrectionState.DONE, "")
    (correction,) = await pages.history(done.id)
    assert (correction.kind, correction.by, correction.draft_id) == (CorrectionKind.CORRECT, "ann", changed.draft_id)
    back = await pages.correct(done.id, draft_id=changed.draft_id, site=site)
    assert back.draft_id == changed.draft_id
    assert [SENTENCE in page.text for page in await shown(done)] == [True, False]


async def test_a_text_that_the_rules_block_is_put_nowhere(
    database: Database, tenant: TenantRow, pages: PageCommands, done: ArticleView
) -> None:
    text = await text_of(database, tenant, done.id) + "\n\nTODO: the best vector database in the world\n"
    with pytest.raises(CommandError, match="the review rules block it"):
        await pages.correct(done.id, text=text)
    assert await pages.history(done.id) == ()


Refused = Callable[[PageCommands, str], Awaitable[Corrected]]


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        (lambda p, a: p.unpublish(a, site="nowhere"), Missing, "was never sent to 'nowhere'"),
        (lambda p, a: p.correct(a, text="no title"), CommandError, "begin it with one `# ` heading"),
        (lambda p, a: p.correct(a), CommandError, "one of the two"),
        (lambda p, a: p.correct(a, draft_id="0" * 26), Missing, "is no draft"),
    ],
)
async def test_what_cannot_be_done_is_refused_before_anything_is_written(
    pages: PageCommands, done: ArticleView, ask: Refused, error: type[CommandError], words: str
) -> None:
    with pytest.raises(error, match=words):
        await ask(pages, done.id)
    assert await pages.history(done.id) == ()


async def test_an_article_that_was_not_published_has_no_page(commands: Commands, pages: PageCommands) -> None:
    article_id = await submit(commands, "never published", stages=PRODUCING)
    await until(commands, article_id, State.REVIEW)
    with pytest.raises(Conflict, match="it was not published"):
        await pages.unpublish(article_id)


async def test_a_kind_of_site_that_cannot_is_refused_beforehand(
    client: Client, database: Database, tenant: TenantRow, done: ArticleView
) -> None:
    unable = dict.fromkeys(SiteKind, frozenset[Any]())
    pages = PageCommands(client, database, tenant, by="ann", patience=timedelta(seconds=1), abilities=unable)
    with pytest.raises(CommandError, match=r"is a \w+ site: it can withdraw nothing; do it on the site itself"):
        await pages.unpublish(done.id)
    assert await pages.history(done.id) == ()


async def test_a_cancel_leaves_what_is_live_and_says_how_to_take_it_away(commands: Commands) -> None:
    article = await published(commands, "cancelled when live", State.PUBLISHED, monitor=WEEKS)
    effect = await commands.cancel(article.id, "not needed")
    assert effect.message.endswith(f"stands; `citeloop unpublish {article.id}` takes it away")
    ended = await until(commands, article.id, State.CANCELLED)
    assert [page.status_code for page in await shown(ended)] == [200, 200]


async def test_a_scheduled_article_is_shown_paused_and_cancelled(stack: Stack, commands: Commands) -> None:
    ran = await cli(
        stack, "submit", "scheduled for later", "--brand", str(BRAND_FILE), "--review", "auto",
        "--stages", "generate,review,publish", "--publish-at", "2090-01-02T03:04:05+00:00",
    )  # fmt: skip
    (article_id,) = ran.json["article_ids"]
    article = await until(commands, article_id, State.SCHEDULED)
    assert (article.stage, article.reason) == (Stage.PUBLISH, "scheduled for 2090-01-02 03:04:05 UTC")
    await cli(stack, "pause", article_id)
    await until(commands, article_id, State.PAUSED)
    await cli(stack, "resume", article_id)
    assert (await until(commands, article_id, State.SCHEDULED)).reason == article.reason
    await cli(stack, "cancel", article_id, "--reason", "no longer")
    assert (await until(commands, article_id, State.CANCELLED)).urls == ()


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--publish-at", "soon", "'soon' is no date and time; write it as 2026-12-24T09:00+08:00"),
        ("--publish-every", "often", "'often' is no length of time; write it as 2h, 90m or 1d"),
    ],
)
async def test_a_time_that_cannot_be_read_is_named_with_its_remedy(
    stack: Stack, tmp_path: Path, option: str, value: str, words: str
) -> None:
    keywords = tmp_path / "keywords.csv"
    keywords.write_text("keyword\nwhen\n")
    ran = await citeloop("campaign", str(BRAND_FILE), str(keywords), option, value, home=stack.home)
    assert (ran.code, words in ran.err) == (2, True), ran.err
