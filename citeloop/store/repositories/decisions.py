"""People's words on drafts: the first one counts, every one is in the article's events."""

from citeloop.models.work import Decision
from citeloop.store.database import Scope
from citeloop.store.statements import text

_RECORD = text("""
WITH earlier AS (
  SELECT action, draft_id, draft_digest, by, notes FROM decisions
  WHERE tenant_id = :tenant AND article_id = :article AND draft_id = :draft_id),
counted AS (
  INSERT INTO decisions (tenant_id, article_id, draft_id, draft_digest, action, by, notes)
  SELECT :tenant, :article, :draft_id, :draft_digest, :action, :by, :notes WHERE NOT EXISTS (SELECT 1 FROM earlier)
  ON CONFLICT DO NOTHING RETURNING action, draft_id, draft_digest, by, notes),
told AS (
  INSERT INTO article_events (tenant_id, article_id, kind, stage, state, detail)
  SELECT :tenant, :article,
         CASE WHEN EXISTS (SELECT 1 FROM counted) THEN 'decision' ELSE 'decision_ignored' END, 'review', a.state,
         CAST(:detail AS varchar)
  FROM articles a WHERE a.tenant_id = :tenant AND a.id = :article AND NOT EXISTS (
    SELECT 1 FROM earlier e
    WHERE (e.action, e.draft_digest, e.by, e.notes) = (:action, :draft_digest, :by, CAST(:notes AS varchar))))
SELECT action, draft_id, draft_digest, by, notes FROM counted
UNION ALL SELECT action, draft_id, draft_digest, by, notes FROM earlier
""")
_OF_DRAFT = text(
    "SELECT action, draft_id, draft_digest, by, notes FROM decisions "
    "WHERE tenant_id = :tenant AND article_id = :article AND draft_id = :draft"
)
_ANY_OF_DRAFT = text("""
SELECT d.action, d.draft_id, d.draft_digest, d.by, d.notes FROM drafts t
JOIN decisions d ON d.tenant_id = t.tenant_id AND d.article_id = t.article_id AND d.draft_id = t.id
WHERE t.tenant_id = :tenant AND t.id = :draft
""")


async def record(scope: Scope, article_id: str, decision: Decision) -> Decision:
    """The decision that counts: this one, or the one recorded before it."""
    values = decision.model_dump(mode="json", exclude={"kind"})
    detail = f"{decision.action} by {decision.by}" + (f": {decision.notes}" if decision.notes else "")
    place = {"tenant": scope.tenant_id, "article": article_id}
    row = (await scope.sql.execute(_RECORD, {**place, **values, "detail": detail})).one_or_none()
    if row is not None:
        return Decision.model_validate(row._asdict())
    first = await _of(scope, article_id, decision.draft_id)  # recorded by another at this very moment
    assert first is not None
    return first


async def of_draft(scope: Scope, draft_id: str) -> Decision | None:
    row = (await scope.sql.execute(_ANY_OF_DRAFT, {"tenant": scope.tenant_id, "draft": draft_id})).one_or_none()
    return Decision.model_validate(row._asdict()) if row is not None else None


async def notes_on(scope: Scope, draft_id: str) -> str:
    """What the person wrote when sending the draft back; empty when nothing."""
    decision = await of_draft(scope, draft_id)
    return decision.notes if decision is not None else ""


async def _of(scope: Scope, article_id: str, draft_id: str) -> Decision | None:
    values = {"tenant": scope.tenant_id, "article": article_id, "draft": draft_id}
    row = (await scope.sql.execute(_OF_DRAFT, values)).one_or_none()
    return Decision.model_validate(row._asdict()) if row is not None else None
