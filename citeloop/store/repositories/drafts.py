"""Drafts with their bodies."""

from citeloop.models.plan import Stage
from citeloop.models.record import Record
from citeloop.models.work import Draft
from citeloop.store.database import Scope
from citeloop.store.errors import NotFound
from citeloop.store.statements import Row, text

_COLUMNS = "SELECT id, digest, stage, round, channel, title, chars, body FROM drafts "
_ADD = text("""
WITH added AS (
  INSERT INTO drafts (tenant_id, id, article_id, digest, stage, round, channel, title, chars, body, sketch)
  VALUES (:tenant, :id, :article, :digest, :stage, :round, :channel, :title, :chars, :body,
    CAST(:sketch AS bigint[]))
  ON CONFLICT DO NOTHING RETURNING channel)
UPDATE articles SET writer = added.channel FROM added WHERE tenant_id = :tenant AND id = :article
""")
_GET = text(_COLUMNS + "WHERE tenant_id = :tenant AND id = :id")
_BY_DIGEST = text(
    _COLUMNS + "WHERE tenant_id = :tenant AND article_id = :article AND digest = :digest "
    "ORDER BY created_at DESC LIMIT 1"
)
_ARTICLE_OF = text("SELECT article_id FROM drafts WHERE tenant_id = :tenant AND id = :id")
_LATEST = text(
    _COLUMNS + "WHERE tenant_id = :tenant AND article_id = :article ORDER BY created_at DESC, round DESC LIMIT 1"
)
# Walks `rewrites_newest` backwards until it has enough: a campaign's other thousands are not even looked at.
_OTHERS = text("""
SELECT d.id, d.sketch FROM drafts d
WHERE d.tenant_id = :tenant AND d.stage = 'rewrite' AND d.article_id <> :article
  AND d.neighbourhood = (
    SELECT coalesce(campaign_id, '') || '/' || brand_id FROM articles WHERE tenant_id = :tenant AND id = :article)
  AND NOT EXISTS (
    SELECT 1 FROM drafts later WHERE later.tenant_id = d.tenant_id AND later.article_id = d.article_id
      AND later.stage = 'rewrite' AND (later.created_at, later.id) > (d.created_at, d.id))
ORDER BY d.created_at DESC LIMIT :limit
""")
_BODIES = text("SELECT body FROM drafts WHERE tenant_id = :tenant AND id = ANY(CAST(:ids AS varchar[]))")


class StoredDraft(Record):
    draft: Draft
    body: str


async def add(scope: Scope, article_id: str, draft: Draft, body: str, *, sketch: tuple[int, ...] = ()) -> None:
    """Kept once by its id; the article remembers who wrote it.

    sketch: by which later drafts are compared with this one (`rules.duplicates`).
    """
    values = {**draft.model_dump(exclude={"kind"}), "body": body, "sketch": list(sketch)}
    await scope.sql.execute(_ADD, {"tenant": scope.tenant_id, "article": article_id, **values})


async def get(scope: Scope, draft_id: str) -> StoredDraft:
    row = (await scope.sql.execute(_GET, {"tenant": scope.tenant_id, "id": draft_id})).one_or_none()
    if row is None:
        raise NotFound(f"no draft {draft_id}")
    return _stored(row)


async def by_digest(scope: Scope, article_id: str, digest: str) -> StoredDraft | None:
    """The newest draft of the article with this very text."""
    values = {"tenant": scope.tenant_id, "article": article_id, "digest": digest}
    row = (await scope.sql.execute(_BY_DIGEST, values)).one_or_none()
    return _stored(row) if row is not None else None


async def article_of(scope: Scope, draft_id: str) -> str | None:
    """Whose draft it is."""
    values = {"tenant": scope.tenant_id, "id": draft_id}
    found: str | None = (await scope.sql.execute(_ARTICLE_OF, values)).scalar_one_or_none()
    return found


async def latest(scope: Scope, article_id: str) -> StoredDraft | None:
    row = (await scope.sql.execute(_LATEST, {"tenant": scope.tenant_id, "article": article_id})).one_or_none()
    return _stored(row) if row is not None else None


async def sketches_of_others(scope: Scope, article_id: str, limit: int = 2000) -> dict[str, tuple[int, ...]]:
    """By draft id, of the latest rewrites of its neighbours: same campaign, same brand revision."""
    values = {"tenant": scope.tenant_id, "article": article_id, "limit": limit}
    return {row.id: tuple(row.sketch) for row in await scope.sql.execute(_OTHERS, values)}


async def bodies(scope: Scope, draft_ids: list[str]) -> list[str]:
    if not draft_ids:
        return []
    found = await scope.sql.execute(_BODIES, {"tenant": scope.tenant_id, "ids": draft_ids})
    return [row.body for row in found]


def _stored(row: Row) -> StoredDraft:
    values = row._asdict()
    body = values.pop("body")
    return StoredDraft(draft=Draft(**{**values, "stage": Stage(values["stage"])}), body=body)
