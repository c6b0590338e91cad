"""Campaigns: what was asked for, where it stands, and which measuring windows are closed."""

# ruff: noqa: S608 - statements are put together from constants only

from datetime import datetime

from citeloop.models.plan import State
from citeloop.models.record import Record
from citeloop.models.request import CampaignRequest
from citeloop.models.work import Held
from citeloop.store.database import Scope
from citeloop.store.statements import Row, text

_CREATE = text(
    "INSERT INTO campaigns (tenant_id, id, name, brand_id, manifest_id, request, fingerprint, state) "
    "VALUES (:tenant, :id, :name, :brand_id, :manifest_id, CAST(:request AS json), :fingerprint, 'submitted') "
    "ON CONFLICT DO NOTHING RETURNING id"
)
_VIEW = """
SELECT c.id, c.name, c.state, c.hold, c.brand_id, c.manifest_id, c.baseline_at, c.created_at, c.fingerprint,
       c.request::text AS request, n.counts, coalesce(n.total, 0) AS total
FROM campaigns c LEFT JOIN LATERAL (
  SELECT jsonb_object_agg(state, number) AS counts, sum(number)::integer AS total FROM (
    SELECT state, count(*) AS number FROM articles a
    WHERE a.tenant_id = c.tenant_id AND a.campaign_id = c.id GROUP BY state) by_state) n ON true
WHERE c.tenant_id = :tenant
"""
_GET = text(_VIEW + "AND c.id = :id")
_LIST = text(
    _VIEW + "AND (CAST(:after AS varchar) IS NULL OR (c.created_at, c.id) < "
    "(SELECT created_at, id FROM campaigns WHERE tenant_id = :tenant AND id = :after)) "
    "ORDER BY c.created_at DESC, c.id DESC LIMIT :limit"
)
_HOLD = text(
    "UPDATE campaigns SET hold = :reason, updated_at = now() WHERE tenant_id = :tenant AND id = :id "
    "AND (CAST(:reason AS varchar) IS NOT NULL OR state <> 'cancelled')"
)
_HAND_DOWN = text("""
WITH was AS (
  SELECT hold FROM campaigns WHERE tenant_id = :tenant AND id = :id AND state = 'cancelled' AND hold IS NOT NULL
  FOR NO KEY UPDATE),
free AS (
  UPDATE campaigns c SET hold = NULL, updated_at = now() FROM was WHERE c.tenant_id = :tenant AND c.id = :id)
UPDATE articles a SET hold = was.hold, updated_at = now() FROM was
WHERE a.tenant_id = :tenant AND a.campaign_id = :id AND a.ended_at IS NULL AND a.hold IS NULL
""")
_NOTE = text("UPDATE campaigns SET state = :state, updated_at = now() WHERE tenant_id = :tenant AND id = :id")
_FIND_HOLD = text(
    "SELECT c.hold, t.hold AS tenant_hold FROM campaigns c JOIN tenants t ON t.id = c.tenant_id "
    "WHERE c.tenant_id = :tenant AND c.id = :id"
)
_PRIORITISE = text(
    "UPDATE articles SET priority = :priority, updated_at = now() "
    "WHERE tenant_id = :tenant AND campaign_id = :id AND started_at IS NULL AND ended_at IS NULL"
)
_CLOSE = text(
    'INSERT INTO campaign_windows (tenant_id, campaign_id, "window") VALUES (:tenant, :id, :window) '
    "ON CONFLICT DO NOTHING"
)
_BASELINE = text(
    "UPDATE campaigns SET baseline_at = coalesce(baseline_at, now()), updated_at = now() "
    "WHERE tenant_id = :tenant AND id = :id"
)
_WINDOWS = text(
    'SELECT "window", closed_at FROM campaign_windows WHERE tenant_id = :tenant AND campaign_id = :id '
    "ORDER BY closed_at"
)
_READY = text(
    "SELECT baseline_at IS NOT NULL OR state = 'cancelled' FROM campaigns WHERE tenant_id = :tenant AND id = :id"
)


class NewCampaign(Record):
    id: str
    name: str
    brand_id: str
    manifest_id: str
    request: CampaignRequest
    fingerprint: str


class CampaignView(Record):
    id: str
    name: str
    state: str
    """submitted, running, paused, cancelled or done."""
    hold: str | None
    brand_id: str
    manifest_id: str
    baseline_at: datetime | None
    created_at: datetime
    fingerprint: str
    counts: dict[State, int]
    total: int
    request: CampaignRequest


async def create(scope: Scope, campaign: NewCampaign) -> bool:
    """False if the id is taken; nothing is changed then."""
    values = campaign.model_dump(exclude={"request"})
    values |= {"tenant": scope.tenant_id, "request": campaign.request.model_dump_json()}
    return bool(await scope.sql.execute(_CREATE, values))


async def get(scope: Scope, campaign_id: str) -> CampaignView | None:
    row = (await scope.sql.execute(_GET, {"tenant": scope.tenant_id, "id": campaign_id})).one_or_none()
    return _view(row) if row is not None else None


async def list_(scope: Scope, *, after: str | None, limit: int) -> list[CampaignView]:
    """Newest first; `after` is the last id of the page before."""
    rows = await scope.sql.execute(_LIST, {"tenant": scope.tenant_id, "after": after, "limit": limit})
    return [_view(row) for row in rows]


async def hold(scope: Scope, campaign_id: str, reason: str | None) -> None:
    """None lets it go on, unless it is cancelled: a late resume must not set its articles free."""
    await scope.sql.execute(_HOLD, {"tenant": scope.tenant_id, "id": campaign_id, "reason": reason})


async def hand_hold_down(scope: Scope, campaign_id: str) -> None:
    """A cancelled campaign's hold becomes that of each of its open articles, so that a single one can be retried."""
    await scope.sql.execute(_HAND_DOWN, {"tenant": scope.tenant_id, "id": campaign_id})


async def find_hold(scope: Scope, campaign_id: str) -> Held | None:
    """Of the campaign or its tenant."""
    row = (await scope.sql.execute(_FIND_HOLD, {"tenant": scope.tenant_id, "id": campaign_id})).one_or_none()
    if row is None:
        return None
    if row.hold is not None:
        return Held(by="campaign", reason=row.hold)
    return Held(by="tenant", reason=row.tenant_hold) if row.tenant_hold is not None else None


async def note(scope: Scope, campaign_id: str, state: str) -> None:
    await scope.sql.execute(_NOTE, {"tenant": scope.tenant_id, "id": campaign_id, "state": str(state)})


async def prioritise(scope: Scope, campaign_id: str, priority: int) -> None:
    """Its articles that are not started; the started ones are told by signal."""
    await scope.sql.execute(_PRIORITISE, {"tenant": scope.tenant_id, "id": campaign_id, "priority": priority})


async def close_window(scope: Scope, campaign_id: str, window: str) -> None:
    """`baseline` opens the way to the first publication; any window is closed once."""
    values = {"tenant": scope.tenant_id, "id": campaign_id}
    await scope.sql.execute(_CLOSE, {**values, "window": window})
    if window == "baseline":
        await scope.sql.execute(_BASELINE, values)


async def closed_windows(scope: Scope, campaign_id: str) -> dict[str, datetime]:
    rows = await scope.sql.execute(_WINDOWS, {"tenant": scope.tenant_id, "id": campaign_id})
    return {row.window: row.closed_at for row in rows}


async def baseline_ready(scope: Scope, campaign_id: str) -> bool:
    """Whether its articles may be published. A cancelled campaign asks no more, and one of them may be retried."""
    ready = await scope.sql.execute(_READY, {"tenant": scope.tenant_id, "id": campaign_id})
    return bool(ready.scalar_one_or_none())


def _view(row: Row) -> CampaignView:
    values = row._asdict()
    request = CampaignRequest.model_validate_json(values.pop("request"))
    counts = values.pop("counts") or {}
    return CampaignView(**values, request=request, counts={State(state): n for state, n in counts.items()})
