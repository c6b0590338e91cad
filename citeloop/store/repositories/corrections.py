"""Corrections and withdrawals of published pages: asked for once, carried out in order, kept as history."""

from datetime import datetime, timedelta
from enum import StrEnum

from citeloop.models import ids
from citeloop.models.record import Record
from citeloop.models.work import CorrectionKind
from citeloop.store.database import OperatorScope, Scope
from citeloop.store.statements import Row, text

_COLUMNS = (
    "SELECT id, publication_id, article_id, site, kind, draft_id, draft_digest, by, reason, state, problem, asked_at, "
    "ended_at FROM corrections WHERE tenant_id = :tenant "
)
_LOCK = text("SELECT 1 FROM publications WHERE tenant_id = :tenant AND id = :publication FOR UPDATE")
_SAME = text(
    _COLUMNS + "AND publication_id = :publication AND kind = :kind AND draft_digest = :draft_digest "
    "AND ended_at IS NULL ORDER BY asked_at DESC LIMIT 1"
)
_ASK = text("""
INSERT INTO corrections (tenant_id, id, publication_id, article_id, site, kind, draft_id, draft_digest, by, reason)
VALUES (:tenant, :id, :publication, :article, :site, :kind, :draft_id, :draft_digest, :by, :reason)
""")
_OPEN = text(_COLUMNS + "AND article_id = :article AND site = :site AND ended_at IS NULL ORDER BY asked_at, id LIMIT 1")
_GET = text(_COLUMNS + "AND id = :id")
_END = text(
    "UPDATE corrections SET state = :state, problem = :problem, ended_at = clock_timestamp() "
    "WHERE tenant_id = :tenant AND id = :id AND ended_at IS NULL RETURNING id"
)
_OF_ARTICLE = text(_COLUMNS + "AND article_id = :article ORDER BY asked_at, id")
_WAITING = text("SELECT tenant_id, article_id, site FROM citeloop_open_corrections(:older_than, :limit)")


class CorrectionState(StrEnum):
    ASKED = "asked"
    DONE = "done"
    FAILED = "failed"


class Correction(Record):
    id: str
    publication_id: str
    article_id: str
    site: str
    kind: CorrectionKind
    draft_id: str | None
    """The text it is to become; None for a withdrawal."""
    draft_digest: str
    by: str
    reason: str
    state: CorrectionState
    problem: str
    """Why it failed."""
    asked_at: datetime
    ended_at: datetime | None


async def ask(
    scope: Scope,
    *,
    publication_id: str,
    article_id: str,
    site: str,
    kind: CorrectionKind,
    by: str,
    reason: str = "",
    draft_id: str | None = None,
    draft_digest: str = "",
) -> Correction:
    """The row of what is asked for: made now, or the open one that asks for the same."""
    place = {"tenant": scope.tenant_id, "publication": publication_id}
    wanted = {"kind": str(kind), "draft_digest": draft_digest}
    await scope.sql.execute(_LOCK, place)
    same = (await scope.sql.execute(_SAME, {**place, **wanted})).one_or_none()
    if same is not None:
        return _correction(same)
    made = {"id": ids.new_id(), "article": article_id, "site": site, "draft_id": draft_id, "by": by, "reason": reason}
    await scope.sql.execute(_ASK, {**place, **wanted, **made})
    return _correction((await scope.sql.execute(_GET, {"tenant": scope.tenant_id, "id": made["id"]})).one())


async def next_open(scope: Scope, article_id: str, site: str) -> Correction | None:
    """The oldest one that has not ended."""
    values = {"tenant": scope.tenant_id, "article": article_id, "site": site}
    row = (await scope.sql.execute(_OPEN, values)).one_or_none()
    return _correction(row) if row is not None else None


async def get(scope: Scope, correction_id: str) -> Correction | None:
    row = (await scope.sql.execute(_GET, {"tenant": scope.tenant_id, "id": correction_id})).one_or_none()
    return _correction(row) if row is not None else None


async def end(scope: Scope, correction_id: str, problem: str = "") -> bool:
    """Done, or failed for `problem`; False when it had ended before."""
    state = CorrectionState.FAILED if problem else CorrectionState.DONE
    values = {"tenant": scope.tenant_id, "id": correction_id, "state": str(state), "problem": problem[:500]}
    return bool(await scope.sql.execute(_END, values))


async def of_article(scope: Scope, article_id: str) -> list[Correction]:
    """Oldest first."""
    rows = await scope.sql.execute(_OF_ARTICLE, {"tenant": scope.tenant_id, "article": article_id})
    return [_correction(row) for row in rows]


async def waiting(op: OperatorScope, older_than: timedelta, limit: int = 100) -> list[tuple[str, str, str]]:
    """(tenant id, article id, site) of pages whose open correction was asked for that long ago."""
    rows = await op.sql.execute(_WAITING, {"older_than": older_than, "limit": limit})
    return [(row.tenant_id, row.article_id, row.site) for row in rows]


def _correction(row: Row) -> Correction:
    return Correction.model_validate(row._asdict())
