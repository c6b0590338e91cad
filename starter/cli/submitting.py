"""submit and campaign: from files and flags to a request."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from citeloop.models.plan import Method, MonitorPolicy, ReviewMode, ReviewPolicy, Stage
from citeloop.models.request import CampaignRequest, KeywordLine
from citeloop.rules.parsing import guess_locale
from citeloop.rules.requests import explained
from starter import files
from starter.cli.output import console, hint, print_json, say
from starter.cli.session import AsJson, Desk, acting, run, settings_of
from starter.commands import Submitted
from starter.errors import CommandError
from starter.watching import follow

BrandFile = Annotated[Path, typer.Option("--brand", help="The brand's TOML file.")]
Writers = Annotated[str, typer.Option(help="Writing channels in order, comma-separated; default: all.")]
Sites = Annotated[str, typer.Option(help="Sites to publish to; default: all.")]
Engines = Annotated[str, typer.Option(help="Answer engines to ask; default: all.")]
Stages = Annotated[str, typer.Option(help="Stages to go through, such as generate,rewrite; default: all six.")]
Review = Annotated[ReviewMode, typer.Option(help="Who decides what is published.")]
Days = Annotated[str, typer.Option(help="Days after publishing at which the engines are asked.")]
DayLength = Annotated[float, typer.Option("--day-seconds", help="Length of a day; shorten it to try things out.")]
Key = Annotated[str | None, typer.Option("--key", help="Idempotency key: the same key never submits a second time.")]
PublishAt = Annotated[
    str | None, typer.Option("--publish-at", help="Publish nothing before this, such as 2026-12-24T09:00+08:00.")
]
PublishEvery = Annotated[
    str | None,
    typer.Option("--publish-every", help="Space the articles out, such as 2h, 90m or 1d; from --publish-at."),
]
Wait = Annotated[bool, typer.Option("--wait", help="Stay until everything has ended.")]
Check = Annotated[bool, typer.Option("--check/--no-check", help="Try each channel's key first.")]

REVIEW = ReviewMode.HUMAN_WHEN_FLAGGED
DAYS = "1,3,7,14,28"
DAY = 86400.0
_LONGEST_DAY = timedelta(days=31)
"""As `MonitorPolicy.day` allows."""
Schedule = tuple[datetime | None, timedelta | None]
"""When publishing may begin, and how far apart the articles are."""


def submit(
    context: typer.Context,
    keyword: Annotated[str, typer.Argument(help="What people ask the engines.")],
    brand: BrandFile,
    locale: Annotated[str | None, typer.Option(help="Such as zh-CN; default: by the keyword's script.")] = None,
    kind: Annotated[str, typer.Option(help="article, faq, product_page, case_study or summary.")] = "article",
    priority: Annotated[int, typer.Option(min=1, max=5)] = 3,
    writers: Writers = "",
    sites: Sites = "",
    engines: Engines = "",
    review: Review = REVIEW,
    stages: Stages = "",
    days: Days = DAYS,
    day_seconds: DayLength = DAY,
    publish_at: PublishAt = None,
    key: Key = None,
    check: Check = True,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Submit one article.

    Example: citeloop submit "vector database for RAG" --brand examples/milvus/brand.toml --wait
    """
    known = files.read_brand(brand)
    line = keyword_line(keyword, locale, kind, priority)
    request = make_request(
        "alone",
        (line,),
        writers,
        sites,
        engines,
        review,
        stages,
        days=days,
        day_seconds=day_seconds,
        schedule=schedule_of(publish_at, None),
    )

    async def work() -> bool:
        async with acting(settings_of(context), check_keys=check) as desk:
            done = await desk.commands.submit_article(known, request, key=key)
            _report(done, as_json=as_json)
            return await _until_ended(desk, done, as_json=as_json) if wait else True

    if not run(work()):
        raise typer.Exit(1)


def campaign(
    context: typer.Context,
    brand: Annotated[Path, typer.Argument(help="The brand's TOML file.")],
    keywords: Annotated[Path, typer.Argument(help="CSV with a column `keyword`, and locale, kind, priority.")],
    name: Annotated[str | None, typer.Option(help="Default: the name of the keyword file.")] = None,
    writers: Writers = "",
    sites: Sites = "",
    engines: Engines = "",
    review: Review = REVIEW,
    stages: Stages = "",
    days: Days = DAYS,
    day_seconds: DayLength = DAY,
    window: Annotated[int | None, typer.Option(min=1, max=2000, help="Articles in production at once.")] = None,
    publish_at: PublishAt = None,
    publish_every: PublishEvery = None,
    key: Key = None,
    check: Check = True,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Submit a list of keywords as a campaign.

    Example: citeloop campaign examples/milvus/brand.toml examples/milvus/keywords.csv --name milvus
    """
    settings = settings_of(context)
    known, lines = files.read_brand(brand), files.read_keywords(keywords)
    request = make_request(
        name or keywords.stem,
        lines,
        writers,
        sites,
        engines,
        review,
        stages,
        days=days,
        day_seconds=day_seconds,
        window=window or settings.window,
        schedule=schedule_of(publish_at, publish_every),
    )

    async def work() -> bool:
        async with acting(settings, check_keys=check) as desk:
            done = await desk.commands.submit_campaign(known, request, key=key)
            _report(done, as_json=as_json)
            return await _until_ended(desk, done, as_json=as_json) if wait else True

    if not run(work()):
        raise typer.Exit(1)


def keyword_line(keyword: str, locale: str | None, kind: str, priority: int) -> KeywordLine:
    fields = {"keyword": keyword, "locale": locale or guess_locale(keyword), "kind": kind, "priority": priority}
    try:
        return KeywordLine.model_validate(fields)
    except ValidationError as error:
        raise explained(error) from None


def make_request(
    name: str,
    lines: tuple[KeywordLine, ...],
    writers: str,
    sites: str,
    engines: str,
    review: ReviewMode,
    stages: str,
    *,
    days: str,
    day_seconds: float,
    window: int = 100,
    schedule: Schedule = (None, None),
) -> CampaignRequest:
    try:
        return CampaignRequest(
            name=name,
            keywords=lines,
            stages=_stages(stages),
            writers=_names(writers),
            sites=_names(sites),
            engines=_names(engines),
            methods=tuple(Method),
            review=ReviewPolicy(mode=review),
            monitor=MonitorPolicy(offsets=_days(days), day=_day(day_seconds)),
            window=window,
            publish_at=schedule[0],
            publish_every=schedule[1],
        )
    except ValidationError as error:
        raise explained(error) from None


def schedule_of(publish_at: str | None, publish_every: str | None) -> Schedule:
    """Spacing alone begins now. CommandError."""
    every = _spacing(publish_every) if publish_every is not None else None
    if publish_at is None:
        return (datetime.now(UTC) if every is not None else None), every
    try:
        when = datetime.fromisoformat(publish_at)
        when = when if when.tzinfo is not None else when.astimezone()
        when.astimezone(UTC)
    except (ValueError, OverflowError):  # also a time of the year 1 or 9999 that is none in another zone
        remedy = "write it as 2026-12-24T09:00+08:00"
        raise CommandError(f"{publish_at!r} is no date and time", "publish-at", remedy) from None
    return when, every


def _spacing(text: str) -> timedelta:
    units = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
    number, unit = text.strip()[:-1], text.strip()[-1:]
    try:
        every = timedelta(**{units[unit]: float(number)})
    except (KeyError, ValueError, OverflowError):
        every = timedelta(0)
    if every <= timedelta(0):
        raise CommandError(f"{text!r} is no length of time", "publish-every", "write it as 2h, 90m or 1d")
    return every


async def _until_ended(desk: Desk, done: Submitted, *, as_json: bool) -> bool:
    """True when every article reached what its plan asks for."""
    ref = done.campaign_id or done.article_ids[0]
    views = await follow(desk.session.database, desk.session.tenant.id, ref, console(stderr=as_json))
    return all(view.state in {"measured", "done"} for view in views)


def _report(done: Submitted, *, as_json: bool) -> None:
    if as_json:
        print_json(done)
        return
    what = f"campaign {done.campaign_id}" if done.campaign_id else f"article {done.article_ids[0]}"
    old = len(done.article_ids) - done.new
    say(f"{what}: {done.new} submitted" + (f", {old} were there before" if old else ""))
    if not done.started:
        hint("recorded; Temporal did not answer in time, the sweeper starts it")


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _stages(text: str) -> tuple[Stage, ...]:
    names = _names(text)
    for name in names:
        if name not in set(Stage):
            raise CommandError(f"{name!r} is no stage", "stages", f"choose from {', '.join(Stage)}")
    return tuple(Stage(name) for name in names) or tuple(Stage)


def _day(seconds: float) -> timedelta:
    try:
        day = timedelta(seconds=seconds)
    except (ValueError, OverflowError):  # no number, or without end
        day = timedelta(0)
    if not timedelta(0) < day <= _LONGEST_DAY:
        most = f"{_LONGEST_DAY.total_seconds():.0f}"
        raise CommandError(
            f"{seconds} is no length of a day", "day-seconds", f"write more than 0 and at most {most}, such as 86400"
        )
    return day


def _days(text: str) -> tuple[int, ...]:
    try:
        offsets = tuple(int(day) for day in _names(text))
    except ValueError:
        offsets = ()
    if not offsets or any(day < 0 for day in offsets) or list(offsets) != sorted(set(offsets)):
        raise CommandError(f"{text!r} is no rising list of days", "days", "write it as 1,3,7,14,28")
    return offsets
