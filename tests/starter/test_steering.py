"""Steering a running article from each door: the CLI, a script, a plain signal as the Temporal UI sends it."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from citeloop.channels import catalog
from citeloop.models import ids
from citeloop.models.plan import MonitorPolicy, ReviewMode, ReviewPolicy, Stage, State
from citeloop.models.request import CampaignRequest, KeywordLine
from citeloop.models.work import Action
from citeloop.store.database import Database
from citeloop.store.repositories import drafts
from citeloop.store.repositories.articles import ArticleView
from citeloop.store.repositories.tenants import TenantRow
from starter import files
from starter.commands import Commands
from starter.connecting import tenant_of
from starter.errors import CommandError, Conflict
from starter.stack import Stack
from tests.starter.cli import BRAND, Ran, citeloop
from workflows.client import connect

BRAND_FILE = Path(BRAND)
WAIT = 40


@pytest.fixture(scope="module")
async def database(stack: Stack) -> AsyncIterator[Database]:
    made = Database(stack.database_url, pool_size=2)
    yield made
    await made.close()


@pytest.fixture(scope="module")
async def tenant(database: Database) -> TenantRow:
    return await tenant_of(database, "default")


@pytest.fixture(scope="module")
async def client(stack: Stack) -> Client:
    return await connect(stack.temporal_address)


@pytest.fixture
def commands(stack: Stack, database: Database, tenant: TenantRow, client: Client) -> Commands:
    known = catalog.load(stack.parts.channels, {**os.environ, **stack.child_env()})
    return Commands(client, database, known, tenant, by="script")


def human(keyword: str, **more: Any) -> CampaignRequest:
    return CampaignRequest(
        name=keyword,
        keywords=(KeywordLine(keyword=keyword),),
        review=ReviewPolicy(mode=ReviewMode.HUMAN),
        monitor=MonitorPolicy(offsets=(1,), day=MonitorPolicy().day / 86_400),
        **more,
    )


async def submit(commands: Commands, keyword: str, **more: Any) -> str:
    done = await commands.submit_article(files.read_brand(BRAND_FILE), human(keyword, **more))
    assert (done.new, done.started) == (1, True)
    return done.article_ids[0]


async def until(commands: Commands, article_id: str, *states: State, round_: int = 0) -> ArticleView:
    async with asyncio.timeout(WAIT):
        while True:
            article = await commands.article(article_id)
            if article.state in states and article.round >= round_:
                return article
            await asyncio.sleep(0.1)


async def cli(stack: Stack, *arguments: str) -> Ran:
    ran = await citeloop(*arguments, "--json", home=stack.home)
    assert ran.code == 0, ran.err
    return ran


async def test_an_article_is_sent_back_and_approved_by_cli_and_ends_measured(stack: Stack, commands: Commands) -> None:
    submitted = await cli(
        stack, "submit", "vector database for steering", "--brand", BRAND, "--review", "human",
        "--days", "1", "--day-seconds", "1",
    )  # fmt: skip
    (article_id,) = submitted.json["article_ids"]
    await until(commands, article_id, State.REVIEW)
    await cli(stack, "send-back", article_id, "--notes", "name the licence")
    await until(commands, article_id, State.REVIEW, round_=1)
    await cli(stack, "approve", "vector database for steering", "--notes", "good")
    article = await until(commands, article_id, State.MEASURED, State.PARKED)
    assert (article.state, article.round, article.done) == (State.MEASURED, 1, tuple(Stage))


async def test_a_pause_during_review_holds_before_the_next_stage(stack: Stack, commands: Commands) -> None:
    article_id = await submit(commands, "paused in review")
    await until(commands, article_id, State.REVIEW)
    await cli(stack, "pause", article_id, "--reason", "wait")
    await commands.decide(article_id, Action.APPROVE)
    held = await until(commands, article_id, State.PAUSED, State.PUBLISHED)
    assert (held.state, held.hold, held.stage, held.urls) == (State.PAUSED, "wait", Stage.PUBLISH, ())
    await cli(stack, "resume", article_id)
    assert (await until(commands, article_id, State.MEASURED)).done == tuple(Stage)


async def test_a_cancel_during_review_ends_the_article_and_nothing_is_published(
    stack: Stack, commands: Commands
) -> None:
    article_id = await submit(commands, "cancelled in review")
    await until(commands, article_id, State.REVIEW)
    await cli(stack, "cancel", article_id, "--reason", "wrong product")
    ended = await until(commands, article_id, State.CANCELLED)
    assert (ended.reason, ended.urls) == ("wrong product", ())


async def test_plain_signals_without_arguments_steer_too(client: Client, tenant: TenantRow, commands: Commands) -> None:
    article_id = await submit(commands, "steered by signal")
    handle = client.get_workflow_handle(ids.workflow_id(tenant.id, article_id))
    await until(commands, article_id, State.REVIEW)
    await handle.signal("pause")
    await handle.signal("resume")
    await handle.signal("reject", {"notes": "not ours"})
    article = await until(commands, article_id, State.REJECTED, State.PARKED)
    assert (article.state, article.reason) == (State.REJECTED, "not ours")


async def test_a_decision_on_a_text_that_has_changed_is_refused(commands: Commands) -> None:
    article_id = await submit(commands, "decided on another text")
    await until(commands, article_id, State.REVIEW)
    with pytest.raises(Conflict, match="the text has changed since it was read"):
        await commands.decide(article_id, Action.APPROVE, seen="0" * 64)
    await commands.cancel(article_id, "done")


async def test_a_digest_that_would_mean_any_text_decides_on_none(commands: Commands, database: Database) -> None:
    article_id = await submit(commands, "decided by an unset variable")
    await until(commands, article_id, State.REVIEW)
    async with database.tenant((await tenant_of(database, "default")).id) as scope:
        stored = await drafts.latest(scope, article_id)
    assert stored is not None
    digest = stored.draft.digest
    for seen in ("", digest[:7], f"{digest}0", "%"):
        with pytest.raises(CommandError, match=r"digest: .* is no digest; give the 64 hex digits"):
            await commands.decide(article_id, Action.APPROVE, seen=seen)
    assert (await commands.article(article_id)).state is State.REVIEW
    for _ in range(2):
        effect = await commands.decide(article_id, Action.REJECT, seen=digest[:8].upper())
        assert (effect.answered, effect.state) == (True, State.REJECTED)


async def test_a_second_different_decision_on_one_text_is_refused(commands: Commands) -> None:
    article_id = await submit(commands, "decided twice")
    await until(commands, article_id, State.REVIEW)
    first = await commands.decide(article_id, Action.REJECT, notes="no")
    assert first.answered
    with pytest.raises(Conflict):
        await commands.decide(article_id, Action.APPROVE)


async def test_a_cancelled_article_is_retried_from_where_it_stopped(commands: Commands) -> None:
    article_id = await submit(commands, "second life")
    before = await until(commands, article_id, State.REVIEW)
    await commands.cancel(article_id, "by mistake")
    await until(commands, article_id, State.CANCELLED)
    await commands.retry(article_id)
    again = await until(commands, article_id, State.REVIEW)
    assert again.attempts == before.attempts
    await commands.cancel(article_id, "enough")


async def test_what_has_ended_takes_no_more_words(commands: Commands) -> None:
    article_id = await submit(commands, "over", stages=(Stage.GENERATE,))
    await until(commands, article_id, State.DONE)
    with pytest.raises(Conflict, match="has ended: done"):
        await commands.pause(article_id)
    with pytest.raises(Conflict, match="only a parked, failed or cancelled one is retried, and one"):
        await commands.retry(article_id)


async def test_the_same_submission_twice_is_one_article(commands: Commands) -> None:
    brand = files.read_brand(BRAND_FILE)
    first = await commands.submit_article(brand, human("only once", stages=(Stage.GENERATE,)))
    second = await commands.submit_article(brand, human("only once", stages=(Stage.GENERATE,)))
    assert (second.article_ids, first.new, second.new) == (first.article_ids, 1, 0)


async def test_a_key_used_for_another_campaign_is_a_conflict(commands: Commands) -> None:
    brand = files.read_brand(BRAND_FILE)
    stages = (Stage.GENERATE,)
    done = await commands.submit_campaign(brand, human("first use", stages=stages), key="k1")
    same = await commands.submit_campaign(brand, human("first use", stages=stages), key="k1")
    assert (done.new, same.new, same.campaign_id) == (1, 0, done.campaign_id)
    with pytest.raises(Conflict, match="idempotency key: it was used for another request"):
        await commands.submit_campaign(brand, human("second use", stages=stages), key="k1")


async def test_a_campaign_is_paused_resumed_and_cancelled_as_a_whole(commands: Commands) -> None:
    lines = tuple(KeywordLine(keyword=f"campaign word {number}") for number in range(3))
    request = human("steered").model_copy(update={"keywords": lines, "window": 2})
    done = await commands.submit_campaign(files.read_brand(BRAND_FILE), request)
    assert done.campaign_id is not None
    paused = await commands.pause_campaign("steered", "stocktaking")
    assert (paused.answered, paused.state) == (True, "paused")
    assert (await commands.campaign(done.campaign_id)).hold == "stocktaking"
    resumed = await commands.resume_campaign(done.campaign_id)
    assert (resumed.answered, resumed.state) == (True, "running")
    await commands.cancel_campaign(done.campaign_id, "enough")
    for article_id in done.article_ids:
        assert (await until(commands, article_id, State.CANCELLED)).reason == "enough"
