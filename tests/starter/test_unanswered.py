"""Without a worker every word is recorded, and the door says that nobody answers."""

import time
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from citeloop.channels import catalog
from citeloop.models.plan import Stage, State
from citeloop.models.request import CampaignRequest, KeywordLine
from citeloop.models.work import Action
from citeloop.store.database import Database
from starter import files, simulated
from starter.commands import Commands
from starter.connecting import tenant_of
from starter.errors import CommandError, Conflict
from starter.stack import Stack
from tests.starter.conftest import parts
from workflows.client import connect


@pytest.fixture(scope="module")
async def commands(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Commands]:
    async with Stack(parts(tmp_path_factory.mktemp("idle"), worker=False, api=False)) as stack:
        database = Database(stack.database_url, pool_size=2)
        known = catalog.load(stack.parts.channels, stack.child_env())
        client = await connect(stack.temporal_address)
        tenant = await tenant_of(database, "default")
        yield Commands(client, database, known, tenant, patience=timedelta(seconds=1))
        await database.close()


def request(*keywords: str) -> CampaignRequest:
    lines = tuple(KeywordLine(keyword=keyword) for keyword in keywords)
    return CampaignRequest(name=keywords[0], keywords=lines, stages=(Stage.GENERATE,))


async def test_a_pause_is_recorded_within_the_patience(commands: Commands) -> None:
    done = await commands.submit_article(files.read_brand(simulated.BRAND), request("lonely"))
    began = time.monotonic()
    effect = await commands.pause(done.article_ids[0], "later")
    assert time.monotonic() - began < 3
    assert (effect.recorded, effect.answered) == (True, False)
    assert effect.message == "recorded, no worker is answering"
    assert (await commands.article("lonely")).hold == "later"


async def test_an_article_that_never_started_is_cancelled_at_once(commands: Commands) -> None:
    done = await commands.submit_campaign(files.read_brand(simulated.BRAND), request("never", "ever"))
    await commands.cancel(done.article_ids[1], "not wanted")
    article = await commands.article("ever")
    assert (article.state, article.reason) == (State.CANCELLED, "not wanted")


async def test_a_campaign_is_found_by_name_prefix_and_id(commands: Commands) -> None:
    done = await commands.submit_campaign(files.read_brand(simulated.BRAND), request("findable"))
    assert done.campaign_id is not None
    found = [(await commands.campaign(ref)).id for ref in ("findable", done.campaign_id[:10], done.campaign_id)]
    assert found == [done.campaign_id] * 3


async def test_an_article_without_a_draft_takes_no_decision(commands: Commands) -> None:
    done = await commands.submit_article(files.read_brand(simulated.BRAND), request("undecided"))
    with pytest.raises(Conflict, match="'undecided' waits for no decision; it is submitted"):
        await commands.decide(done.article_ids[0], Action.APPROVE)


async def test_an_unknown_article_and_a_priority_out_of_range_are_refused(commands: Commands) -> None:
    done = await commands.submit_article(files.read_brand(simulated.BRAND), request("ranked"))
    with pytest.raises(CommandError, match="article: 'nobody' is no article; `citeloop status` lists them"):
        await commands.pause("nobody")
    with pytest.raises(CommandError, match="priority: 9 is out of range; 1 is most urgent, 5 least"):
        await commands.prioritise(done.article_ids[0], 9)
