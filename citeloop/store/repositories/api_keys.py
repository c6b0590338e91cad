"""Keys of the HTTP API: only their hashes are here."""

from datetime import datetime
from enum import StrEnum

from citeloop.models.record import Record
from citeloop.store.database import Database, Scope
from citeloop.store.repositories.tenants import TenantRow
from citeloop.store.statements import text

_HOLDER = text(
    "SELECT id, name, role, hash, tenant_id, tenant_name, weight, hold FROM citeloop_api_key(CAST(:hash AS varchar))"
)
_ADD = text(
    "INSERT INTO api_keys (tenant_id, id, name, role, prefix, hash) VALUES (:tenant, :id, :name, :role, :prefix, :hash)"
)
_LIST = text(
    "SELECT id, name, role, prefix, created_at, last_used_at, revoked_at FROM api_keys WHERE tenant_id = :tenant "
    "ORDER BY created_at, id"
)
_REVOKE = text(
    "UPDATE api_keys SET revoked_at = coalesce(revoked_at, clock_timestamp()) WHERE tenant_id = :tenant AND id = :id"
)


class KeyRole(StrEnum):
    OPERATOR = "operator"
    VIEWER = "viewer"
    """May look at everything and change nothing."""


class NewKey(Record):
    id: str
    name: str
    role: KeyRole
    prefix: str
    hash: str
    """SHA-256 of the whole key, in hex."""


class Holder(Record):
    """Whose key that is."""

    id: str
    name: str
    role: KeyRole
    hash: str
    tenant: TenantRow


class KeyView(Record):
    id: str
    name: str
    role: KeyRole
    prefix: str
    created_at: datetime
    last_used_at: datetime | None
    """To the minute."""
    revoked_at: datetime | None


async def holder(database: Database, hash_: str) -> Holder | None:
    """None: no such key, or it is revoked. Asked with every request, so in one round trip."""
    row = await database.look_up(_HOLDER, {"hash": hash_})
    if row is None:
        return None
    tenant = TenantRow(id=row.tenant_id, name=row.tenant_name, weight=row.weight, hold=row.hold)
    return Holder(id=row.id, name=row.name, role=KeyRole(row.role), hash=row.hash, tenant=tenant)


async def add(scope: Scope, key: NewKey) -> None:
    await scope.sql.execute(_ADD, {"tenant": scope.tenant_id, **key.model_dump(mode="json")})


async def list_(scope: Scope) -> list[KeyView]:
    """All of the tenant's, oldest first, the revoked ones too."""
    return [KeyView(**row._asdict()) for row in await scope.sql.execute(_LIST, {"tenant": scope.tenant_id})]


async def revoke(scope: Scope, key_id: str) -> None:
    """From the next request on. The first revocation's time stays."""
    await scope.sql.execute(_REVOKE, {"tenant": scope.tenant_id, "id": key_id})
