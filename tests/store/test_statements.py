"""Every statement of the store is one that Postgres can prepare, with types it infers by itself."""

import importlib
import pkgutil
from collections.abc import Iterator

import asyncpg
import pytest

from citeloop.store import inspection, repositories
from citeloop.store.database import Database
from citeloop.store.repositories.tenants import TenantRow
from citeloop.store.statements import Statement, text
from starter.embedded.postgres import EmbeddedPostgres


def statements() -> Iterator[tuple[str, Statement]]:
    names = [found.name for found in pkgutil.iter_modules(repositories.__path__, f"{repositories.__name__}.")]
    for module in (inspection, *map(importlib.import_module, names)):
        for name, value in vars(module).items():
            if isinstance(value, Statement):
                yield f"{module.__name__}.{name}", value


async def test_every_statement_can_be_prepared(postgres: EmbeddedPostgres, database: Database) -> None:
    connection = await asyncpg.connect(postgres.url("app"))
    found = dict(statements())
    wrong = {}
    try:
        for name, statement in found.items():
            try:
                prepared = await connection.prepare(statement.sql)
            except asyncpg.PostgresError as error:
                wrong[name] = str(error)
            else:
                assert len(prepared.get_parameters()) == len(statement.names), name
    finally:
        await connection.close()
    assert wrong == {}
    assert len(found) > 150


@pytest.mark.parametrize(
    ("written", "sql", "names"),
    [
        ("SELECT :a, :b, :a", "SELECT $1, $2, $1", ("a", "b")),
        ("SELECT :a::text, x::date", "SELECT $1::text, x::date", ("a",)),
        ("SELECT to_char(at, 'HH24:MI:SS'), :b", "SELECT to_char(at, 'HH24:MI:SS'), $1", ("b",)),
        ("SELECT 'it''s :no', :yes", "SELECT 'it''s :no', $1", ("yes",)),
    ],
)
def test_names_become_the_drivers_numbers(written: str, sql: str, names: tuple[str, ...]) -> None:
    statement = text(written)
    assert (statement.sql, statement.names) == (sql, names)


async def test_a_value_that_does_not_fit_is_named_and_not_shown(database: Database, tenant: TenantRow) -> None:
    with pytest.raises(TypeError, match="body: does not fit") as told:
        async with database.tenant(tenant.id) as scope:
            await scope.sql.execute(text("SELECT CAST(:body AS integer)"), {"body": "a whole secret draft"})
    assert "secret" not in str(told.value)


async def test_a_missing_value_is_named(database: Database) -> None:
    with pytest.raises(KeyError, match="body"):
        async with database.operator() as op:
            await op.sql.execute(text("SELECT CAST(:body AS integer)"), {})


async def test_rows_say_when_there_are_more_or_fewer_than_expected(database: Database) -> None:
    two, none = text("SELECT 1 AS one UNION ALL SELECT 2"), text("SELECT 1 WHERE false")
    async with database.operator() as op:
        with pytest.raises(LookupError, match="2 rows"):
            (await op.sql.execute(two)).one_or_none()
        with pytest.raises(LookupError, match="no row"):
            (await op.sql.execute(none)).one()
        assert (await op.sql.execute(none)).scalar_one_or_none() is None
        assert [row.one for row in await op.sql.execute(two)] == [1, 2]
