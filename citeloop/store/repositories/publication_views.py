"""What the doors show of publications; never the callback's token."""

from datetime import datetime

from citeloop.models.record import Record
from citeloop.models.work import PublicationState, Reading
from citeloop.store.database import Scope
from citeloop.store.statements import text

_LIST = text("""
SELECT p.id, p.article_id, a.campaign_id, a.keyword, p.site, p.kind, p.state, p.url, p.reason, p.reading, p.sent_at,
       p.created_at, p.updated_at
FROM publications p JOIN articles a ON a.tenant_id = p.tenant_id AND a.id = p.article_id
WHERE p.tenant_id = :tenant
  AND (CAST(:article AS varchar) IS NULL OR p.article_id = :article)
  AND (CAST(:campaign AS varchar) IS NULL OR a.campaign_id = :campaign)
  AND (CAST(:state AS varchar) IS NULL OR p.state = :state)
  AND (CAST(:site AS varchar) IS NULL OR p.site = :site)
  AND (CAST(:after AS varchar) IS NULL OR (p.created_at, p.id) <
       (SELECT created_at, id FROM publications WHERE tenant_id = :tenant AND id = :after))
ORDER BY p.created_at DESC, p.id DESC LIMIT :limit
""")


class PublicationView(Record):
    id: str
    article_id: str
    campaign_id: str | None
    keyword: str
    site: str
    kind: str
    state: PublicationState
    url: str
    """Empty until the site has told it."""
    reason: str
    reading: Reading | None
    """What an answer engine would find there; null: not looked at yet."""
    sent_at: datetime | None
    created_at: datetime
    updated_at: datetime


async def list_(
    scope: Scope,
    *,
    article_id: str | None = None,
    campaign_id: str | None = None,
    state: PublicationState | None = None,
    site: str | None = None,
    after: str | None = None,
    limit: int = 100,
) -> list[PublicationView]:
    """Newest first; `after` is the last id of the page before."""
    values = {
        "tenant": scope.tenant_id,
        "article": article_id,
        "campaign": campaign_id,
        "state": str(state) if state is not None else None,
        "site": site,
        "after": after,
        "limit": limit,
    }
    return [PublicationView(**row._asdict()) for row in await scope.sql.execute(_LIST, values)]
