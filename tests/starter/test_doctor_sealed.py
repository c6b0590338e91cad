"""`citeloop doctor` tells when the key that is set does not open the secrets of registered sites."""

import pytest

from citeloop import sealing
from citeloop.models import ids
from citeloop.models.channel import Catalog, SiteKind
from citeloop.models.site import SiteEntry
from citeloop.store.database import Database
from citeloop.store.repositories.tenants import TenantRow
from starter.checks.findings import Standing
from starter.checks.sealed import sealed
from starter.embedded.postgres import EmbeddedPostgres
from starter.site_commands import SiteCommands
from tests.installation import Installation
from tests.starter.cli import citeloop
from tests.starter.test_doctor_postgres import empty

__all__ = ["empty"]
KEY, OTHER = sealing.new_key(), sealing.new_key()


@pytest.fixture
def url(postgres: EmbeddedPostgres) -> str:
    return postgres.url("app")


async def keep(database: Database, tenant: TenantRow, key: str, *names: str) -> None:
    commands = SiteCommands(database, Catalog(), tenant, key)
    for name in names:
        address = f"https://{name}.example.com"
        await commands.put(SiteEntry(name=name, kind=SiteKind.GHOST, base_url=address, concurrency=1), "id:5ec7e7")


async def test_the_key_that_sealed_them_opens_all(url: str, database: Database, tenant: TenantRow) -> None:
    await keep(database, tenant, KEY, "a", "b")
    (found,) = await sealed(url, tenant.name, KEY)
    assert (found.standing, found.message) == (
        Standing.OK,
        f"opens the secrets of tenant {tenant.name}'s 2 registered sites",
    )
    (rotated,) = await sealed(url, tenant.name, f"{OTHER},{KEY}")
    assert rotated.standing is Standing.OK


async def test_sites_that_another_key_sealed_are_named_with_the_remedy(
    url: str, database: Database, tenant: TenantRow
) -> None:
    await keep(database, tenant, KEY, "a", "b")
    await keep(database, tenant, OTHER, "c")
    (found,) = await sealed(url, tenant.name, KEY)
    assert found.standing is Standing.FAIL
    assert found.message == (
        f"CITELOOP_SECRET_KEY opens 2 secrets of tenant {tenant.name}'s 3 registered sites and not those of c: the "
        "secret was sealed under another key; bring that key back behind a comma in CITELOOP_SECRET_KEY, or give the "
        "secret again by `citeloop sites set NAME --secret-env VARIABLE`"
    )
    await keep(database, tenant, KEY, "c")
    (mended,) = await sealed(url, tenant.name, KEY)
    assert mended.standing is Standing.OK


@pytest.mark.parametrize(
    ("key", "problem"),
    [(None, "CITELOOP_SECRET_KEY is not set"), ("no key", "CITELOOP_SECRET_KEY holds no Fernet key")],
)
async def test_without_a_key_sealed_sites_are_a_failure(
    url: str, database: Database, tenant: TenantRow, key: str | None, problem: str
) -> None:
    await keep(database, tenant, KEY, "a")
    (found,) = await sealed(url, tenant.name, key)
    assert found.standing is Standing.FAIL
    assert found.message.startswith(problem)
    assert f"nothing opens the secrets of tenant {tenant.name}'s 1 registered site; export the key" in found.message


async def test_without_a_key_and_without_sites_all_is_well(url: str, tenant: TenantRow) -> None:
    for name in (tenant.name, "never heard of"):
        (found,) = await sealed(url, name, None)
        assert found.standing is Standing.OK


async def test_a_store_that_is_away_or_empty_is_left_to_its_own_group(
    postgres: EmbeddedPostgres, tenant: TenantRow, empty: str
) -> None:
    assert await sealed("postgresql://a:b@127.0.0.1:9/citeloop", tenant.name, KEY) == []
    assert await sealed(postgres.url("app", empty), tenant.name, KEY) == []


async def test_the_whole_command_fails_for_a_wrong_key(installation: Installation) -> None:
    name = f"t{ids.new_id().lower()}"
    added = await citeloop(
        "--tenant", name, "sites", "add", "own", "--kind", "ghost", "--url", "https://own.example.com",
        "--secret-env", "PW", home=installation.home, environ={"PW": "id:5ec7e7"},
    )  # fmt: skip
    assert added.code == 0, added.err
    arguments = ("--tenant", name, "doctor", "--offline", "--json")
    right = await citeloop(*arguments, home=installation.home)
    assert right.code == 0, right.out
    wrong = await citeloop(*arguments, home=installation.home, environ={sealing.VARIABLE: OTHER})
    assert wrong.code == 1
    (told,) = [
        one["message"]
        for group in wrong.json["groups"]
        for one in group["findings"]
        if group["name"] == "Channels and sites" and one["standing"] == "fail"
    ]
    assert "not those of own: the secret was sealed under another key; " in told
    assert (await citeloop("--tenant", name, "sites", "remove", "own", home=installation.home)).code == 0
