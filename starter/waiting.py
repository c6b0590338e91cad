"""What articles wait for though nobody holds them: a channel that is paused."""

from collections.abc import Iterable, Mapping, Sequence

from citeloop.models.plan import State
from citeloop.store.database import Database
from citeloop.store.repositories import channels
from citeloop.store.repositories.articles import ArticleView

_CALLING = frozenset({State.RUNNING, State.PUBLISHED})


async def explained(database: Database, rows: Sequence[ArticleView]) -> list[ArticleView]:
    """The rows; those that say nothing themselves and are at a paused channel bear its reason."""
    if not any(_silent(row) for row in rows):
        return list(rows)
    async with database.operator() as operator:
        paused = {one.name: one.pause_reason for one in await channels.rows(operator) if one.paused}
    return with_pauses(rows, paused)


def with_pauses(rows: Iterable[ArticleView], paused: Mapping[str, str]) -> list[ArticleView]:
    """paused: why, by channel."""
    return [
        row.model_copy(update={"reason": _reason(row.channel, paused[row.channel])})
        if row.channel in paused and _silent(row)
        else row
        for row in rows
    ]


def told(rows: Iterable[ArticleView]) -> list[str]:
    """Each of those reasons once, in full: a table may have no room for it."""
    return list(dict.fromkeys(row.reason for row in rows if row.reason.startswith(_reason(row.channel, ""))))


def _silent(row: ArticleView) -> bool:
    return row.state in _CALLING and bool(row.channel) and not row.reason and row.hold is None


def _reason(channel: str, why: str) -> str:
    return f"{channel} is paused: {why.removeprefix(f'{channel}: ')}"
