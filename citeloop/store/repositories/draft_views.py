"""What the doors show of drafts: each with what the rules and the people said of it."""

# ruff: noqa: S608 - statements are put together from constants only

from datetime import datetime
from typing import Any

from pydantic import TypeAdapter

from citeloop.models.plan import Stage
from citeloop.models.record import Record
from citeloop.models.work import Action, Flag, Outcome
from citeloop.store.database import Scope
from citeloop.store.statements import Row, text

_COLUMNS = """
SELECT t.id, t.article_id, t.digest, t.stage, t.round, t.channel, t.title, t.chars, t.created_at,
       v.outcome, v.flags::text AS flags, d.action{more}
FROM drafts t
LEFT JOIN verdicts v ON v.tenant_id = t.tenant_id AND v.draft_id = t.id
LEFT JOIN decisions d ON d.tenant_id = t.tenant_id AND d.article_id = t.article_id AND d.draft_id = t.id
WHERE t.tenant_id = :tenant
"""
_OF_ARTICLE = text(
    _COLUMNS.format(more="") + "AND t.article_id = :article AND (CAST(:after AS varchar) IS NULL OR "
    "(t.created_at, t.id) > (SELECT created_at, id FROM drafts WHERE tenant_id = :tenant AND id = :after)) "
    "ORDER BY t.created_at, t.id LIMIT :limit"
)
_GET = text(_COLUMNS.format(more=", t.body") + "AND t.id = :id")
_DECISIONS = text("""
SELECT draft_id, draft_digest, action, by, notes, decided_at FROM decisions
WHERE tenant_id = :tenant AND article_id = :article ORDER BY decided_at, draft_id
""")
_FLAGS = TypeAdapter(tuple[Flag, ...])


class DraftSummary(Record):
    id: str
    article_id: str
    digest: str
    """What a decision is bound to."""
    stage: Stage
    round: int
    channel: str
    title: str
    chars: int
    created_at: datetime
    outcome: Outcome | None
    """None: the rules have not judged it."""
    flags: tuple[Flag, ...]
    decision: Action | None


class DraftView(DraftSummary):
    body: str


class DecisionView(Record):
    draft_id: str
    draft_digest: str
    action: Action
    by: str
    notes: str
    decided_at: datetime


async def of_article(scope: Scope, article_id: str, *, after: str | None, limit: int) -> list[DraftSummary]:
    """Oldest first; `after` is the last id of the page before."""
    values = {"tenant": scope.tenant_id, "article": article_id, "after": after, "limit": limit}
    return [DraftSummary(**_values(row)) for row in await scope.sql.execute(_OF_ARTICLE, values)]


async def get(scope: Scope, draft_id: str) -> DraftView | None:
    row = (await scope.sql.execute(_GET, {"tenant": scope.tenant_id, "id": draft_id})).one_or_none()
    return DraftView(**_values(row)) if row is not None else None


async def decisions_of(scope: Scope, article_id: str) -> list[DecisionView]:
    """At most one a draft, oldest first."""
    rows = await scope.sql.execute(_DECISIONS, {"tenant": scope.tenant_id, "article": article_id})
    return [DecisionView(**row._asdict()) for row in rows]


def _values(row: Row) -> dict[str, Any]:
    values = row._asdict()
    flags = values.pop("flags")
    decision = values.pop("action")
    return {**values, "decision": decision, "flags": _FLAGS.validate_json(flags) if flags else ()}
