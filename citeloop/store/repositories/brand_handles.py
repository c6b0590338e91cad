"""Brands by handle: a handle means one revision, the one put last."""

from datetime import datetime
from functools import lru_cache

from citeloop.models.brand import Brand
from citeloop.models.record import Record
from citeloop.store.database import Scope
from citeloop.store.repositories import brands
from citeloop.store.statements import Row, text

_POINT = text("""
INSERT INTO brand_handles (tenant_id, handle, brand_id) VALUES (:tenant, :handle, :brand_id)
ON CONFLICT (tenant_id, handle) DO UPDATE SET brand_id = excluded.brand_id, updated_at = CASE
  WHEN brand_handles.brand_id = excluded.brand_id THEN brand_handles.updated_at ELSE clock_timestamp() END
RETURNING xmax = 0 AS made
""")
_GET = text("""
SELECT h.handle, h.brand_id AS revision, h.updated_at, b.content::text AS content
FROM brand_handles h JOIN brands b ON b.tenant_id = h.tenant_id AND b.id = h.brand_id
WHERE h.tenant_id = :tenant AND h.handle = :handle
""")
_GET_REVISION = text("""
SELECT CAST(NULL AS varchar) AS handle, id AS revision, created_at AS updated_at, content::text AS content
FROM brands WHERE tenant_id = :tenant AND id = :revision
""")
_LOCK = text("SELECT 1 FROM brand_handles WHERE tenant_id = :tenant AND handle = :handle FOR UPDATE")
_LIST = text("""
SELECT h.handle, h.brand_id AS revision, h.updated_at, b.name
FROM brand_handles h JOIN brands b ON b.tenant_id = h.tenant_id AND b.id = h.brand_id
WHERE h.tenant_id = :tenant AND (CAST(:after AS varchar) IS NULL OR h.handle > :after)
ORDER BY h.handle LIMIT :limit
""")


class BrandRevision(Record):
    handle: str | None
    """None: asked for by revision."""
    revision: str
    updated_at: datetime
    brand: Brand


class BrandSummary(Record):
    handle: str
    revision: str
    updated_at: datetime
    name: str


async def put(scope: Scope, handle: str, brand: Brand) -> bool:
    """True: the handle is new. The same content again changes nothing."""
    brand_id = await brands.put(scope, brand)
    values = {"tenant": scope.tenant_id, "handle": handle, "brand_id": brand_id}
    return bool((await scope.sql.execute(_POINT, values)).scalar_one())


async def get(scope: Scope, handle: str) -> BrandRevision | None:
    row = (await scope.sql.execute(_GET, {"tenant": scope.tenant_id, "handle": handle})).one_or_none()
    return _handled(row) if row is not None else None


async def locked(scope: Scope, handle: str) -> BrandRevision | None:
    """As `get`; nobody else puts this handle until the transaction ends."""
    await scope.sql.execute(_LOCK, {"tenant": scope.tenant_id, "handle": handle})
    return await get(scope, handle)


async def get_revision(scope: Scope, revision: str) -> BrandRevision | None:
    row = (await scope.sql.execute(_GET_REVISION, {"tenant": scope.tenant_id, "revision": revision})).one_or_none()
    return _handled(row) if row is not None else None


async def list_(scope: Scope, *, after: str | None, limit: int) -> list[BrandSummary]:
    """By handle; `after` is the last one of the page before."""
    rows = await scope.sql.execute(_LIST, {"tenant": scope.tenant_id, "after": after, "limit": limit})
    return [BrandSummary(**row._asdict()) for row in rows]


def _handled(row: Row) -> BrandRevision:
    values = row._asdict()
    return BrandRevision.model_construct(brand=_read(values.pop("content")), **values)


@lru_cache(maxsize=256)
def _read(content: str) -> Brand:
    """Kept: a brand is read with every submission, and is long."""
    return Brand.model_validate_json(content)
