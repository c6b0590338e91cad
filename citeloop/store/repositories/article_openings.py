"""A stage's activity begins on an article: one statement finds its hold, what it bought, its plan, and enters it."""

# ruff: noqa: S608 - statements are put together from constants only

import json
from enum import Enum
from functools import lru_cache

from citeloop.models.plan import Plan
from citeloop.models.work import Held, Step
from citeloop.store.database import Scope
from citeloop.store.errors import NotFound
from citeloop.store.statements import Row, text

_HOLDS = "a.hold AS article, c.hold AS campaign, t.hold AS tenant"
_ARTICLE = """
FROM articles a JOIN tenants t ON t.id = a.tenant_id
LEFT JOIN campaigns c ON c.tenant_id = a.tenant_id AND c.id = a.campaign_id
WHERE a.tenant_id = :tenant AND a.id = :id
"""
_ENTER = text(f"""
WITH asked AS (
  SELECT a.plan::text AS plan, a.priority, a.state, a.stage, {_HOLDS},
         EXISTS (SELECT 1 FROM purchases p WHERE p.tenant_id = a.tenant_id AND p.id = :purchase) AS bought
  {_ARTICLE} FOR NO KEY UPDATE OF a),
entered AS (
  UPDATE articles a SET
    state = 'running', stage = :stage, round = :round, channel = :channel, reason = '',
    done = CAST(:done AS json), attempts = a.attempts + CAST(:calls AS integer),
    started_at = coalesce(a.started_at, clock_timestamp()), updated_at = clock_timestamp()
  FROM asked
  WHERE a.tenant_id = :tenant AND a.id = :id AND a.ended_at IS NULL AND NOT asked.bought
    AND (NOT :heeding OR coalesce(asked.article, asked.campaign, asked.tenant) IS NULL)
  RETURNING a.id),
told AS (
  INSERT INTO article_events (tenant_id, article_id, kind, stage, state, detail)
  SELECT :tenant, :id, 'enter', :stage, 'running', CAST(:detail AS varchar) FROM asked, entered
  WHERE (asked.state, asked.stage) IS DISTINCT FROM ('running', CAST(:stage AS varchar))
    OR CAST(:attempt AS integer) = 1)
SELECT plan, priority, article, campaign, tenant, bought FROM asked
""")
_FIND_HOLD = text(f"SELECT {_HOLDS} {_ARTICLE}")
_OWN_HANDS = frozenset({"rules", "card"})
"""Channels that are no provider: what they do is no call."""


class Bought(Enum):
    """The stage was paid for before: its answer is kept under the purchase's id."""

    BEFORE = "before"


async def enter(scope: Scope, step: Step, *, channel: str, attempt: int) -> Plan:
    """A stage's activity begins; its plan. An article that has ended meanwhile stays ended. NotFound."""
    row = await _entered(scope, step, channel=channel, attempt=attempt, purchase_id="", heeding=False)
    return frozen(row.plan, row.priority)


async def open_(scope: Scope, step: Step, *, purchase_id: str, channel: str, attempt: int) -> Plan | Held | Bought:
    """The plan to buy by, with the article entered; or why nothing is to be bought. NotFound."""
    row = await _entered(scope, step, channel=channel, attempt=attempt, purchase_id=purchase_id, heeding=True)
    return held(row) or (Bought.BEFORE if row.bought else frozen(row.plan, row.priority))


async def find_hold(scope: Scope, article_id: str) -> Held | None:
    """The nearest hold: of the article, its campaign or its tenant. NotFound."""
    row = (await scope.sql.execute(_FIND_HOLD, {"tenant": scope.tenant_id, "id": article_id})).one_or_none()
    if row is None:
        raise NotFound(f"no article {article_id}")
    return held(row)


def held(row: Row) -> Held | None:
    if row.article is not None:
        return Held(by="article", reason=row.article)
    if row.campaign is not None:
        return Held(by="campaign", reason=row.campaign)
    return Held(by="tenant", reason=row.tenant) if row.tenant is not None else None


def frozen(written: str, priority: int) -> Plan:
    """As frozen, with the priority of now."""
    plan = _read(written)
    return plan if plan.priority == priority else plan.model_copy(update={"priority": priority})


@lru_cache(maxsize=512)
def _read(written: str) -> Plan:
    return Plan.model_validate_json(written)


async def _entered(scope: Scope, step: Step, *, channel: str, attempt: int, purchase_id: str, heeding: bool) -> Row:
    values = {
        "tenant": scope.tenant_id,
        "id": step.article_id,
        "purchase": purchase_id,
        "heeding": heeding,
        "stage": str(step.stage),
        "round": step.round,
        "channel": channel,
        "calls": 0 if channel in _OWN_HANDS else 1,
        "attempt": attempt,
        "detail": f"by {channel}",
        "done": json.dumps(step.done),
    }
    row = (await scope.sql.execute(_ENTER, values)).one_or_none()
    if row is None:
        raise NotFound(f"no article {step.article_id}")
    return row
