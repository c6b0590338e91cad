"""Whose work it is."""

from citeloop.models import ids
from citeloop.models.record import Record
from citeloop.store.database import OperatorScope, Scope
from citeloop.store.statements import text

_ENSURE = text("SELECT id, name, weight, hold FROM citeloop_tenant_ensure(:id, :name, :weight)")
_BY_NAME = text("SELECT id, name, weight, hold FROM citeloop_tenant_by_name(:name)")
_HOLD = text("UPDATE tenants SET hold = :reason WHERE id = :tenant")


class TenantRow(Record):
    id: str
    name: str
    weight: float
    hold: str | None


async def ensure(op: OperatorScope, name: str, weight: float = 1.0) -> TenantRow:
    """The tenant of that name, made if need be; one that is there keeps its weight."""
    row = (await op.sql.execute(_ENSURE, {"id": ids.new_id(), "name": name, "weight": weight})).one()
    return TenantRow.model_validate(row._asdict())


async def by_name(op: OperatorScope, name: str) -> TenantRow | None:
    row = (await op.sql.execute(_BY_NAME, {"name": name})).one_or_none()
    return TenantRow.model_validate(row._asdict()) if row is not None else None


async def hold(scope: Scope, reason: str | None) -> None:
    """Nothing is bought for this tenant while a reason stands; None lets it go on."""
    await scope.sql.execute(_HOLD, {"tenant": scope.tenant_id, "reason": reason})
