"""What the doors show of campaigns: without the keywords, which may be twenty thousand."""

# ruff: noqa: S608 - statements are put together from constants only

from datetime import datetime

from citeloop.models.plan import Kind, State
from citeloop.models.record import Record
from citeloop.store.database import Scope
from citeloop.store.statements import Row, text

_VIEW = """
SELECT c.id, c.name, c.state, c.hold, c.brand_id, c.manifest_id, c.baseline_at, c.created_at, c.updated_at,
       n.counts, coalesce(n.total, 0) AS total
FROM campaigns c LEFT JOIN LATERAL (
  SELECT jsonb_object_agg(state, number) AS counts, sum(number)::integer AS total FROM (
    SELECT state, count(*) AS number FROM articles a
    WHERE a.tenant_id = c.tenant_id AND a.campaign_id = c.id GROUP BY state) by_state) n ON true
WHERE c.tenant_id = :tenant
"""
_GET = text(_VIEW + "AND c.id = :id")
_LIST = text(
    _VIEW + "AND (CAST(:state AS varchar) IS NULL OR c.state = :state) "
    "AND (CAST(:after AS varchar) IS NULL OR (c.created_at, c.id) < "
    "(SELECT created_at, id FROM campaigns WHERE tenant_id = :tenant AND id = :after)) "
    "ORDER BY c.created_at DESC, c.id DESC LIMIT :limit"
)
_COUNT = text("SELECT count(*) FROM campaigns WHERE tenant_id = :tenant")
_EXISTS = text("SELECT true FROM campaigns WHERE tenant_id = :tenant AND id = :id")
_KEYWORDS = text("""
SELECT a.id AS article_id, a.keyword, a.locale, a.kind, a.priority, a.state FROM articles a
WHERE a.tenant_id = :tenant AND a.campaign_id = :id
  AND (CAST(:after AS varchar) IS NULL OR (a.position, a.id) >
       (SELECT position, id FROM articles WHERE tenant_id = :tenant AND id = :after))
ORDER BY a.position, a.id LIMIT :limit
""")
_ARTICLE_IDS = text(
    "SELECT id FROM articles WHERE tenant_id = :tenant AND campaign_id = :id ORDER BY position, articles.id"
)


class CampaignSummary(Record):
    id: str
    name: str
    state: str
    """submitted, running, paused, cancelled or done."""
    hold: str | None
    brand_id: str
    manifest_id: str
    baseline_at: datetime | None
    created_at: datetime
    updated_at: datetime
    counts: dict[State, int]
    total: int


class KeywordView(Record):
    article_id: str
    keyword: str
    locale: str
    kind: Kind
    priority: int
    state: State


async def get(scope: Scope, campaign_id: str) -> CampaignSummary | None:
    row = (await scope.sql.execute(_GET, {"tenant": scope.tenant_id, "id": campaign_id})).one_or_none()
    return _line(row) if row is not None else None


async def exists(scope: Scope, campaign_id: str) -> bool:
    found = await scope.sql.execute(_EXISTS, {"tenant": scope.tenant_id, "id": campaign_id})
    return bool(found.scalar_one_or_none())


async def list_(scope: Scope, *, state: str | None, after: str | None, limit: int) -> list[CampaignSummary]:
    """Newest first; `after` is the last id of the page before."""
    values = {"tenant": scope.tenant_id, "state": state, "after": after, "limit": limit}
    return [_line(row) for row in await scope.sql.execute(_LIST, values)]


async def count(scope: Scope) -> int:
    return int((await scope.sql.execute(_COUNT, {"tenant": scope.tenant_id})).scalar_one())


async def keywords(scope: Scope, campaign_id: str, *, after: str | None, limit: int) -> list[KeywordView]:
    """In the order of the request; `after` is the last article id of the page before."""
    values = {"tenant": scope.tenant_id, "id": campaign_id, "after": after, "limit": limit}
    return [KeywordView(**row._asdict()) for row in await scope.sql.execute(_KEYWORDS, values)]


async def article_ids(scope: Scope, campaign_id: str) -> tuple[str, ...]:
    rows = await scope.sql.execute(_ARTICLE_IDS, {"tenant": scope.tenant_id, "id": campaign_id})
    return tuple(row.id for row in rows)


def _line(row: Row) -> CampaignSummary:
    values = row._asdict()
    counts = values.pop("counts") or {}
    return CampaignSummary(**values, counts={State(state): n for state, n in counts.items()})
