"""What a campaign has come to: the closing table, the closing figures, and whether they are as they should be."""

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from citeloop.models.measure import Sample
from citeloop.models.plan import State
from citeloop.models.record import Record
from citeloop.rules import metrics
from citeloop.rules.intervals import cluster_wilson
from citeloop.rules.metrics import Figure
from citeloop.store.repositories.articles import ArticleView
from starter.utilisation import Utilisation
from starter.watching import over

MIN_PUBLISHED = 22 / 24
MAX_LIMITED = 1
GOOD_USE = 0.85


class Ledger(Record):
    """What the sandbox has counted."""

    limited: int
    duplicate_posts: int
    bought_twice: int
    calls: Mapping[str, tuple[float, ...]]


class Figures(Record):
    """The demo's last line."""

    articles: int
    published: int
    parked: int
    failed: int
    rate_limited_calls: int
    duplicate_posts: int
    bought_twice: int
    mention_rate_before: float | None
    mention_rate_after: float | None
    citation_rate_after: float | None
    seconds: float


class Result(Record):
    figures: Figures
    before: Figure
    after: Figure
    cited: Figure
    problems: tuple[str, ...]


def summarise(rows: Sequence[ArticleView], samples: Sequence[Sample], ledger: Ledger, *, seconds: float) -> Result:
    """Rates over the keywords' own prompts; control prompts are the yardstick, not the result."""
    own = [sample for sample in samples if sample.keyword is not None]
    before = metrics.mention_rate([sample for sample in own if sample.window == "baseline"])
    after = metrics.mention_rate([sample for sample in own if sample.window == "after"])
    cited = _pages_cited(rows)
    figures = Figures(
        articles=len(rows),
        published=sum(1 for row in rows if page_of(row)),
        parked=sum(1 for row in rows if row.state is State.PARKED),
        failed=sum(1 for row in rows if row.state is State.FAILED),
        rate_limited_calls=ledger.limited,
        duplicate_posts=ledger.duplicate_posts,
        bought_twice=ledger.bought_twice,
        mention_rate_before=_rounded(before.value),
        mention_rate_after=_rounded(after.value),
        citation_rate_after=_rounded(cited.value),
        seconds=round(seconds, 1),
    )
    problems = tuple(_problems(rows, figures))
    return Result(figures=figures, before=before, after=after, cited=cited, problems=problems)


def _pages_cited(rows: Sequence[ArticleView]) -> Figure:
    """Answers that list a page of ours, of those with sources. A page counts by host and path, since a site
    on loopback has no domain that could be owned."""
    counts = [(m.after_cited, m.after_grounded) for row in rows if (m := row.measurement) is not None]
    hits, trials = sum(m for m, _ in counts), sum(n for _, n in counts)
    interval = cluster_wilson([(float(m), float(n)) for m, n in counts if n])
    return Figure(
        name="page cited rate",
        value=hits / trials if trials else None,
        numerator=hits,
        denominator=trials,
        prompts=sum(1 for _, n in counts if n),
        low=interval[0] if interval else None,
        high=interval[1] if interval else None,
    )


def show(console: Console, rows: Sequence[ArticleView], use: Sequence[Utilisation], result: Result) -> None:
    console.print(article_table(rows, terminal=console.is_terminal))
    for row in rows:
        if row.state is State.PARKED:
            console.print(f"parked: {row.keyword} at {row.stage}: {row.reason}", markup=False)
        for warning in row.warnings:
            console.print(f"warning: engines cannot read {row.keyword} on {warning}", markup=False)
    console.print(_channels(use))
    for figure, title in (
        (result.before, "mention rate before"),
        (result.after, "mention rate after"),
        (result.cited, "citation rate after"),
    ):
        console.print(f"{title:>20}: {_stated(figure)}", markup=False)


def page_of(row: ArticleView) -> str:
    """The first page that stands; empty when there is none."""
    return next((url for _, url, state in row.urls if state == "published" and url), "")


def _problems(rows: Sequence[ArticleView], figures: Figures) -> list[str]:
    unfinished = [row.keyword for row in rows if not over(row, settled=True)]
    wanted = round(MIN_PUBLISHED * figures.articles)
    checks = (
        (bool(unfinished), f"not ended: {', '.join(unfinished)}"),
        (figures.published < wanted, f"{figures.published} published, at least {wanted} expected"),
        (figures.duplicate_posts > 0, f"{figures.duplicate_posts} duplicate posts"),
        (figures.bought_twice > 0, f"{figures.bought_twice} calls bought twice"),
        (figures.rate_limited_calls > MAX_LIMITED, f"{figures.rate_limited_calls} calls answered with 429"),
    )
    return [problem for wrong, problem in checks if wrong]


def article_table(rows: Sequence[ArticleView], *, terminal: bool) -> Table:
    """In a terminal a page is a link that may be cut short; elsewhere it is the whole address."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    made.add_column("article", overflow="ellipsis", no_wrap=True, max_width=34)
    for column in ("state", "channel"):
        made.add_column(column, no_wrap=True, min_width=8)
    made.add_column("attempts", justify="right", no_wrap=True, min_width=8)
    made.add_column("page", no_wrap=not terminal)
    for column, width in (("before", 6), ("after", 5), ("cited", 5), ("cost", 10), ("seconds", 7)):
        made.add_column(column, justify="right", no_wrap=True, min_width=width)
    for row in rows:
        found, page = row.measurement, page_of(row)
        before = _rate(found.baseline_named, found.baseline_ok) if found else "–"
        after = _rate(found.after_named, found.after_ok) if found else "–"
        cited = "–" if found is None or not found.after_grounded else "yes" if found.after_cited else "no"
        made.add_row(
            escape(row.keyword), row.state, row.writer or row.channel, str(row.attempts),
            Text(page, f"link {page}" if page and terminal else "", no_wrap=True, overflow="ellipsis"),
            before, after, cited, f"{row.cost.micros / 1e6:.2f} {row.cost.currency}", _seconds(row),
        )  # fmt: skip
    return made


def _channels(use: Sequence[Utilisation]) -> Table:
    made = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("channel", "limit", "work waited", "calls meanwhile", "of the limit"):
        made.add_column(column, justify="left" if column == "channel" else "right", no_wrap=True)
    for one in use:
        used = "–" if one.share is None else f"{one.share:.0%}"
        style = "" if one.share is None or one.share >= GOOD_USE else "yellow"
        made.add_row(one.channel, f"{one.limit:g}/s", f"{one.seconds:.1f} s", str(one.calls), used, style=style)
    return made


def _stated(figure: Figure) -> str:
    if figure.value is None:
        return "nothing could be counted"
    interval = f", 95 % interval {figure.low:.2f}–{figure.high:.2f}" if figure.interval else ""
    label = f" ({figure.label})" if figure.label else ""
    return f"{figure.value:.2f}, n = {figure.denominator:.0f}, {figure.prompts} prompts{interval}{label}"


def _rate(hits: int, trials: int) -> str:
    return f"{hits}/{trials}" if trials else "–"


def _seconds(row: ArticleView) -> str:
    end = row.ended_at or row.updated_at
    return f"{(end - row.submitted_at).total_seconds():.0f}" if end else "–"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
