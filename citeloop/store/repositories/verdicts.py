"""What the rules said of a draft."""

from citeloop.models.work import Verdict
from citeloop.store.database import Scope
from citeloop.store.statements import text

_PUT = text("""
INSERT INTO verdicts (tenant_id, draft_id, article_id, draft_digest, outcome, flags)
VALUES (:tenant, :draft_id, :article, :draft_digest, :outcome, CAST(:flags AS json)) ON CONFLICT DO NOTHING
""")
_OF_DRAFT = text(
    "SELECT draft_id, draft_digest, outcome, flags FROM verdicts WHERE tenant_id = :tenant AND draft_id = :draft"
)


async def put(scope: Scope, article_id: str, verdict: Verdict) -> None:
    """The first verdict on a draft stays."""
    values = verdict.model_dump(mode="json", include={"draft_id", "draft_digest", "outcome"})
    flags = "[" + ",".join(flag.model_dump_json() for flag in verdict.flags) + "]"
    await scope.sql.execute(_PUT, {"tenant": scope.tenant_id, "article": article_id, "flags": flags, **values})


async def of_draft(scope: Scope, draft_id: str) -> Verdict | None:
    row = (await scope.sql.execute(_OF_DRAFT, {"tenant": scope.tenant_id, "draft": draft_id})).one_or_none()
    return Verdict.model_validate(row._asdict()) if row is not None else None
