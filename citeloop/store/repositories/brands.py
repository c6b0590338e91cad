"""Brands, by revision: a changed brand is a new row, and old plans keep theirs."""

from citeloop.models import ids
from citeloop.models.brand import Brand
from citeloop.models.record import Record
from citeloop.store.database import Scope
from citeloop.store.errors import NotFound
from citeloop.store.remembered import Remembered
from citeloop.store.statements import text

_PUT = text(
    "INSERT INTO brands (tenant_id, id, name, content) VALUES (:tenant, :id, :name, CAST(:content AS json)) "
    "ON CONFLICT DO NOTHING"
)
_GET = text("SELECT content::text FROM brands WHERE tenant_id = :tenant AND id = :id")
_LIST = text(
    "SELECT id, content::text AS content FROM brands WHERE tenant_id = :tenant AND id > :after ORDER BY id LIMIT :limit"
)


_KNOWN: Remembered[Brand] = Remembered(200)


class StoredBrand(Record):
    id: str
    brand: Brand


async def put(scope: Scope, brand: Brand) -> str:
    """The revision's id, which is its content's digest."""
    content = brand.model_dump_json()
    brand_id = ids.digest_id("brand", scope.tenant_id, content)
    values = {"tenant": scope.tenant_id, "id": brand_id, "name": brand.entity.name, "content": content}
    await scope.sql.execute(_PUT, values)
    return brand_id


async def get(scope: Scope, brand_id: str) -> Brand:
    """A revision never changes, so that each process reads it once. NotFound."""
    return await _KNOWN.get(scope.tenant_id, brand_id, lambda: _read(scope, brand_id))


async def _read(scope: Scope, brand_id: str) -> Brand:
    content = (await scope.sql.execute(_GET, {"tenant": scope.tenant_id, "id": brand_id})).scalar_one_or_none()
    if content is None:
        raise NotFound(f"no brand {brand_id}")
    return Brand.model_validate_json(content)


async def list_(scope: Scope, *, after: str | None, limit: int) -> list[StoredBrand]:
    values = {"tenant": scope.tenant_id, "after": after or "", "limit": limit}
    rows = await scope.sql.execute(_LIST, values)
    return [StoredBrand(id=row.id, brand=Brand.model_validate_json(row.content)) for row in rows]
