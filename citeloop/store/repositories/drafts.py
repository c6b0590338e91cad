"""Drafts with their bodies."""

from typing import Any

from sqlalchemy import Row, text

from citeloop.models.plan import Stage
from citeloop.models.record import Record
from citeloop.models.work import Draft
from citeloop.store.database import Scope
from citeloop.store.errors import NotFound

_COLUMNS = "SELECT id, digest, stage, round, channel, title, chars, body FROM drafts "
_ADD = text("""
WITH added AS (
  INSERT INTO drafts (tenant_id, id, article_id, digest, stage, round, channel, title, chars, body)
  VALUES (:tenant, :id, :article, :digest, :stage, :round, :channel, :title, :chars, :body)
  ON CONFLICT DO NOTHING RETURNING channel)
UPDATE articles SET writer = added.channel FROM added WHERE tenant_id = :tenant AND id = :article
""")
_GET = text(_COLUMNS + "WHERE tenant_id = :tenant AND id = :id")
_LATEST = text(
    _COLUMNS + "WHERE tenant_id = :tenant AND article_id = :article ORDER BY created_at DESC, round DESC LIMIT 1"
)
_OTHERS = text("""
SELECT d.article_id, d.body FROM articles mine
JOIN articles other ON other.tenant_id = mine.tenant_id AND other.id <> mine.id
 AND other.campaign_id IS NOT DISTINCT FROM mine.campaign_id AND other.brand_id = mine.brand_id
JOIN LATERAL (
  SELECT article_id, body, created_at FROM drafts
  WHERE tenant_id = other.tenant_id AND article_id = other.id AND stage = 'rewrite'
  ORDER BY created_at DESC LIMIT 1) d ON true
WHERE mine.tenant_id = :tenant AND mine.id = :article
ORDER BY d.created_at DESC LIMIT :limit
""")


class StoredDraft(Record):
    draft: Draft
    body: str


async def add(scope: Scope, article_id: str, draft: Draft, body: str) -> None:
    """Kept once by its id; the article remembers who wrote it."""
    values = draft.model_dump(exclude={"kind"})
    await scope.sql.execute(_ADD, {"tenant": scope.tenant_id, "article": article_id, "body": body, **values})


async def get(scope: Scope, draft_id: str) -> StoredDraft:
    row = (await scope.sql.execute(_GET, {"tenant": scope.tenant_id, "id": draft_id})).one_or_none()
    if row is None:
        raise NotFound(f"no draft {draft_id}")
    return _stored(row)


async def latest(scope: Scope, article_id: str) -> StoredDraft | None:
    row = (await scope.sql.execute(_LATEST, {"tenant": scope.tenant_id, "article": article_id})).one_or_none()
    return _stored(row) if row is not None else None


async def of_others(scope: Scope, article_id: str, limit: int = 500) -> list[tuple[str, str]]:
    """(article id, body) of the latest rewrites of its neighbours: same campaign, same brand revision."""
    values = {"tenant": scope.tenant_id, "article": article_id, "limit": limit}
    return [(row.article_id, row.body) for row in await scope.sql.execute(_OTHERS, values)]


digests_of_others = of_others


def _stored(row: Row[Any]) -> StoredDraft:
    values = row._asdict()
    body = values.pop("body")
    return StoredDraft(draft=Draft(**{**values, "stage": Stage(values["stage"])}), body=body)
