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
# A later page has a statement of its own: "no `after`, or behind it" in one would be read from the very beginning.
_OF_CAMPAIGN = _VIEW + _FILTERS + "AND a.campaign_id = :campaign "
_IN_ORDER = "ORDER BY a.position, a.id LIMIT :limit"
_OF_CAMPAIGN_FIRST = text(_OF_CAMPAIGN + _IN_ORDER)
_OF_CAMPAIGN_AFTER = text(
    _OF_CAMPAIGN + "AND (a.position, a.id) > "
    "(SELECT position, id FROM articles WHERE tenant_id = :tenant AND id = :after) " + _IN_ORDER
)
_BY_AGE = "ORDER BY a.submitted_at DESC, a.id DESC LIMIT :limit"
_NEWEST_FIRST = text(_VIEW + _FILTERS + _BY_AGE)
_NEWEST_AFTER = text(
    _VIEW + _FILTERS + "AND (a.submitted_at, a.id) < "
    "(SELECT submitted_at, id FROM articles WHERE tenant_id = :tenant AND id = :after) " + _BY_AGE
)
_COUNTS = text(f"""
SELECT a.state, count(*) AS number FROM articles a
WHERE a.tenant_id = :tenant AND (CAST(:campaign AS varchar) IS NULL OR a.campaign_id = :campaign) {_FILTERS}
GROUP BY a.state
""")
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
_UNENDED = "FROM articles WHERE tenant_id = :tenant AND campaign_id = :campaign AND ended_at IS NULL"
# Each count has its own index; for "not ended" alone there is none.
_CENSUS = text(f"""
SELECT w.waiting, o.active, o.open, o.review, s.scheduled
FROM (SELECT count(*) AS waiting {_UNENDED} AND started_at IS NULL) w,
     (SELECT count(*) FILTER (WHERE state IN ('submitted', 'running', 'paused')) AS active,
             count(*) FILTER (WHERE state = 'review') AS review, count(*) AS open
      {_UNENDED} AND started_at IS NOT NULL) o,
     (SELECT count(*) AS scheduled {_UNENDED} AND state = 'scheduled') s
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
    review: int
    """Waiting for a person's decision."""
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
        statement = _NEWEST_FIRST if after is None else _NEWEST_AFTER
    else:
        statement = _OF_CAMPAIGN_FIRST if after is None else _OF_CAMPAIGN_AFTER
    return [_view(row) for row in await scope.sql.execute(statement, {**values, "campaign": campaign_id})]


async def counts(
    scope: Scope,
    *,
    campaign_id: str | None = None,
    state: State | None = None,
    stage: Stage | None = None,
    locale: str | None = None,
) -> dict[State, int]:
    """Of all that `list_` would go through with the same filters, however many pages that takes."""
    values = {
        "tenant": scope.tenant_id,
        "campaign": campaign_id,
        "state": str(state) if state is not None else None,
        "stage": str(stage) if stage is not None else None,
        "locale": locale,
    }
    return {State(row.state): row.number for row in await scope.sql.execute(_COUNTS, values)}


async def events(scope: Scope, article_id: str, *, after: int = 0, limit: int = 200) -> list[EventView]:
    values = {"tenant": scope.tenant_id, "id": article_id, "after": after, "limit": limit}
    return [EventView(**row._asdict()) for row in await scope.sql.execute(_EVENTS, values)]


async def paused_ahead(scope: Scope, ids: Sequence[str]) -> list[str]:
    """`channel is paused: why`, for each paused channel that one of these articles may still come to."""
    found = await scope.sql.execute(_AHEAD, {"tenant": scope.tenant_id, "ids": list(ids)})
    return [channel_paused(row.name, row.why) for row in found]


def channel_paused(channel: str, why: str) -> str:
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
        values["reason"] = channel_paused(row.channel, why)
    return ArticleView.model_validate({**values, "cost": cost})
