"""The two roles and the database: the only thing that is done as the server's administrator."""

import asyncpg

OWNER = "citeloop_owner"
"""Owns the tables and runs migrations; its functions are what the application may see across tenants."""
APP = "citeloop_app"
"""What every process runs as. Row-level security binds it."""


async def ensure_roles(admin_url: str, *, app_password: str, owner_password: str, database: str = "citeloop") -> None:
    """Create roles and database, or bring their passwords and attributes in step; may run any number of times."""
    admin = await asyncpg.connect(plain(admin_url), timeout=10)
    try:
        await admin.execute("SELECT pg_advisory_lock(hashtext('citeloop.roles'))")
        for role, password in ((OWNER, owner_password), (APP, app_password)):
            await _ensure_role(admin, role, password)
        if not await admin.fetchval("SELECT 1 FROM pg_database WHERE datname = $1", database):
            await admin.execute(f"CREATE DATABASE {_name(database)} OWNER {OWNER} ENCODING 'UTF8' TEMPLATE template0")
        await admin.execute(f"REVOKE ALL ON DATABASE {_name(database)} FROM PUBLIC")
        await admin.execute(f"GRANT CONNECT ON DATABASE {_name(database)} TO {OWNER}, {APP}")
    finally:
        await admin.close()


async def _ensure_role(admin: asyncpg.Connection, role: str, password: str) -> None:
    verb = "ALTER" if await admin.fetchval("SELECT 1 FROM pg_roles WHERE rolname = $1", role) else "CREATE"
    literal = await admin.fetchval("SELECT quote_literal($1::text)", password)
    attributes = f"LOGIN NOCREATEDB NOCREATEROLE PASSWORD {literal}"
    if await admin.fetchval("SELECT rolsuper FROM pg_roles WHERE rolname = current_user"):
        await admin.execute(f"{verb} ROLE {role} {attributes} NOSUPERUSER NOBYPASSRLS NOREPLICATION")
        return
    await admin.execute(f"{verb} ROLE {role} {attributes}")
    if role == OWNER:
        await admin.execute(f"GRANT {role} TO CURRENT_USER")


def _name(identifier: str) -> str:
    return '"' + identifier.replace('"', '""') + '"'


def plain(url: str) -> str:
    """The URL as asyncpg itself reads it."""
    return url.replace("postgresql+asyncpg://", "postgresql://", 1).replace("postgres://", "postgresql://", 1)
