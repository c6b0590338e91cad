"""`citeloop channels` as a process: what is shown, and what a person may change."""

import asyncio
import os
from typing import Any

import pytest

from citeloop.channels import catalog
from citeloop.models.plan import ReviewMode, Stage, State
from citeloop.models.throttling import Cause
from citeloop.store.repositories import channels
from tests.installation import Installation
from tests.starter.cli import Ran, citeloop

COLUMNS = ("limit", "why", "used", "slots", "backlog", "oldest", "pollers", "429s", "today")


async def ran(installation: Installation, *arguments: str) -> Ran:
    return await citeloop("channels", *arguments, home=installation.home)


async def shown(installation: Installation, name: str) -> dict[str, Any]:
    listed = await ran(installation, "--json")
    found: dict[str, Any] = next(one for one in listed.json if one["channel"]["name"] == name)
    return found


async def test_limits_are_set_by_a_person_and_put_back(installation: Installation) -> None:
    changed = await ran(installation, "set", "qwen", "--rate", "90/min", "--concurrency", "3")
    assert (changed.code, changed.out) == (0, "qwen: rate 90/min, 3 at once per worker\n")
    slower = await shown(installation, "qwen")
    assert (slower["limit"], slower["why"], slower["channel"]["concurrency"]) == (1.5, "set by the operator", 3)
    assert (await ran(installation, "set", "qwen", "--concurrency", "file")).code == 0
    assert (await shown(installation, "qwen"))["channel"]["operator_concurrency"] is None
    reset = await ran(installation, "set", "qwen", "--reset")
    assert (reset.code, reset.out) == (0, "qwen: back to channels.toml\n")
    back = await shown(installation, "qwen")
    assert (back["limit"], back["why"]) == (50, "channels.toml")


async def test_the_list_shows_use_and_spend_of_today(installation: Installation) -> None:
    before = await shown(installation, "deepseek")
    article = await installation.submit(
        "a spent article", mode=ReviewMode.AUTO, stages=(Stage.GENERATE,), writers=("deepseek",)
    )
    await installation.until(article, State.DONE)
    after = await shown(installation, "deepseek")
    table = await ran(installation)
    assert after["channel"]["calls"] > before["channel"]["calls"]
    assert after["used"] > 0
    spent = [sum(money["micros"] for money in one["spent_today"]) for one in (before, after)]
    assert spent[1] > spent[0]
    assert after["queue"]["pollers"] > 0
    assert all(column in table.out.splitlines()[0] for column in COLUMNS)


async def test_what_cannot_be_set_is_refused_with_the_remedy(installation: Installation) -> None:
    nothing = await ran(installation, "set", "qwen")
    fast = await ran(installation, "set", "qwen", "--concurrency", "many")
    negative = await ran(installation, "set", "qwen", "--rate=-1/s")
    unknown = await ran(installation, "set", "qwne", "--rate", "1/s")
    assert [one.code for one in (nothing, fast, negative, unknown)] == [2, 2, 2, 2]
    assert "give --rate, --concurrency or --reset" in nothing.err
    assert "a whole number from 1 to 1000" in fast.err
    assert "below zero" in negative.err
    assert "choose from" in unknown.err


@pytest.mark.timeout(60)
async def test_an_article_that_waits_for_a_channel_without_a_key_says_so(installation: Installation) -> None:
    why = "qwen: QWEN_KEY is not set; export it, start again, then `citeloop channels resume qwen`"
    async with installation.database.operator() as operator:
        await channels.pause(operator, "qwen", why, Cause.UNAUTHORIZED)
    article = await installation.submit(
        "an article without a key", mode=ReviewMode.AUTO, stages=(Stage.GENERATE,), writers=("qwen",)
    )
    while (await installation.article(article)).channel != "qwen":
        await asyncio.sleep(0.2)
    listed = await citeloop("status", home=installation.home)
    single = await citeloop("status", article, "--json", home=installation.home)
    await citeloop("cancel", article, "--reason", "seen", home=installation.home)
    await ran(installation, "resume", "qwen")
    said = f"qwen is paused: {why.removeprefix('qwen: ')}"
    assert listed.out.splitlines()[-1] == said
    assert single.json["article"]["reason"] == said


async def test_a_channel_that_is_not_in_the_file_any_more_is_marked_and_comes_last(installation: Installation) -> None:
    known = catalog.load(installation.stack.parts.channels, {**os.environ, **installation.stack.child_env()})
    extra = known.channels[0].model_copy(update={"name": "a-former-one"})
    async with installation.database.operator() as operator:
        await channels.sync(operator, known.model_copy(update={"channels": (*known.channels, extra)}))
        await channels.sync(operator, known)
    listed = (await ran(installation, "--json")).json
    assert (listed[-1]["channel"]["name"], listed[-1]["why"]) == ("a-former-one", "not in channels.toml")
    assert "not in channels.toml" not in [one["why"] for one in listed[:-1]]


async def test_a_paused_channel_says_who_paused_it_and_is_resumed(installation: Installation) -> None:
    await ran(installation, "pause", "qwen", "--reason", "new key on Monday")
    paused = await shown(installation, "qwen")
    await ran(installation, "resume", "qwen")
    resumed = await shown(installation, "qwen")
    assert (paused["limit"], paused["why"]) == (0, "paused: new key on Monday")
    assert (paused["channel"]["pause_cause"], resumed["channel"]["pause_cause"]) == ("operator", "")
