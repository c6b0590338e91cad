"""What the command line says where the work will have to wait, and where there is nothing to show."""

import json
from pathlib import Path

import pytest

from citeloop.models.plan import State
from tests.installation import Installation
from tests.starter.cli import BRAND, Ran, citeloop

NOWHERE = {"CITELOOP_SANDBOX_URL": "http://127.0.0.1:9"}
KEYLESS = {"SANDBOX_KEY": "", "SANDBOX_BLOG_PASSWORD": ""}


async def _submit(installation: Installation, keyword: str, *more: str, **environ: str) -> Ran:
    arguments = ("submit", keyword, "--brand", BRAND, "--stages", "generate", *more)
    return await citeloop(*arguments, home=installation.home, environ=environ)


async def test_channels_out_of_reach_are_warned_of_and_the_submission_is_accepted(installation: Installation) -> None:
    ran = await _submit(installation, "a world out of reach", "--json", **NOWHERE)
    assert ran.code == 0, ran.err
    assert ran.json["new"] == 1
    told = ran.err.splitlines()
    assert told[0] == "warning: writing has to wait"
    assert sorted(line.split(":")[0] for line in told[1:-1]) == ["  deepseek", "  doubao", "  qwen"]
    assert all("cannot reach http://127.0.0.1:9" in line for line in told[1:-1])
    assert told[-1].startswith("it is submitted all the same; ")
    await installation.until(ran.json["article_ids"][0], State.DONE)


async def test_unchecked_keys_that_are_not_set_are_named_and_the_submission_is_accepted(
    installation: Installation,
) -> None:
    ran = await _submit(installation, "a world without keys", "--no-check", "--wait", **KEYLESS)
    assert ran.code == 0, ran.err
    assert ran.out.splitlines()[0].endswith(": 1 submitted")
    first, second, last = ran.err.splitlines()
    assert first == "warning: writing has to wait"
    assert second.endswith(": SANDBOX_KEY is not set here")
    assert {"deepseek", "doubao", "qwen"} == {name.strip() for name in second.split(":")[0].split(",")}
    assert "export what is missing where the workers run" in last


async def test_where_everything_answers_nothing_is_said(installation: Installation) -> None:
    ran = await _submit(installation, "a world as it should be")
    assert (ran.code, ran.err) == (0, "")
    article = await installation.article("a world as it should be")
    await installation.until(article.id, State.DONE)


async def test_json_on_stdout_stays_json_while_the_command_waits(installation: Installation) -> None:
    ran = await _submit(installation, "a patient program", "--wait", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["new"] == 1
    assert "a patient program: generate done" in ran.err


@pytest.mark.parametrize(
    ("filters", "said"),
    [
        (("--state", "review"), "no article is in review"),
        (("--state", "failed"), "no article has failed"),
        (("--state", "parked", "--stage", "publish"), "no article is parked at publish"),
        (("--stage", "monitor"), "no article is at monitor"),
        ((), "0 articles: none yet"),
    ],
)
async def test_an_empty_list_is_worded_for_its_filter(
    installation: Installation, filters: tuple[str, ...], said: str
) -> None:
    ran = await citeloop("--tenant", "has-nothing", "status", *filters, home=installation.home)
    assert (ran.code, ran.out) == (0, f"{said}\n")
    machine = await citeloop("--tenant", "has-nothing", "status", *filters, "--json", home=installation.home)
    assert json.loads(machine.out) == []


async def test_a_campaign_is_warned_of_too_and_its_list_names_it_when_nothing_is_found(
    installation: Installation, tmp_path: Path
) -> None:
    (tmp_path / "keywords.csv").write_text("keyword\na quiet world\n")
    ran = await citeloop(
        "campaign", BRAND, str(tmp_path / "keywords.csv"), "--name", "quiet", "--stages", "generate", "--wait",
        home=installation.home, environ=NOWHERE,
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert ran.err.startswith("warning: writing has to wait\n")
    ran = await citeloop("status", "--campaign", "quiet", "--state", "rejected", home=installation.home)
    assert (ran.code, ran.out) == (0, "no article of campaign quiet is rejected\n")
