"""What was accepted and waits for its workflow."""

from citeloop.models.plan import Plan
from citeloop.store.database import Scope
from citeloop.store.statements import text

_UNSTARTED_PLAN = text("""
SELECT a.plan::text AS plan, a.priority FROM articles a JOIN tenants t ON t.id = a.tenant_id
WHERE a.tenant_id = :tenant AND a.id = :id AND a.started_at IS NULL AND a.ended_at IS NULL
  AND a.hold IS NULL AND t.hold IS NULL
""")
_UNSTARTED_CAMPAIGN = text("""
SELECT true FROM campaigns c JOIN tenants t ON t.id = c.tenant_id
WHERE c.tenant_id = :tenant AND c.id = :id AND c.state = 'submitted' AND c.hold IS NULL AND t.hold IS NULL
""")
_BEGAN = text("""
UPDATE campaigns SET state = CASE WHEN state = 'submitted' THEN 'running' ELSE state END,
  updated_at = clock_timestamp() WHERE tenant_id = :tenant AND id = :id
RETURNING CASE WHEN state = 'cancelled' THEN coalesce(hold, 'cancelled') END
""")


async def unstarted_plan(scope: Scope, article_id: str) -> Plan | None:
    """None: it runs, has ended or is held; then the start is not ours to make."""
    row = (await scope.sql.execute(_UNSTARTED_PLAN, {"tenant": scope.tenant_id, "id": article_id})).one_or_none()
    if row is None:
        return None
    return Plan.model_validate_json(row.plan).model_copy(update={"priority": row.priority})


async def campaign_waits(scope: Scope, campaign_id: str) -> bool:
    """Whether it is still only submitted, and nothing holds it."""
    values = {"tenant": scope.tenant_id, "id": campaign_id}
    return bool((await scope.sql.execute(_UNSTARTED_CAMPAIGN, values)).scalar_one_or_none())


async def campaign_began(scope: Scope, campaign_id: str) -> str | None:
    """Submitted becomes running; what was paused or cancelled meanwhile stays that.

    Why it was cancelled before its run began, which is to end then; else None.
    """
    values = {"tenant": scope.tenant_id, "id": campaign_id}
    cancelled: str | None = (await scope.sql.execute(_BEGAN, values)).scalar_one_or_none()
    return cancelled
