"""What status and campaigns say of more than they show; they need the store alone."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from citeloop.models.channel import Catalog, ChannelSpec, Role
from citeloop.models.plan import Stage, State
from citeloop.models.request import CampaignRequest, KeywordLine
from citeloop.models.work import Progress
from citeloop.store.database import Database
from citeloop.store.repositories import articles
from citeloop.store.repositories.tenants import TenantRow
from starter.embedded.postgres import EmbeddedPostgres
from starter.submission import Desk
from tests.installation import brand
from tests.starter.cli import Ran, citeloop

WRITER = ChannelSpec(
    name="deepseek",
    roles=frozenset({Role.WRITE}),
    dialect="openai_chat",
    base_url="http://127.0.0.1:1/v1",
    model="m",
)


class Looker:
    """A tenant with a store and nothing else."""

    def __init__(self, postgres: EmbeddedPostgres, database: Database, tenant: TenantRow, home: Path) -> None:
        self._postgres = postgres
        self._database = database
        self.tenant = tenant
        self._home = home

    async def campaign(self, name: str, keywords: int) -> Sequence[str]:
        lines = tuple(KeywordLine(keyword=f"{name} {number}") for number in range(keywords))
        request = CampaignRequest(name=name, keywords=lines, stages=(Stage.GENERATE,))
        desk = Desk(self._database, Catalog(channels=(WRITER,)), self.tenant)
        return (await desk.campaign(brand(), request, None)).article_ids

    async def park(self, ids: Sequence[str]) -> None:
        async with self._database.tenant(self.tenant.id) as scope:
            for id_ in ids:
                await articles.note(scope, id_, Progress(state=State.PARKED, stage=Stage.GENERATE))

    async def ran(self, *arguments: str) -> Ran:
        environ = {"CITELOOP_DATABASE_URL": self._postgres.url("app"), "CITELOOP_TENANT": self.tenant.name}
        return await citeloop(*arguments, home=self._home, environ=environ)


@pytest.fixture
def looker(postgres: EmbeddedPostgres, database: Database, tenant: TenantRow, tmp_path: Path) -> Looker:
    return Looker(postgres, database, tenant, tmp_path)


async def test_status_counts_all_that_match_and_tells_how_many_it_does_not_show(looker: Looker) -> None:
    ids = await looker.campaign("long", 130)
    await looker.park(ids[100:104])
    await looker.campaign("other", 3)
    shown = await looker.ran("status", "--campaign", "long")
    assert shown.out.splitlines()[0] == "130 articles: 126 submitted, 4 parked"
    assert len(shown.out.splitlines()) == 102
    assert shown.err == "and 30 more: --limit 130 shows all\n"
    parked = await looker.ran("status", "--state", "parked", "--limit", "3")
    assert (parked.out.splitlines()[0], parked.err) == ("4 articles: 4 parked", "and 1 more: --limit 4 shows all\n")
    whole = await looker.ran("status", "--limit", "133")
    assert (whole.out.splitlines()[0], whole.err) == ("133 articles: 129 submitted, 4 parked", "")


async def test_a_list_for_programs_keeps_its_shape_and_tells_people_of_the_rest(looker: Looker) -> None:
    await looker.campaign("short", 3)
    ran = await looker.ran("status", "--limit", "2", "--json")
    assert [row["state"] for row in ran.json] == ["submitted"] * 2
    assert ran.err == "and 1 more: --limit 3 shows all\n"


async def test_more_than_one_command_shows_is_told_with_how_to_choose(looker: Looker) -> None:
    await looker.campaign("vast", 1_002)
    ran = await looker.ran("status", "--limit", "1")
    assert ran.out.splitlines()[0] == "1002 articles: 1002 submitted"
    assert ran.err == "and 1,001 more: --limit 1000 shows more, --campaign, --state and --stage choose among them\n"


async def test_campaigns_tells_how_many_it_does_not_show(looker: Looker) -> None:
    for name in ("one", "two", "three"):
        await looker.campaign(name, 1)
    ran = await looker.ran("campaigns", "--limit", "2")
    assert [line.split()[1] for line in ran.out.splitlines()[1:]] == ["three", "two"]
    assert ran.err == "and 1 more: --limit 3 shows all\n"
    machine = await looker.ran("campaigns", "--limit", "2", "--json")
    assert ([row["name"] for row in machine.json], machine.err) == (["three", "two"], ran.err)
    whole = await looker.ran("campaigns")
    assert (len(whole.out.splitlines()), whole.err) == (4, "")
