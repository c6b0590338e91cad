"""Pictures by their digest, with what must stand beside them."""

from citeloop.models.record import Record
from citeloop.models.work import Picture
from citeloop.store.database import Scope
from citeloop.store.errors import NotFound
from citeloop.store.statements import text

_COLUMNS = "SELECT digest, data, media_type, width, height, alt, credit, source FROM pictures "
_PUT = text("""
INSERT INTO pictures (tenant_id, article_id, digest, data, media_type, width, height, alt, credit, source)
VALUES (:tenant, :article_id, :digest, :data, :media_type, :width, :height, :alt, :credit, :source)
ON CONFLICT DO NOTHING
""")
_GET = text(_COLUMNS + "WHERE tenant_id = :tenant AND digest = :digest LIMIT 1")
_FIND = text(_COLUMNS + "WHERE tenant_id = :tenant AND article_id = :article ORDER BY created_at DESC LIMIT 1")


class StoredPicture(Record):
    digest: str
    data: bytes
    media_type: str
    width: int
    height: int
    alt: str
    credit: str
    source: str


async def put(
    scope: Scope,
    *,
    article_id: str,
    digest: str,
    data: bytes,
    media_type: str,
    width: int,
    height: int,
    alt: str,
    credit: str,
    source: str,
) -> None:
    values = {
        "tenant": scope.tenant_id,
        "article_id": article_id,
        "digest": digest,
        "data": data,
        "media_type": media_type,
        "width": width,
        "height": height,
        "alt": alt,
        "credit": credit,
        "source": source,
    }
    await scope.sql.execute(_PUT, values)


async def get(scope: Scope, digest: str) -> StoredPicture:
    row = (await scope.sql.execute(_GET, {"tenant": scope.tenant_id, "digest": digest})).one_or_none()
    if row is None:
        raise NotFound(f"no picture {digest}")
    return StoredPicture(**row._asdict())


async def find(scope: Scope, article_id: str) -> StoredPicture | None:
    """The article's newest picture."""
    row = (await scope.sql.execute(_FIND, {"tenant": scope.tenant_id, "article": article_id})).one_or_none()
    return StoredPicture(**row._asdict()) if row is not None else None


async def of_article(scope: Scope, article_id: str) -> Picture:
    """The newest one, without its bytes. NotFound when there is none."""
    stored = await find(scope, article_id)
    if stored is None:
        raise NotFound(f"article {article_id} has no picture")
    return Picture(digest=stored.digest, source=stored.source, alt=stored.alt, credit=stored.credit)
