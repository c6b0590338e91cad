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
from starter.errors import CommandError, Conflict, Missing
from starter.stack import Stack
from tests.starter.cli import citeloop
from tests.starter.conftest import parts
from workflows.client import connect


@pytest.fixture(scope="module")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    async with Stack(parts(tmp_path_factory.mktemp("idle"), worker=False, api=False)) as made:
        yield made


@pytest.fixture(scope="module")
async def commands(stack: Stack) -> AsyncIterator[Commands]:
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


async def test_a_cancelled_campaign_is_held_although_nobody_answers_and_one_of_it_can_be_retried(
    commands: Commands,
) -> None:
    done = await commands.submit_campaign(files.read_brand(simulated.BRAND), request("called off", "called back"))
    assert done.campaign_id is not None
    effect = await commands.cancel_campaign(done.campaign_id, "wrong brand")
    assert (effect.recorded, effect.answered) == (True, False)
    assert (await commands.campaign(done.campaign_id)).hold == "wrong brand"
    await commands.retry(done.article_ids[1])
    assert (await commands.campaign(done.campaign_id)).hold is None
    states = [(await commands.article(article_id)).state for article_id in done.article_ids]
    assert states == [State.CANCELLED, State.SUBMITTED]


async def test_a_campaign_is_found_by_name_prefix_and_id(commands: Commands) -> None:
    done = await commands.submit_campaign(files.read_brand(simulated.BRAND), request("findable"))
    assert done.campaign_id is not None
    found = [(await commands.campaign(ref)).id for ref in ("findable", done.campaign_id[:10], done.campaign_id)]
    assert found == [done.campaign_id] * 3


async def test_too_little_of_an_id_means_no_campaign(commands: Commands) -> None:
    done = await commands.submit_campaign(files.read_brand(simulated.BRAND), request("not meant"))
    assert done.campaign_id is not None
    for ref in ("", done.campaign_id[:1], done.campaign_id[:3]):
        with pytest.raises(Missing, match="is no campaign"):
            await commands.cancel_campaign(ref, "an unset variable")


async def test_a_word_to_one_of_several_campaigns_of_a_name_is_refused_with_their_ids(commands: Commands) -> None:
    brand = files.read_brand(simulated.BRAND)
    made = [
        (await commands.submit_campaign(brand, request("twin", extra))).campaign_id
        for extra in ("one more", "two more")
    ]
    with pytest.raises(CommandError) as refused:
        await commands.pause_campaign("twin")
    assert str(refused.value).startswith("campaign: 'twin' means 2 campaigns: ")
    assert str(refused.value).endswith("; name one by its id")
    assert all(str(one) in str(refused.value) for one in made)
    assert [(await commands.pause_campaign(str(one))).id for one in made] == made


async def test_who_only_looks_gets_the_newest_of_a_name_and_is_told(commands: Commands, stack: Stack) -> None:
    brand = files.read_brand(simulated.BRAND)
    for extra in ("seen one", "seen two"):
        newest = (await commands.submit_campaign(brand, request("pair", extra))).campaign_id
    ran = await citeloop("status", "--campaign", "pair", "--ids", "--json", home=stack.home)
    assert (ran.code, ran.err) == (0, f"newest of 2 named pair; id {newest}\n")
    assert {article["campaign_id"] for article in ran.json} == {newest}
    by_id = await citeloop("campaigns", str(newest), "--json", home=stack.home)
    assert (by_id.code, by_id.err, by_id.json[0]["id"]) == (0, "", newest)


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
