"""What the doors show of articles: one row each, from one statement."""

# ruff: noqa: S608 - statements are put together from constants only

from collections.abc import Sequence
from datetime import datetime

from citeloop.models.money import Money
from citeloop.models.plan import Kind, Stage, State
from citeloop.models.record import Record
from citeloop.models.work import Measurement, PublicationState
from citeloop.store.database import Scope
from citeloop.store.errors import NotFound
from citeloop.store.statements import Row, Statement, text

_PAUSED = """(
  SELECT name, CASE WHEN paused THEN pause_reason ELSE 'its rate is set to 0' END AS why
  FROM channels WHERE paused OR stopped)"""
_VIEW = f"""
SELECT a.id, a.campaign_id, a.manifest_id, a.keyword, a.locale, a.kind, a.priority, a.state, a.stage, a.round,
       a.channel, a.writer, a.attempts, a.faults, a.reason, a.hold, a.measurement, a.cost_micros, a.cost_currency,
       a.run_id, a.submitted_at, a.started_at, a.updated_at, a.ended_at,
       coalesce(a.done, a.progress->'done') AS done, p.urls, p.warnings, ch.why AS paused
FROM articles a LEFT JOIN LATERAL (
  SELECT json_agg(json_build_array(site, url, state) ORDER BY site) AS urls,
         json_agg(site || ': ' || (reading->'problems'->>0) ORDER BY site)
           FILTER (WHERE state = 'published' AND reading->>'readable' = 'false') AS warnings
  FROM publications WHERE tenant_id = a.tenant_id AND article_id = a.id) p ON true
LEFT JOIN {_PAUSED} ch ON ch.name = a.channel AND a.stage <> 'publish'
  AND a.state IN ('running', 'published') AND a.reason = '' AND a.hold IS NULL
WHERE a.tenant_id = :tenant
"""
_GET = text(_VIEW + "AND a.id = :id")
_FILTERS = """
  AND (CAST(:state AS varchar) IS NULL OR a.state = :state)
  AND (CAST(:stage AS varchar) IS NULL OR a.stage = :stage)
  AND (CAST(:locale AS varchar) IS NULL OR a.locale = :locale)
"""
_OF_CAMPAIGN = text(
    _VIEW + _FILTERS + "AND a.campaign_id = :campaign AND (CAST(:after AS varchar) IS NULL OR (a.position, a.id) > "
    "(SELECT position, id FROM articles WHERE tenant_id = :tenant AND id = :after)) "
    "ORDER BY a.position, a.id LIMIT :limit"
)
_NEWEST = text(
    _VIEW + _FILTERS + "AND (CAST(:after AS varchar) IS NULL OR (a.submitted_at, a.id) < "
    "(SELECT submitted_at, id FROM articles WHERE tenant_id = :tenant AND id = :after)) "
    "ORDER BY a.submitted_at DESC, a.id DESC LIMIT :limit"
)
_BY_ID = text("SELECT id FROM articles WHERE tenant_id = :tenant AND id = upper(:text)")
_BY_KEYWORD = text("SELECT id FROM articles WHERE tenant_id = :tenant AND keyword = :text ORDER BY id LIMIT 4")
_BY_PREFIX = text(
    "SELECT id FROM articles WHERE tenant_id = :tenant AND id >= upper(:text) AND starts_with(id, upper(:text)) "
    "ORDER BY id LIMIT 4"
)
_EVENTS = text("""
SELECT seq, at, kind, stage, state, detail FROM article_events
WHERE tenant_id = :tenant AND article_id = :id AND seq > :after ORDER BY seq LIMIT :limit
""")
_AHEAD = text(f"""
SELECT DISTINCT ch.name, ch.why
FROM articles a
CROSS JOIN LATERAL json_each(a.plan->'routes') AS stage
CROSS JOIN LATERAL json_array_elements(stage.value) AS route
JOIN {_PAUSED} ch ON ch.name = route->>'name'
WHERE a.tenant_id = :tenant AND a.id = ANY(CAST(:ids AS varchar[])) AND a.ended_at IS NULL
  AND stage.key <> 'publish' AND NOT coalesce(a.done, a.progress->'done', '[]')::jsonb ? stage.key
ORDER BY ch.name
""")
_CENSUS = text("""
SELECT count(*) FILTER (WHERE started_at IS NULL) AS waiting,
       count(*) FILTER (WHERE started_at IS NOT NULL AND state IN ('submitted', 'running', 'paused')) AS active,
       count(*) FILTER (WHERE started_at IS NOT NULL) AS open,
       count(*) FILTER (WHERE state = 'scheduled') AS scheduled
FROM articles WHERE tenant_id = :tenant AND campaign_id = :campaign AND ended_at IS NULL
""")
_LEAST_PREFIX = 4


class ArticleView(Record):
    id: str
    campaign_id: str | None
    manifest_id: str
    keyword: str
    locale: str
    kind: Kind
    priority: int
    state: State
    stage: Stage
    round: int
    channel: str
    writer: str
    """The channel that wrote the latest draft."""
    attempts: int
    """Calls to providers and sites, failed ones included."""
    faults: int
    reason: str
    """Why it stands where it stands; where nothing else is to be said, why its channel is paused."""
    hold: str | None
    urls: tuple[tuple[str, str, PublicationState], ...]
    """(site, url, state) of every publication; the url is empty until the site has told it."""
    warnings: tuple[str, ...] = ()
    """`site: why`, for each page that answer engines cannot read: monitoring it would be pointless."""
    measurement: Measurement | None
    cost: Money
    run_id: str | None
    submitted_at: datetime
    started_at: datetime | None
    updated_at: datetime
    ended_at: datetime | None
    done: tuple[Stage, ...]


class EventView(Record):
    seq: int
    at: datetime
    kind: str
    """enter, note, hold, let_go, retry, decision, decision_ignored, callback or correction."""
    stage: str
    state: str
    detail: str


class Census(Record):
    """Of a campaign's articles that have not ended."""

    waiting: int
    """Not started."""
    active: int
    """Started, and neither produced nor waiting for a person."""
    open: int
    """Started."""
    scheduled: int
    """Approved, and waiting for their time."""


async def get(scope: Scope, article_id: str) -> ArticleView | None:
    """By its whole id, in one statement."""
    row = (await scope.sql.execute(_GET, {"tenant": scope.tenant_id, "id": article_id})).one_or_none()
    return _view(row) if row is not None else None


async def find(scope: Scope, text_: str) -> ArticleView | None:
    """By id, unique beginning of an id, or exact keyword. NotFound when several match."""
    article_id = await _resolved(scope, text_)
    if article_id is None:
        return None
    return _view((await scope.sql.execute(_GET, {"tenant": scope.tenant_id, "id": article_id})).one())


async def resolve(scope: Scope, text_: str) -> str:
    """The one id that `text_` means. NotFound when nothing or several match."""
    article_id = await _resolved(scope, text_)
    if article_id is None:
        raise NotFound(f"{text_!r} is no article")
    return article_id


async def list_(
    scope: Scope,
    *,
    campaign_id: str | None = None,
    state: State | None = None,
    stage: Stage | None = None,
    locale: str | None = None,
    after: str | None = None,
    limit: int = 100,
) -> list[ArticleView]:
    """A campaign's in its own order, else the newest first; `after` is the last id of the page before."""
    values = {
        "tenant": scope.tenant_id,
        "state": str(state) if state is not None else None,
        "stage": str(stage) if stage is not None else None,
        "locale": locale,
        "after": after,
        "limit": limit,
    }
    if campaign_id is None:
        return [_view(row) for row in await scope.sql.execute(_NEWEST, values)]
    return [_view(row) for row in await scope.sql.execute(_OF_CAMPAIGN, {**values, "campaign": campaign_id})]


async def events(scope: Scope, article_id: str, *, after: int = 0, limit: int = 200) -> list[EventView]:
    values = {"tenant": scope.tenant_id, "id": article_id, "after": after, "limit": limit}
    return [EventView(**row._asdict()) for row in await scope.sql.execute(_EVENTS, values)]


async def paused_ahead(scope: Scope, ids: Sequence[str]) -> list[str]:
    """`channel is paused: why`, for each paused channel that one of these articles may still come to."""
    found = await scope.sql.execute(_AHEAD, {"tenant": scope.tenant_id, "ids": list(ids)})
    return [pause(row.name, row.why) for row in found]


def pause(channel: str, why: str) -> str:
    return f"{channel} is paused: {why.removeprefix(f'{channel}: ')}"


async def census(scope: Scope, campaign_id: str) -> Census:
    row = (await scope.sql.execute(_CENSUS, {"tenant": scope.tenant_id, "campaign": campaign_id})).one()
    return Census(**row._asdict())


async def _resolved(scope: Scope, text_: str) -> str | None:
    for statement in (_BY_ID, _BY_KEYWORD, _BY_PREFIX):
        if statement is _BY_PREFIX and len(text_) < _LEAST_PREFIX:
            break
        found = await _ids(scope, statement, text_)
        if len(found) > 1:
            more = ", …" if len(found) > 3 else ""  # noqa: PLR2004 - one more than is shown
            raise NotFound(f"{text_!r} means several articles: {', '.join(found[:3])}{more}")
        if found:
            return found[0]
    return None


async def _ids(scope: Scope, statement: Statement, text_: str) -> list[str]:
    return [row.id for row in await scope.sql.execute(statement, {"tenant": scope.tenant_id, "text": text_})]


def _view(row: Row) -> ArticleView:
    values = row._asdict()
    cost = Money(micros=values.pop("cost_micros"), currency=values.pop("cost_currency"))
    for empty in ("urls", "done", "warnings"):
        values[empty] = values[empty] or ()
    if (why := values.pop("paused")) is not None:
        values["reason"] = pause(row.channel, why)
    return ArticleView.model_validate({**values, "cost": cost})
