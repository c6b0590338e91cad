"""Looks at the database as an installation: version, roles, protection of the tables, clock. Changes nothing."""

from datetime import datetime

from citeloop.models.record import Record
from citeloop.store.database import OperatorScope
from citeloop.store.roles import APP, OWNER
from citeloop.store.statements import text

_SERVER = text(
    "SELECT current_setting('server_version_num')::int AS number, current_user AS connected_as, "
    "clock_timestamp() AS now"
)
_ROLES = text("""
SELECT rolname AS name, rolsuper AS superuser, rolbypassrls AS bypasses_security,
       coalesce(pg_has_role(oid, to_regrole(:owner)::oid, 'MEMBER') AND rolname <> :owner, false) AS may_become_owner
FROM pg_roles WHERE rolname IN (:app, :owner, current_user) ORDER BY rolname
""")
_TENANT_TABLES = """
SELECT c.oid, c.relname FROM pg_class c
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
  AND (c.relname = 'tenants' OR EXISTS (
    SELECT 1 FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped))
"""
_COUNTED = text(f"SELECT count(*) FROM ({_TENANT_TABLES}) t")  # noqa: S608 - our own constant
_UNPROTECTED = text(f"""
SELECT t.relname FROM ({_TENANT_TABLES}) t JOIN pg_class c ON c.oid = t.oid
WHERE NOT (c.relrowsecurity AND c.relforcerowsecurity) ORDER BY 1
""")  # noqa: S608 - our own constant
_OPENED = text(f"""
SELECT DISTINCT t.relname FROM ({_TENANT_TABLES}) t JOIN pg_policy p ON p.polrelid = t.oid
WHERE p.polpermissive AND (0 = ANY(p.polroles) OR to_regrole(:app)::oid = ANY(p.polroles))
  AND (coalesce(pg_get_expr(p.polqual, p.polrelid), 'citeloop.tenant') NOT LIKE '%citeloop.tenant%'
       OR coalesce(pg_get_expr(p.polwithcheck, p.polrelid), 'citeloop.tenant') NOT LIKE '%citeloop.tenant%')
ORDER BY 1
""")  # noqa: S608 - our own constant


class RoleRow(Record):
    name: str
    superuser: bool
    bypasses_security: bool
    may_become_owner: bool

    @property
    def bound(self) -> bool:
        """Whether row-level security holds for it, whatever it does."""
        return not (self.superuser or self.bypasses_security or self.may_become_owner)


class Inspection(Record):
    version: int
    """The server's major version, such as 18."""
    connected_as: str
    roles: tuple[RoleRow, ...]
    """The application's, the owner's and the connected one; one that does not exist is missing."""
    tenant_tables: int
    """Tables and partitions that hold tenants' rows; 0 before the first migration."""
    unprotected: tuple[str, ...]
    """Those of them without forced row-level security."""
    opened: tuple[str, ...]
    """Those of them with a policy for the application that does not ask for the tenant."""
    now: datetime

    def role(self, name: str) -> RoleRow | None:
        return next((role for role in self.roles if role.name == name), None)


async def inspect(op: OperatorScope) -> Inspection:
    """Any role may ask: it reads the catalogue only. StoreUnavailable as everywhere."""
    server = (await op.sql.execute(_SERVER)).one()
    names = {"app": APP, "owner": OWNER}
    roles = (await op.sql.execute(_ROLES, names)).all()
    return Inspection(
        version=server.number // 10_000,
        connected_as=server.connected_as,
        roles=tuple(
            RoleRow(
                name=row.name,
                superuser=row.superuser,
                bypasses_security=row.bypasses_security,
                may_become_owner=row.may_become_owner,
            )
            for row in roles
        ),
        tenant_tables=(await op.sql.execute(_COUNTED)).scalar_one(),
        unprotected=tuple((await op.sql.execute(_UNPROTECTED)).scalars()),
        opened=tuple((await op.sql.execute(_OPENED, {"app": APP})).scalars()),
        now=server.now,
    )
