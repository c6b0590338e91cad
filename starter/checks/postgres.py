"""Postgres: reachable, with the two roles, the schema of this version, and tenants kept apart."""

from datetime import UTC, datetime

from citeloop.store import migrate
from citeloop.store.database import Database
from citeloop.store.errors import StoreUnavailable
from citeloop.store.inspection import Inspection, inspect
from citeloop.store.roles import APP, OWNER
from starter.checks.findings import Finding, clock, fail, listed, ok, warn
from starter.endpoints import DATABASE_REMEDY

OLDEST = 16
"""The older of the two major versions that the product is run on."""
_ROLES_REMEDY = "make the roles as deploy/postgres/roles.sql does"


async def postgres(url: str) -> list[Finding]:
    """url: the application's own."""
    try:
        database = Database(url, pool_size=1)
    except ValueError as error:
        return [fail("server", f"CITELOOP_DATABASE_URL: {error}")]
    try:
        asked = datetime.now(UTC)
        async with database.operator() as op:
            seen = await inspect(op)
        answered = datetime.now(UTC)
    except StoreUnavailable as error:
        return [fail("server", f"{error}; {DATABASE_REMEDY}")]
    finally:
        await database.close()
    return [
        _version(seen),
        *roles(seen),
        await _schema(url),
        _isolation(seen),
        clock(seen.now, asked=asked, answered=answered, whose="Postgres'"),
    ]


def _version(seen: Inspection) -> Finding:
    if seen.version < OLDEST:
        return warn("server", f"Postgres {seen.version} was never tried; move to {OLDEST} or newer, 18 by preference")
    return ok("server", f"Postgres {seen.version} answers as {seen.connected_as}")


def roles(seen: Inspection) -> list[Finding]:
    """Both are there, and neither sees through row-level security."""
    findings = []
    for name in (APP, OWNER):
        role = seen.role(name)
        if role is None:
            findings.append(fail("roles", f"there is no role {name}; {_ROLES_REMEDY}"))
        elif role.superuser or role.bypasses_security:
            what = "is a superuser" if role.superuser else "bypasses row-level security"
            findings.append(fail("roles", f"{name} {what}; ALTER ROLE {name} NOSUPERUSER NOBYPASSRLS"))
        elif role.may_become_owner:
            findings.append(fail("roles", f"{name} may become {OWNER}; REVOKE {OWNER} FROM {name}"))
    if seen.connected_as != APP:
        findings.append(
            fail("roles", f"the application connects as {seen.connected_as}; name {APP} in CITELOOP_DATABASE_URL")
        )
    return findings or [ok("roles", f"{APP} and {OWNER}, both bound by row-level security")]


async def _schema(url: str) -> Finding:
    stands, wanted = await migrate.current_revision(url), migrate.head_revision()
    if stands == wanted:
        return ok("schema", f"at {stands}, as this version needs it")
    if stands is None:
        return fail("schema", "the database is empty; run `citeloop db upgrade`")
    if not migrate.knows(stands):
        return fail("schema", f"the database is at {stands}, newer than this program; install the newer CiteLoop here")
    return fail("schema", f"the database is at {stands}, this program needs {wanted}; run `citeloop db upgrade`")


def _isolation(seen: Inspection) -> Finding:
    if not seen.tenant_tables:
        return fail("isolation", "there are no tables yet; run `citeloop db upgrade`")
    if seen.unprotected:
        return fail(
            "isolation",
            f"row-level security is not forced on {listed(seen.unprotected)}; as {OWNER}: "
            "ALTER TABLE … ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
        )
    if seen.opened:
        return fail(
            "isolation",
            f"a policy on {listed(seen.opened)} shows every tenant's rows; as {OWNER}: DROP POLICY … on it",
        )
    return ok("isolation", f"row-level security is forced on all {seen.tenant_tables} tables of tenants")
