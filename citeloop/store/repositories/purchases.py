"""Paid answers by purchase id: stored before they are used, looked up before they are bought."""

from datetime import UTC, datetime

from pydantic import AwareDatetime, Field, JsonValue, TypeAdapter

from citeloop.models.money import Money
from citeloop.models.record import Record
from citeloop.store.database import Scope
from citeloop.store.statements import text

_GET = text("""
SELECT id, channel, stage, article_id, model, request_id, reply::text AS reply, cost_micros, cost_currency,
       input_tokens, output_tokens, cached_tokens, searches, created_at
FROM purchases WHERE tenant_id = :tenant AND id = :id
""")
_PUT = text("""
WITH bought AS (
  INSERT INTO purchases (tenant_id, id, channel, stage, article_id, model, request_id, reply, cost_micros,
                         cost_currency, input_tokens, output_tokens, cached_tokens, searches, created_at)
  VALUES (:tenant, :id, :channel, :stage, :article_id, :model, :request_id, CAST(:reply AS json), :micros,
          :currency, :input_tokens, :output_tokens, :cached_tokens, :searches, :created_at)
  ON CONFLICT DO NOTHING RETURNING tenant_id, article_id),
used AS (
  INSERT INTO usage_daily (tenant_id, day, channel, currency, calls, cost_micros, input_tokens, output_tokens,
                           cached_tokens, searches)
  SELECT tenant_id, CAST(:day AS date), :channel, :currency, 1, :micros, :input_tokens, :output_tokens,
         :cached_tokens, :searches FROM bought
  ON CONFLICT (tenant_id, day, channel, currency) DO UPDATE SET
    calls = usage_daily.calls + 1,
    cost_micros = usage_daily.cost_micros + excluded.cost_micros,
    input_tokens = usage_daily.input_tokens + excluded.input_tokens,
    output_tokens = usage_daily.output_tokens + excluded.output_tokens,
    cached_tokens = usage_daily.cached_tokens + excluded.cached_tokens,
    searches = usage_daily.searches + excluded.searches),
billed AS (
  UPDATE articles a SET
    cost_micros = a.cost_micros + CASE WHEN a.cost_micros = 0 OR a.cost_currency = :currency THEN :micros ELSE 0 END,
    cost_currency = CASE WHEN a.cost_micros = 0 AND :micros <> 0 THEN :currency ELSE a.cost_currency END
  FROM bought WHERE a.tenant_id = bought.tenant_id AND a.id = bought.article_id)
SELECT count(*) FROM bought
""")
_FAULTS = text("SELECT count(*) FROM faults WHERE tenant_id = :tenant AND purchase_id = :id AND counts")
_FAULT = text("""
WITH noted AS (
  INSERT INTO faults (tenant_id, purchase_id, article_id, channel, fault, message, counts)
  VALUES (:tenant, :id, :article, :channel, :fault, :message, :counts)),
blamed AS (
  UPDATE articles SET faults = faults + 1 WHERE tenant_id = :tenant AND id = :article AND :counts)
SELECT count(*) FROM faults WHERE tenant_id = :tenant AND purchase_id = :id AND counts
""")
_REPLY = TypeAdapter(dict[str, JsonValue])
_MESSAGE_LIMIT = 1000


class Purchase(Record):
    id: str
    channel: str
    stage: str
    article_id: str | None
    model: str
    request_id: str
    reply: dict[str, JsonValue]
    cost: Money
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """Of the input tokens: read from the provider's prompt cache."""
    searches: int = 0
    created_at: AwareDatetime = Field(default_factory=lambda: datetime.now(UTC))


async def get(scope: Scope, purchase_id: str) -> Purchase | None:
    row = (await scope.sql.execute(_GET, {"tenant": scope.tenant_id, "id": purchase_id})).one_or_none()
    if row is None:
        return None
    values = row._asdict()
    cost = Money(micros=values.pop("cost_micros"), currency=values.pop("cost_currency"))
    return Purchase(**{**values, "reply": _REPLY.validate_json(row.reply)}, cost=cost)


async def put(scope: Scope, purchase: Purchase) -> bool:
    """True when it is new. The day's usage and the article's cost grow with it, in the same statement.

    An article's cost has one currency, that of its first paid call; usage has them all.
    """
    values = {
        "tenant": scope.tenant_id,
        **purchase.model_dump(exclude={"reply", "cost"}),
        "reply": _REPLY.dump_json(purchase.reply).decode(),
        "micros": purchase.cost.micros,
        "currency": purchase.cost.currency,
        "day": purchase.created_at.astimezone(UTC).date(),
    }
    return bool((await scope.sql.execute(_PUT, values)).scalar_one())


async def faults(scope: Scope, purchase_id: str) -> int:
    """Ordinary faults so far; waiting for a limit is none."""
    found = await scope.sql.execute(_FAULTS, {"tenant": scope.tenant_id, "id": purchase_id})
    return int(found.scalar_one())


async def fault(
    scope: Scope,
    purchase_id: str,
    *,
    article_id: str | None,
    channel: str,
    fault: str,
    message: str,
    counts: bool,
) -> int:
    """Record a failed call; the ordinary faults so far, this one included if it counts."""
    values = {
        "tenant": scope.tenant_id,
        "id": purchase_id,
        "article": article_id,
        "channel": channel,
        "fault": str(fault),
        "message": message[:_MESSAGE_LIMIT],
        "counts": counts,
    }
    earlier = (await scope.sql.execute(_FAULT, values)).scalar_one()
    return int(earlier) + (1 if counts else 0)
