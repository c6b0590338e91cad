"""One row per article and site, moved only by compare-and-set."""

# ruff: noqa: S608 - statements are put together from constants only

import secrets
from collections.abc import Collection
from datetime import datetime
from typing import Any, TypedDict, Unpack

from citeloop.models import ids
from citeloop.models.record import Record
from citeloop.models.work import PublicationState, Reading
from citeloop.store.database import Scope
from citeloop.store.statements import Row, text

_COLUMNS = (
    "id, article_id, site, kind, state, marker, digest, token, remote_id, url, reason, look_ups, sent_at, "
    "updated_at, deadline, slug, CAST(reading->>'readable' AS boolean) AS readable"
)
_RESERVE = text(f"""
INSERT INTO publications (tenant_id, id, article_id, site, kind, state, marker, digest, token, slug)
VALUES (:tenant, :id, :article, :site, :kind, 'reserved', :marker, :digest, :token, :slug)
ON CONFLICT (tenant_id, article_id, site) DO NOTHING RETURNING {_COLUMNS}
""")
_GET = text(f"SELECT {_COLUMNS} FROM publications WHERE tenant_id = :tenant AND article_id = :article AND site = :site")
_OF_ARTICLE = text(
    f"SELECT {_COLUMNS} FROM publications WHERE tenant_id = :tenant AND article_id = :article ORDER BY site"
)
_ADVANCE = text(f"""
UPDATE publications SET
  state = :to, updated_at = clock_timestamp(),
  remote_id = CASE WHEN :has_remote_id THEN CAST(:remote_id AS varchar) ELSE remote_id END,
  url = CASE WHEN :has_url THEN CAST(:url AS varchar) ELSE url END,
  reason = CASE WHEN :has_reason THEN CAST(:reason AS varchar) ELSE reason END,
  look_ups = CASE WHEN :has_look_ups THEN CAST(:look_ups AS integer) ELSE look_ups END,
  sent_at = CASE WHEN :has_sent_at THEN CAST(:sent_at AS timestamptz) ELSE sent_at END,
  deadline = CASE WHEN :has_deadline THEN CAST(:deadline AS timestamptz) ELSE deadline END,
  digest = CASE WHEN :has_digest THEN CAST(:digest AS varchar) ELSE digest END
WHERE tenant_id = :tenant AND id = :id AND state = ANY(CAST(:expected AS varchar[]))
RETURNING {_COLUMNS}
""")
_READ = text(
    "UPDATE publications SET reading = CAST(:reading AS json), updated_at = clock_timestamp() "
    "WHERE tenant_id = :tenant AND id = :id"
)
_FIELDS = ("remote_id", "url", "reason", "look_ups", "sent_at", "deadline", "digest")


class Publication(Record):
    id: str
    article_id: str
    site: str
    kind: str
    state: PublicationState
    marker: str
    digest: str
    token: str
    remote_id: str
    url: str
    reason: str
    look_ups: int
    sent_at: datetime | None
    updated_at: datetime
    deadline: datetime | None
    slug: str
    """The one it was first reserved with; empty in rows that are older than this column."""
    readable: bool | None = None
    """What the page check found; None: it has not looked."""


class Fields(TypedDict, total=False):
    """What may change with a state; what is not named stays."""

    remote_id: str
    url: str
    reason: str
    look_ups: int
    sent_at: datetime | None
    deadline: datetime | None
    digest: str
    """Of the text that stands there now."""


async def reserve(
    scope: Scope, *, article_id: str, site: str, kind: str, marker: str, digest: str, slug: str = ""
) -> Publication:
    """The row of this article on this site: made now, or as it stands."""
    values = {
        "tenant": scope.tenant_id,
        "id": ids.digest_id("publication", scope.tenant_id, article_id, site),
        "article": article_id,
        "site": site,
        "kind": str(kind),
        "marker": marker,
        "digest": digest,
        "token": secrets.token_urlsafe(24),
        "slug": slug,
    }
    row = (await scope.sql.execute(_RESERVE, values)).one_or_none()
    reserved = _publication(row) if row is not None else await get(scope, article_id, site)
    assert reserved is not None
    return reserved


async def get(scope: Scope, article_id: str, site: str) -> Publication | None:
    values = {"tenant": scope.tenant_id, "article": article_id, "site": site}
    row = (await scope.sql.execute(_GET, values)).one_or_none()
    return _publication(row) if row is not None else None


async def advance(
    scope: Scope,
    publication_id: str,
    *,
    expected: Collection[PublicationState],
    to: PublicationState,
    **fields: Unpack[Fields],
) -> Publication | None:
    """Compare-and-set: None, and nothing changed, when the state is none of `expected`."""
    values: dict[str, Any] = {
        "tenant": scope.tenant_id,
        "id": publication_id,
        "to": str(to),
        "expected": [str(state) for state in expected],
    }
    for name in _FIELDS:
        values[f"has_{name}"] = name in fields
        values[name] = fields.get(name)
    row = (await scope.sql.execute(_ADVANCE, values)).one_or_none()
    return _publication(row) if row is not None else None


async def read(scope: Scope, publication_id: str, reading: Reading) -> None:
    """Keep what the page check found."""
    values = {"tenant": scope.tenant_id, "id": publication_id, "reading": reading.model_dump_json()}
    await scope.sql.execute(_READ, values)


async def of_article(scope: Scope, article_id: str) -> list[Publication]:
    rows = await scope.sql.execute(_OF_ARTICLE, {"tenant": scope.tenant_id, "article": article_id})
    return [_publication(row) for row in rows]


def _publication(row: Row) -> Publication:
    return Publication.model_validate(row._asdict())
