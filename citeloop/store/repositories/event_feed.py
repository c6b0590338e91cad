"""Events as they become visible, each exactly once, for a reader that comes back with where it stopped.

Numbers (`seq`) are given out before their transactions commit, so "all after the last number" would miss what
commits late. A window [low, high) of transactions holds only finished ones: it never gains a row.
"""

# ruff: noqa: S608 - statements are put together from constants only

import re
from datetime import datetime
from typing import Self

from citeloop.models.record import Record
from citeloop.store.database import Scope
from citeloop.store.statements import Statement, text

PAGE = 500
_NOW = """
SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS settled,
       pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS next,
"""
_STANDING_OF_CAMPAIGN = text(
    _NOW + "EXISTS (SELECT 1 FROM articles WHERE tenant_id = :tenant AND campaign_id = :id "
    "AND started_at IS NOT NULL AND ended_at IS NULL) OR "
    "EXISTS (SELECT 1 FROM articles WHERE tenant_id = :tenant AND campaign_id = :id "
    "AND started_at IS NULL AND ended_at IS NULL) AS open"
)
_STANDING_OF_ARTICLE = text(
    _NOW + "EXISTS (SELECT 1 FROM articles WHERE tenant_id = :tenant AND id = :id AND ended_at IS NULL) AS open"
)
_COLUMNS = "SELECT e.article_id, a.keyword, e.seq, e.at, e.kind, e.stage, e.state, e.detail "
_END = "AND e.seq > :seq ORDER BY e.seq LIMIT :limit"
# A database restored from a dump counts transactions anew: what lies in the future was written in its former life.
_FIRST = "AND (e.written_in < :high OR e.written_in >= :next) "
_ARTICLES = "FROM articles a JOIN article_events e ON e.tenant_id = a.tenant_id AND e.article_id = a.id "
_FRESH = (
    "WITH e AS MATERIALIZED (SELECT * FROM article_events WHERE tenant_id = :tenant "
    "AND written_in >= :low AND written_in < :high) " + _COLUMNS + "FROM e JOIN articles a "
    "ON a.tenant_id = e.tenant_id AND a.id = e.article_id "
)
_FIRST_OF_CAMPAIGN = text(_COLUMNS + _ARTICLES + "WHERE a.tenant_id = :tenant AND a.campaign_id = :id " + _FIRST + _END)
_FIRST_OF_ARTICLE = text(_COLUMNS + _ARTICLES + "WHERE a.tenant_id = :tenant AND a.id = :id " + _FIRST + _END)
_FRESH_OF_CAMPAIGN = text(_FRESH + "WHERE a.campaign_id = :id " + _END)
_FRESH_OF_ARTICLE = text(_FRESH + "WHERE a.id = :id " + _END)
_WRITTEN = re.compile(r"(\d{1,18})-(\d{1,18})-(\d{1,18})")


class Mark(Record):
    """Where a reader stands: in the window [low, high) of transactions, behind the event `seq`."""

    low: int
    high: int
    seq: int

    def __str__(self) -> str:
        return f"{self.low}-{self.high}-{self.seq}"

    @classmethod
    def read(cls, written: str) -> Self:
        """ValueError when it is none of ours."""
        found = _WRITTEN.fullmatch(written)
        if found is None:
            raise ValueError(f"{written[:80]!r} is no mark")
        low, high, seq = (int(number) for number in found.groups())
        return cls(low=low, high=high, seq=seq)


class FeedEvent(Record):
    article_id: str
    keyword: str
    seq: int
    at: datetime
    kind: str
    """enter, note, hold, let_go, retry, decision or decision_ignored."""
    stage: str
    state: str
    detail: str


class Batch(Record):
    """`marks` stand one beside each event, for the reader to come back with; `mark` is for the next call."""

    events: tuple[FeedEvent, ...]
    marks: tuple[Mark, ...]
    mark: Mark
    over: bool
    """Every article has ended, and all that was written until then has been read."""


async def of_campaign(scope: Scope, campaign_id: str, mark: Mark | None) -> Batch:
    """At most PAGE events after `mark`; None is the beginning."""
    return await _batch(scope, campaign_id, mark, (_STANDING_OF_CAMPAIGN, _FIRST_OF_CAMPAIGN, _FRESH_OF_CAMPAIGN))


async def of_article(scope: Scope, article_id: str, mark: Mark | None) -> Batch:
    return await _batch(scope, article_id, mark, (_STANDING_OF_ARTICLE, _FIRST_OF_ARTICLE, _FRESH_OF_ARTICLE))


async def _batch(
    scope: Scope, id_: str, mark: Mark | None, statements: tuple[Statement, Statement, Statement]
) -> Batch:
    standing, first, fresh = statements
    now = (await scope.sql.execute(standing, {"tenant": scope.tenant_id, "id": id_})).one()
    mark = mark or Mark(low=0, high=now.settled, seq=0)
    found: list[tuple[FeedEvent, Mark]] = []
    while True:
        limit = PAGE - len(found)
        values = {"tenant": scope.tenant_id, "id": id_, "limit": limit, "next": now.next, **mark.model_dump()}
        if mark.low > 0:
            del values["next"]
        else:
            del values["low"]
        rows = (await scope.sql.execute(fresh if mark.low > 0 else first, values)).all()
        for row in rows:
            mark = mark.model_copy(update={"seq": row.seq})
            found.append((FeedEvent(**row._asdict()), mark))
        if len(rows) == limit:
            break
        reached, mark = mark.high, Mark(low=mark.high, high=max(now.settled, mark.high), seq=0)
        if mark.high == reached:
            break
    over = not now.open and len(found) < PAGE and mark.low >= now.next
    return Batch(events=tuple(event for event, _ in found), marks=tuple(at for _, at in found), mark=mark, over=over)
