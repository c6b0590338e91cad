"""Live progress of a campaign or an article, from the store: a moving table, or a line per change."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from citeloop.models.plan import Stage, State
from citeloop.store.database import Database
from citeloop.store.errors import NotFound
from citeloop.store.repositories import articles
from citeloop.store.repositories.articles import ArticleView

Look = Callable[[], Awaitable[Sequence[ArticleView]]]

_EVERY = 0.5
_PAGE = 500
_ID_WIDTH = 8
_WHOLE_ID = 26
_MARK = {
    State.RUNNING: "[yellow]●[/]",
    State.SUBMITTED: "[dim]○[/]",
    State.PAUSED: "[cyan]‖[/]",
    State.REVIEW: "[magenta]?[/]",
    State.SCHEDULED: "[cyan]◷[/]",
    State.PARKED: "[red]![/]",
    State.PUBLISHED: "[yellow]●[/]",
    State.FAILED: "[red]✗[/]",
    State.REJECTED: "[red]✗[/]",
    State.CANCELLED: "[red]–[/]",
}
_URGENT = (State.PARKED, State.REVIEW, State.RUNNING, State.PUBLISHED, State.SCHEDULED, State.PAUSED, State.SUBMITTED)


async def follow(
    database: Database, tenant_id: str, ref: str, console: Console, *, settled: bool = False
) -> Sequence[ArticleView]:
    """Until all have ended. `settled`: parked counts as an end, since nobody is there to mend it."""
    return await watch(lambda: views(database, tenant_id, ref), console, settled=settled)


async def views(database: Database, tenant_id: str, ref: str) -> Sequence[ArticleView]:
    """The article `ref`, else every article of the campaign `ref`."""
    found: list[ArticleView] = []
    async with database.tenant(tenant_id) as scope:
        with suppress(NotFound):
            one = await articles.find(scope, ref)
            if one is not None:
                return (one,)
        after: str | None = None
        while True:
            page = await articles.list_(scope, campaign_id=ref, after=after, limit=_PAGE)
            found.extend(page)
            if len(page) < _PAGE:
                return found
            after = page[-1].id


async def watch(look: Look, console: Console, *, settled: bool = False) -> Sequence[ArticleView]:
    if console.is_terminal:
        return await _live(look, console, settled=settled)
    return await _lines(look, console, settled=settled)


def stage_table(rows: Sequence[ArticleView], *, limit: int | None = None) -> Table:
    """Six stage columns; with `limit` the rows that need or get attention come first."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    made.add_column("article", overflow="ellipsis", no_wrap=True, max_width=36)
    for stage in Stage:
        made.add_column(stage.value, justify="center", no_wrap=True)
    for column in ("state", "channel"):
        made.add_column(column, no_wrap=True, min_width=9)
    made.add_column("reason")
    shown = sorted(rows, key=_urgency)[:limit] if limit is not None and len(rows) > limit else rows
    for row in shown:
        made.add_row(escape(row.keyword), *_marks(row), row.state, row.channel, _reason(row))
    if len(shown) < len(rows):
        made.caption = f"and {len(rows) - len(shown)} more"
    return made


def id_table(rows: Sequence[ArticleView]) -> Table:
    """One stage column, which leaves room for what every command takes for an article: its id's beginning."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    made.add_column("id", no_wrap=True)
    made.add_column("article", overflow="ellipsis", no_wrap=True, max_width=30)
    for column in ("stage", "state", "channel"):
        made.add_column(column, no_wrap=True, min_width=7)
    made.add_column("reason")
    width = _distinct([row.id for row in rows])
    for row in rows:
        made.add_row(row.id[:width], escape(row.keyword), row.stage, row.state, row.channel, _reason(row))
    return made


def summary(rows: Sequence[ArticleView]) -> str:
    return tally(Counter(row.state for row in rows))


def tally(counts: Mapping[State, int]) -> str:
    """Such as `24 articles: 3 running, 20 measured, 1 parked`."""
    total = sum(counts.values())
    shown = ", ".join(f"{counts[state]} {state}" for state in State if counts.get(state)) or "none yet"
    return f"{total} article{'' if total == 1 else 's'}: {shown}"


def pauses(rows: Iterable[ArticleView]) -> list[str]:
    """Why the rows' channels are paused, each once and in full: a table may have no room for it."""
    said = (row.reason for row in rows if row.reason.startswith(articles.channel_paused(row.channel, "")))
    return list(dict.fromkeys(said))


def over(row: ArticleView, *, settled: bool) -> bool:
    return row.state.ended or (settled and row.state is State.PARKED)


async def _live(look: Look, console: Console, *, settled: bool) -> Sequence[ArticleView]:
    with Live(console=console, refresh_per_second=4, transient=True) as live:
        while True:
            rows = await look()
            made = stage_table(rows, limit=max(5, console.height - 6))
            made.title = "\n".join([summary(rows), *map(escape, pauses(rows))])
            live.update(made)
            if rows and all(over(row, settled=settled) for row in rows):
                return rows
            await asyncio.sleep(_EVERY)


async def _lines(look: Look, console: Console, *, settled: bool) -> Sequence[ArticleView]:
    seen: dict[str, tuple[Stage, State, str]] = {}
    while True:
        rows = await look()
        for row in rows:
            stands = (row.stage, row.state, row.reason)
            if seen.get(row.id) != stands:
                seen[row.id] = stands
                detail = f" · {row.reason}" if row.reason else ""
                via = f" · {row.channel}" if row.channel else ""
                console.print(f"{row.keyword}: {row.stage} {row.state}{via}{detail}", markup=False, soft_wrap=True)
        if rows and all(over(row, settled=settled) for row in rows):
            return rows
        await asyncio.sleep(_EVERY)


def _reason(row: ArticleView) -> Text:
    """The one column that may shrink: a long reason takes no room from the stages."""
    told = row.hold or row.reason or (f"engines cannot read {row.warnings[0]}" if row.warnings else "")
    return Text(told, no_wrap=True, overflow="ellipsis")


def _distinct(ids: Sequence[str]) -> int:
    """How many first letters tell them apart."""
    return next((n for n in range(_ID_WIDTH, _WHOLE_ID) if len({one[:n] for one in ids}) == len(ids)), _WHOLE_ID)


def _marks(row: ArticleView) -> list[str]:
    return [
        "[green]✓[/]" if stage in row.done else _MARK.get(row.state, "") if stage is row.stage else "[dim]·[/]"
        for stage in Stage
    ]


def _urgency(row: ArticleView) -> tuple[int, int]:
    return (_URGENT.index(row.state) if row.state in _URGENT else len(_URGENT), row.priority)
