"""A submission is refused before anything is written when a key is missing or wrong."""

from collections.abc import Mapping

import pytest

from citeloop.channels import catalog
from citeloop.channels.outside import Outside
from citeloop.models.plan import Plan
from citeloop.models.request import CampaignRequest, KeywordLine
from citeloop.rules import planning
from starter import files, simulated
from starter.errors import CommandError
from starter.preflight import Preflight
from tests.fixtures_sandbox import Sandbox


def plan_for(environ: Mapping[str, str]) -> Plan:
    request = CampaignRequest(name="x", keywords=(KeywordLine(keyword="vector database"),), writers=("deepseek",))
    known = catalog.load(simulated.CHANNELS, environ)
    brand = files.read_brand(simulated.BRAND)
    return planning.build(request, known, brand, tenant_id="T", brand_id="B", campaign_id=None)[1][0]


@pytest.fixture
def environ(sandbox: Sandbox) -> dict[str, str]:
    return dict(sandbox.environ)


async def check(environ: Mapping[str, str]) -> None:
    known = catalog.load(simulated.CHANNELS, environ)
    outside = Outside(known, environ)
    try:
        await Preflight(outside, known, environ).check(plan_for(environ))
    finally:
        await outside.close()


async def test_good_keys_pass(environ: dict[str, str]) -> None:
    await check(environ)


async def test_a_wrong_key_names_channel_and_variable(environ: dict[str, str]) -> None:
    with pytest.raises(CommandError, match=r"channel deepseek: .*refuses the key.*check SANDBOX_KEY"):
        await check({**environ, "SANDBOX_KEY": "wrong"})


async def test_a_missing_key_names_the_variable_and_the_remedy(environ: dict[str, str]) -> None:
    del environ["SANDBOX_BLOG_PASSWORD"]
    with pytest.raises(CommandError) as refused:
        await check(environ)
    assert str(refused.value) == (
        "blog: SANDBOX_BLOG_PASSWORD is not set; export SANDBOX_BLOG_PASSWORD, or leave blog out"
    )


async def test_a_provider_in_trouble_refuses_nothing(sandbox: Sandbox, environ: dict[str, str]) -> None:
    await sandbox.configure(deepseek={"http_500": 1.0})
    await check(environ)
