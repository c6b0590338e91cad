"""Articles: submitted once, moved by their workflow, held and ordered by people."""

from collections.abc import Collection, Sequence

from pydantic import TypeAdapter

from citeloop.models.plan import Plan, Stage
from citeloop.models.record import Record
from citeloop.models.work import Measurement, Progress
from citeloop.store.database import Scope
from citeloop.store.errors import NotFound
from citeloop.store.repositories.article_openings import Bought, enter, find_hold, frozen, open_
from citeloop.store.repositories.article_views import (
    ArticleView,
    Census,
    EventView,
    census,
    channel_paused,
    events,
    find,
    list_,
    paused_ahead,
    resolve,
)
from citeloop.store.statements import text

__all__ = [
    "ArticleView",
    "Bought",
    "Census",
    "EventView",
    "NewArticle",
    "any_plan",
    "cancel_lost",
    "cancel_unstarted",
    "census",
    "channel_paused",
    "enter",
    "events",
    "find",
    "find_hold",
    "hold",
    "list_",
    "measured",
    "note",
    "open_",
    "open_ids",
    "paused_ahead",
    "plan",
    "prioritise",
    "reopen",
    "resolve",
    "saved_progress",
    "startable",
    "started",
    "submit",
    "told",
]

_SUBMIT = text("""
INSERT INTO articles (tenant_id, id, campaign_id, brand_id, manifest_id, keyword, locale, kind, priority, position,
                      plan, stage)
SELECT :tenant, p->>'article_id', p->>'campaign_id', p->>'brand_id', p->>'manifest_id', p->>'keyword',
       p->>'locale', p->>'kind', (p->>'priority')::integer, position, p, p->'stages'->>0
FROM unnest(CAST(:plans AS json[]), CAST(:positions AS integer[])) AS given (p, position)
ON CONFLICT DO NOTHING RETURNING id
""")
_PLAN = text("SELECT plan::text AS plan, priority FROM articles WHERE tenant_id = :tenant AND id = :id")
_ANY_PLAN = text("""
SELECT plan::text AS plan, priority FROM articles WHERE tenant_id = :tenant AND campaign_id = :campaign
ORDER BY position, id LIMIT 1
""")
_NOTE = text("""
WITH was AS (
  SELECT state, stage, reason, state = 'cancelled' AND ended_at IS NOT NULL AND NOT :ended AS cancelled
  FROM articles WHERE tenant_id = :tenant AND id = :id FOR NO KEY UPDATE),
noted AS (
  UPDATE articles a SET
    state = :state, stage = :stage, round = :round, reason = :reason,
    channel = CASE WHEN CAST(:channel AS varchar) = '' THEN a.channel ELSE :channel END,
    priority = CASE WHEN coalesce(a.progress->>'priority', a.plan->>'priority')::integer <> :priority
      THEN :priority ELSE a.priority END,
    progress = CAST(:progress AS json), done = CAST(:progress AS json)->'done', updated_at = clock_timestamp(),
    ended_at = CASE WHEN :ended THEN coalesce(a.ended_at, clock_timestamp()) END
  FROM was WHERE a.tenant_id = :tenant AND a.id = :id AND NOT was.cancelled),
told AS (
  INSERT INTO article_events (tenant_id, article_id, kind, stage, state, detail)
  SELECT :tenant, :id, 'note', :stage, :state, :reason FROM was
  WHERE NOT was.cancelled AND (was.state, was.stage, was.reason)
    IS DISTINCT FROM (CAST(:state AS varchar), CAST(:stage AS varchar), CAST(:reason AS varchar)))
SELECT reason FROM was WHERE cancelled
""")
_TOLD = text("""
INSERT INTO article_events (tenant_id, article_id, kind, stage, state, detail)
SELECT tenant_id, id, CAST(:kind AS varchar), stage, state, CAST(:detail AS varchar)
FROM articles WHERE tenant_id = :tenant AND id = :id
""")
_PROGRESS = text("SELECT progress::text FROM articles WHERE tenant_id = :tenant AND id = :id")
_MEASURED = text(
    "UPDATE articles SET measurement = CAST(:measurement AS json), updated_at = clock_timestamp() "
    "WHERE tenant_id = :tenant AND id = :id"
)
_HOLD = text("""
WITH held AS (
  UPDATE articles SET hold = :reason, updated_at = clock_timestamp() WHERE tenant_id = :tenant AND id = :id
    AND hold IS DISTINCT FROM CAST(:reason AS varchar) RETURNING stage, state)
INSERT INTO article_events (tenant_id, article_id, kind, stage, state, detail)
SELECT :tenant, :id, CASE WHEN CAST(:reason AS varchar) IS NULL THEN 'let_go' ELSE 'hold' END, stage, state,
       coalesce(CAST(:reason AS varchar), '') FROM held
""")
_STARTED = text("""
UPDATE articles SET run_id = :run_id, started_at = coalesce(started_at, clock_timestamp()),
  updated_at = clock_timestamp() WHERE tenant_id = :tenant AND id = :id
RETURNING CASE WHEN state = 'cancelled' AND ended_at IS NOT NULL THEN reason END
""")
_REOPEN = text("""
WITH reopened AS (
  UPDATE articles SET state = 'submitted', ended_at = NULL, reason = '', updated_at = clock_timestamp()
  WHERE tenant_id = :tenant AND id = :id AND ended_at IS NOT NULL RETURNING stage)
INSERT INTO article_events (tenant_id, article_id, kind, stage, state, detail)
SELECT :tenant, :id, 'retry', stage, 'submitted', '' FROM reopened
""")
_STARTABLE = text("""
SELECT a.plan::text AS plan, a.priority FROM articles a
JOIN campaigns c ON c.tenant_id = a.tenant_id AND c.id = a.campaign_id
JOIN tenants t ON t.id = a.tenant_id
WHERE a.tenant_id = :tenant AND a.campaign_id = :campaign AND a.started_at IS NULL AND a.ended_at IS NULL
  AND a.hold IS NULL AND c.hold IS NULL AND t.hold IS NULL
ORDER BY a.priority, a.position LIMIT :limit
""")
_OPEN_IDS = text("""
SELECT id FROM articles
WHERE tenant_id = :tenant AND campaign_id = :campaign AND started_at IS NOT NULL AND ended_at IS NULL AND id > :after
  AND (CAST(:stages AS varchar[]) IS NULL OR stage = ANY(CAST(:stages AS varchar[])))
ORDER BY id LIMIT :limit
""")
_PRIORITISE = text(
    "UPDATE articles SET priority = :priority, updated_at = clock_timestamp() WHERE tenant_id = :tenant AND id = :id"
)
_CANCELLED = """
WITH cancelled AS (
  UPDATE articles SET state = 'cancelled', reason = :reason, ended_at = clock_timestamp(),
    updated_at = clock_timestamp()
  WHERE tenant_id = :tenant AND {which} AND ended_at IS NULL
  RETURNING id, stage),
told AS (
  INSERT INTO article_events (tenant_id, article_id, kind, stage, state, detail)
  SELECT :tenant, id, 'note', stage, 'cancelled', :reason FROM cancelled)
SELECT count(*) FROM cancelled
"""
_CANCEL_UNSTARTED = text(_CANCELLED.format(which="campaign_id = :campaign AND started_at IS NULL"))
_CANCEL_LOST = text(_CANCELLED.format(which="id = :id"))
_PROGRESS_OF = TypeAdapter(Progress)


class NewArticle(Record):
    plan: Plan
    position: int


async def submit(scope: Scope, articles: Sequence[NewArticle]) -> tuple[str, ...]:
    """The ids that are new, in one statement; those already there are left alone."""
    values = {
        "tenant": scope.tenant_id,
        "plans": [article.plan.model_dump_json() for article in articles],
        "positions": [article.position for article in articles],
    }
    return tuple(row.id for row in await scope.sql.execute(_SUBMIT, values))


async def plan(scope: Scope, article_id: str) -> Plan:
    """As frozen, with the priority of now. NotFound."""
    row = (await scope.sql.execute(_PLAN, {"tenant": scope.tenant_id, "id": article_id})).one_or_none()
    if row is None:
        raise NotFound(f"no article {article_id}")
    return frozen(row.plan, row.priority)


async def any_plan(scope: Scope, campaign_id: str) -> Plan | None:
    """The plan of the campaign's first article."""
    row = (await scope.sql.execute(_ANY_PLAN, {"tenant": scope.tenant_id, "campaign": campaign_id})).one_or_none()
    return frozen(row.plan, row.priority) if row is not None else None


async def note(scope: Scope, article_id: str, progress: Progress) -> str | None:
    """Where the workflow says it is; an event when state, stage or reason changed.

    Its priority counts only where it has changed since the last note: the row's may be newer.
    A cancelled article takes only another end, until it is reopened: then why it was cancelled, else None.
    """
    values = {
        "tenant": scope.tenant_id,
        "id": article_id,
        **progress.model_dump(mode="json", include={"state", "stage", "round", "reason", "channel", "priority"}),
        "progress": progress.model_dump_json(),
        "ended": progress.state.ended,
    }
    cancelled: str | None = (await scope.sql.execute(_NOTE, values)).scalar_one_or_none()
    return cancelled


async def told(scope: Scope, article_id: str, kind: str, detail: str) -> None:
    """An event that changes nothing about where the article stands."""
    await scope.sql.execute(_TOLD, {"tenant": scope.tenant_id, "id": article_id, "kind": kind, "detail": detail})


async def saved_progress(scope: Scope, article_id: str) -> Progress | None:
    """What `note` wrote last; None before the first."""
    found = (await scope.sql.execute(_PROGRESS, {"tenant": scope.tenant_id, "id": article_id})).scalar_one_or_none()
    return _PROGRESS_OF.validate_json(found) if found is not None else None


async def measured(scope: Scope, article_id: str, measurement: Measurement) -> None:
    values = {"tenant": scope.tenant_id, "id": article_id, "measurement": measurement.model_dump_json()}
    await scope.sql.execute(_MEASURED, values)


async def hold(scope: Scope, article_id: str, reason: str | None) -> None:
    """Nothing is bought for this article while a reason stands; None lets it go on."""
    await scope.sql.execute(_HOLD, {"tenant": scope.tenant_id, "id": article_id, "reason": reason})


async def started(scope: Scope, article_id: str, run_id: str) -> str | None:
    """Its workflow runs; the first start's time stays. Why it was cancelled before that, and the run is to end."""
    values = {"tenant": scope.tenant_id, "id": article_id, "run_id": run_id}
    cancelled: str | None = (await scope.sql.execute(_STARTED, values)).scalar_one_or_none()
    return cancelled


async def reopen(scope: Scope, article_id: str) -> None:
    """An ended article is to run again; without it a new run's stages would not show."""
    await scope.sql.execute(_REOPEN, {"tenant": scope.tenant_id, "id": article_id})


async def startable(scope: Scope, campaign_id: str, limit: int) -> list[Plan]:
    """Not started and held by nobody, by priority, then in the order of submission."""
    values = {"tenant": scope.tenant_id, "campaign": campaign_id, "limit": limit}
    return [frozen(row.plan, row.priority) for row in await scope.sql.execute(_STARTABLE, values)]


async def open_ids(
    scope: Scope, campaign_id: str, *, after: str | None, limit: int, stages: Collection[Stage] | None = None
) -> list[str]:
    """Started and not ended, by id; only those that entered one of `stages` last, if given."""
    values = {
        "tenant": scope.tenant_id,
        "campaign": campaign_id,
        "after": after or "",
        "limit": limit,
        "stages": None if stages is None else [str(stage) for stage in stages],
    }
    return [row.id for row in await scope.sql.execute(_OPEN_IDS, values)]


async def prioritise(scope: Scope, article_id: str, priority: int) -> None:
    await scope.sql.execute(_PRIORITISE, {"tenant": scope.tenant_id, "id": article_id, "priority": priority})


async def cancel_unstarted(scope: Scope, campaign_id: str, reason: str) -> int:
    """How many of the campaign's articles never start now."""
    values = {"tenant": scope.tenant_id, "campaign": campaign_id, "reason": reason}
    return int((await scope.sql.execute(_CANCEL_UNSTARTED, values)).scalar_one())


async def cancel_lost(scope: Scope, article_id: str, reason: str) -> bool:
    """Nobody is left to note its end: it has no open run. False: it had ended by itself."""
    values = {"tenant": scope.tenant_id, "id": article_id, "reason": reason}
    return bool((await scope.sql.execute(_CANCEL_LOST, values)).scalar_one())
