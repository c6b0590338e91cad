"""A submission is refused before anything is written when a key is missing or wrong."""

import re
from collections.abc import Mapping

import pytest

from citeloop.channels import catalog
from citeloop.channels.outside import Outside
from citeloop.models.plan import Plan
from citeloop.models.request import CampaignRequest, KeywordLine
from citeloop.rules import planning
from citeloop.rules.requests import RequestError
from citeloop.store.database import Database
from citeloop.store.repositories.tenants import TenantRow
from starter import files, simulated
from starter.commands import Commands
from starter.errors import CommandError
from starter.preflight import Preflight
from tests.fixtures_sandbox import Sandbox
from workflows.client import connect


def plan_for(environ: Mapping[str, str], *writers: str) -> Plan:
    line = KeywordLine(keyword="vector database")
    request = CampaignRequest(name="x", keywords=(line,), writers=writers or ("deepseek",))
    known = catalog.load(simulated.CHANNELS, environ)
    brand = files.read_brand(simulated.BRAND)
    return planning.build(request, known, brand, tenant_id="T", brand_id="B", campaign_id=None)[1][0]


@pytest.fixture
def environ(sandbox: Sandbox) -> dict[str, str]:
    return dict(sandbox.environ)


async def check(environ: Mapping[str, str], *, calls: bool = True) -> list[str]:
    """The lines of its warnings."""
    known = catalog.load(simulated.CHANNELS, environ)
    outside = Outside(known, environ)
    told: list[str] = []
    try:
        await Preflight(outside, known, environ, calls=calls, warn=told.append).check(plan_for(environ))
    finally:
        await outside.close()
    return [line for text in told for line in text.splitlines()]


async def test_good_keys_pass_without_a_word(environ: dict[str, str]) -> None:
    assert await check(environ) == []


async def test_a_wrong_key_names_channel_and_variable(environ: dict[str, str]) -> None:
    with pytest.raises(CommandError, match=r"channel deepseek: .*refuses the key.*check SANDBOX_KEY; so it is with "):
        await check({**environ, "SANDBOX_KEY": "wrong"})


async def test_a_missing_key_names_the_variable_and_the_remedy(environ: dict[str, str]) -> None:
    del environ["SANDBOX_BLOG_PASSWORD"]
    with pytest.raises(CommandError) as refused:
        await check(environ)
    assert str(refused.value) == (
        "blog: SANDBOX_BLOG_PASSWORD is not set; export SANDBOX_BLOG_PASSWORD, or leave blog out, "
        "or use --no-check if the workers have it"
    )


async def test_all_missing_keys_are_named_at_once(environ: dict[str, str]) -> None:
    with pytest.raises(CommandError) as refused:
        await check({"CITELOOP_SANDBOX_URL": environ["CITELOOP_SANDBOX_URL"]})
    told = str(refused.value)
    assert told.startswith("keys: ")
    assert "SANDBOX_BLOG_USER (blog), SANDBOX_BLOG_PASSWORD (blog)" in told
    assert re.search(r"SANDBOX_KEY \([a-z, ]*deepseek[a-z, ]*\)", told)
    assert told.endswith(
        "are not set; export them, or leave out what needs them, or use --no-check if the workers have them"
    )


async def test_a_provider_in_trouble_refuses_nothing(sandbox: Sandbox, environ: dict[str, str]) -> None:
    await sandbox.configure(deepseek={"http_500": 1.0})
    await check(environ)


async def test_channels_that_cannot_be_reached_are_warned_of_with_the_remedy(environ: dict[str, str]) -> None:
    told = await check({**environ, "CITELOOP_SANDBOX_URL": "http://127.0.0.1:9"})
    assert told[0] == "warning: writing has to wait"
    assert told[1].startswith("  deepseek: cannot reach http://127.0.0.1:9/deepseek/v1")
    assert "warning: measuring has to wait" in told
    assert told[-1].startswith("it is submitted all the same; mend that and see `citeloop channels check`")


async def test_keys_that_need_not_be_here_are_missed_in_words_and_refuse_nothing(environ: dict[str, str]) -> None:
    without = {name: value for name, value in environ.items() if name == "CITELOOP_SANDBOX_URL"}
    told = await check(without, calls=False)
    assert told[:2] == ["warning: writing has to wait", "  deepseek: SANDBOX_KEY is not set here"]
    assert "  blog: SANDBOX_BLOG_USER is not set here, SANDBOX_BLOG_PASSWORD is not set here" in told
    assert told[-1].endswith("export what is missing where the workers run, unless it is set there already")


async def test_one_writer_out_of_several_is_enough(environ: dict[str, str]) -> None:
    del environ["SANDBOX_KEY"]
    known = catalog.load(simulated.CHANNELS, environ)
    outside = Outside(known, environ)
    told: list[str] = []
    plan = plan_for(environ, "deepseek", "qwen")
    keyless = known.model_copy(
        update={
            "channels": tuple(
                one.model_copy(update={"key_env": None}) if one.name == "qwen" else one for one in known.channels
            )
        }
    )
    await Preflight(outside, keyless, environ, calls=False, warn=told.append).check(plan)
    await outside.close()
    assert "writing" not in told[0]
    assert "measuring has to wait" in told[0]


@pytest.mark.parametrize("word", ["accept_article", "accept_campaign"])
async def test_what_was_accepted_under_a_key_is_answered_again_without_a_look_at_channels_and_sites(
    database: Database, tenant: TenantRow, environ: dict[str, str], word: str
) -> None:
    client = await connect("127.0.0.1:9", lazy=True)
    brand = files.read_brand(simulated.BRAND)
    line = KeywordLine(keyword="vector database")
    request = CampaignRequest(name="x", keywords=(line,), writers=("deepseek",), sites=("blog",))
    known = catalog.load(simulated.CHANNELS, environ)
    siteless = known.model_copy(update={"sites": ()})
    first = await getattr(Commands(client, database, known, tenant), word)(brand, request, key="order-7")
    outside = Outside(known, {})
    later = Commands(client, database, siteless, tenant, preflight=Preflight(outside, siteless, {}))
    again = await getattr(later, word)(brand, request, key="order-7")
    assert (again.article_ids, again.campaign_id, first.new, again.new) == (first.article_ids, first.campaign_id, 1, 0)
    with pytest.raises(RequestError, match="blog"):
        await getattr(later, word)(brand, request, key="order-8")
    await outside.close()
