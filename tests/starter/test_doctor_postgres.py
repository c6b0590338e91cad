"""What `citeloop doctor` sees in a real Postgres, and that its remedies mend it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import pytest

from citeloop.models import ids
from citeloop.store import migrate
from citeloop.store.database import Database
from citeloop.store.inspection import inspect
from starter.checks.findings import Finding
from starter.checks.postgres import postgres as examined
from starter.checks.postgres import roles
from starter.embedded.postgres import EmbeddedPostgres
from tests.starter.cli import citeloop


@pytest.fixture
async def empty(postgres: EmbeddedPostgres) -> str:
    """The name of an empty database beside the migrated one."""
    name = f"doctor_{ids.new_id().lower()}"
    app, owner = (postgres.url(role).split(":")[2].split("@")[0] for role in ("app", "owner"))
    admin = postgres.url("superuser", "postgres")
    await migrate.ensure_roles(admin, app_password=app, owner_password=owner, database=name)
    return name


@pytest.fixture
async def own(postgres: EmbeddedPostgres, empty: str) -> str:
    """The name of a migrated database that nobody else uses."""
    await migrate.upgrade(postgres.url("owner", empty))
    return empty


@asynccontextmanager
async def _changed(url: str, change: str, back: str) -> AsyncIterator[None]:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(change)
        yield
    finally:
        await connection.execute(back)
        await connection.close()


async def _troubles(url: str) -> list[str]:
    return _messages(await examined(url))


def _messages(findings: list[Finding]) -> list[str]:
    return [finding.message for finding in findings if finding.standing != "ok"]


async def test_a_migrated_database_is_well(postgres: EmbeddedPostgres) -> None:
    found = await examined(postgres.url("app"))
    assert [finding.check for finding in found] == ["server", "roles", "schema", "isolation", "clock"]
    assert _messages(found) == []


async def test_an_empty_database_is_told_and_the_remedy_mends_it(
    postgres: EmbeddedPostgres, empty: str, tmp_path: Path
) -> None:
    url = postgres.url("app", empty)
    remedy = "run `citeloop db upgrade`"
    assert await _troubles(url) == [f"the database is empty; {remedy}", f"there are no tables yet; {remedy}"]
    environ = {"CITELOOP_DATABASE_OWNER_URL": postgres.url("owner", empty)}
    ran = await citeloop("db", "upgrade", home=tmp_path, environ=environ)
    assert ran.code == 0, ran.err
    assert await _troubles(url) == []


@pytest.mark.parametrize(
    ("stands", "said"),
    [
        ("0001", "the database is at 0001, this program needs {head}; run `citeloop db upgrade`"),
        ("9999", "the database is at 9999, newer than this program; install the newer CiteLoop here"),
    ],
)
async def test_a_schema_of_another_version_is_told(
    postgres: EmbeddedPostgres, own: str, stands: str, said: str
) -> None:
    head = migrate.head_revision()
    set_to = "UPDATE alembic_version SET version_num = '{}'"
    async with _changed(postgres.url("owner", own), set_to.format(stands), set_to.format(head)):
        assert await _troubles(postgres.url("app", own)) == [said.format(head=head)]


@pytest.mark.parametrize(
    ("change", "back", "said"),
    [
        (
            "ALTER ROLE citeloop_app BYPASSRLS",
            "ALTER ROLE citeloop_app NOBYPASSRLS",
            "citeloop_app bypasses row-level security; ALTER ROLE citeloop_app NOSUPERUSER NOBYPASSRLS",
        ),
        (
            "ALTER ROLE citeloop_owner SUPERUSER",
            "ALTER ROLE citeloop_owner NOSUPERUSER",
            "citeloop_owner is a superuser; ALTER ROLE citeloop_owner NOSUPERUSER NOBYPASSRLS",
        ),
        (
            "GRANT citeloop_owner TO citeloop_app",
            "REVOKE citeloop_owner FROM citeloop_app",
            "citeloop_app may become citeloop_owner; REVOKE citeloop_owner FROM citeloop_app",
        ),
    ],
)
async def test_a_role_that_may_see_too_much_is_told(
    postgres: EmbeddedPostgres, change: str, back: str, said: str
) -> None:
    async with _changed(postgres.url("superuser"), change, back):
        assert await _troubles(postgres.url("app")) == [said]
    assert await _troubles(postgres.url("app")) == []


async def test_an_application_that_connects_as_somebody_else_is_told(postgres: EmbeddedPostgres) -> None:
    said = "the application connects as postgres; name citeloop_app in CITELOOP_DATABASE_URL"
    assert await _troubles(postgres.url("superuser")) == [said]


async def test_a_role_that_is_not_there_is_told(database: Database) -> None:
    async with database.operator() as op:
        seen = await inspect(op)
    without = seen.model_copy(update={"roles": tuple(role for role in seen.roles if role.name != "citeloop_owner")})
    assert _messages(roles(without)) == [
        "there is no role citeloop_owner; make the roles as deploy/postgres/roles.sql does"
    ]


@pytest.mark.parametrize(
    ("change", "back", "said"),
    [
        (
            "ALTER TABLE drafts NO FORCE ROW LEVEL SECURITY",
            "ALTER TABLE drafts FORCE ROW LEVEL SECURITY",
            "row-level security is not forced on drafts; ",
        ),
        (
            "ALTER TABLE samples_default DISABLE ROW LEVEL SECURITY",
            "ALTER TABLE samples_default ENABLE ROW LEVEL SECURITY",
            "row-level security is not forced on samples_default; ",
        ),
        (
            "CREATE POLICY everybody ON drafts FOR SELECT USING (true)",
            "DROP POLICY everybody ON drafts",
            "a policy on drafts shows every tenant's rows; ",
        ),
    ],
)
async def test_a_table_that_shows_other_tenants_rows_is_told(
    postgres: EmbeddedPostgres, own: str, change: str, back: str, said: str
) -> None:
    async with _changed(postgres.url("owner", own), change, back):
        (told,) = await _troubles(postgres.url("app", own))
    assert told.startswith(said)


async def test_a_wrong_password_is_told_without_it(postgres: EmbeddedPostgres) -> None:
    right = postgres.url("app")
    password = right.split(":")[2].split("@")[0]
    (told,) = await _troubles(right.replace(password, f"not-{password}"))
    assert "password authentication failed" in told
    assert password not in told


async def test_an_address_that_cannot_be_read_is_told() -> None:
    (told,) = await _troubles("://secret@nowhere")
    assert told.startswith("CITELOOP_DATABASE_URL: the database URL cannot be read: write postgresql://")
    assert "secret" not in told
