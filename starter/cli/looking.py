"""status, watch, campaigns, open, trace: where things stand."""

import webbrowser
from collections.abc import Sequence
from typing import Annotated
from urllib.parse import quote

import typer
from rich.markup import escape
from rich.table import Table

from citeloop.models import ids
from citeloop.models.plan import Stage, State
from citeloop.models.record import Record
from citeloop.settings import Settings
from citeloop.store.repositories import article_views, articles, campaign_views, campaigns
from citeloop.store.repositories.articles import ArticleView, EventView
from citeloop.store.repositories.campaigns import CampaignView
from starter import endpoints
from starter import trace as traces
from starter.cli.output import console, hint, print_json, say, table
from starter.cli.session import AsJson, Ref, Session, reading, run, settings_of
from starter.errors import CommandError
from starter.finding import find_article, newest_campaign
from starter.watching import follow, id_table, pauses, stage_table, summary, tally

_MOST = 1000
"""Rows that one command shows."""


class Details(Record):
    article: ArticleView
    events: tuple[EventView, ...]
    paused_ahead: tuple[str, ...]
    """`channel is paused: why`, for each that it may still come to."""


def status(
    context: typer.Context,
    ref: Annotated[str | None, typer.Argument(help="An article; without it, the list of articles.")] = None,
    campaign: Annotated[str | None, typer.Option(help="Only of this campaign, by id or name.")] = None,
    state: Annotated[State | None, typer.Option(help="Only in this state, such as parked.")] = None,
    stage: Annotated[Stage | None, typer.Option(help="Only at this stage.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=_MOST, help="How many are shown; all are counted.")] = 100,
    show_ids: Annotated[bool, typer.Option("--ids", help="With ids, by which every command takes an article.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show where articles stand.

    Example: citeloop status --campaign milvus --state parked
    """
    settings = settings_of(context)
    if ref is not None:
        details = run(_details(settings, ref))
        print_json(details) if as_json else _print_details(details)
        return

    async def work() -> tuple[list[ArticleView], dict[State, int], list[str]]:
        async with reading(settings) as session, session.database.tenant(session.tenant.id) as scope:
            of = (await newest_campaign(scope, campaign, hint)).id if campaign else None
            counts = await article_views.counts(scope, campaign_id=of, state=state, stage=stage)
            found = await articles.list_(scope, campaign_id=of, state=state, stage=stage, limit=limit)
            return found, counts, await articles.paused_ahead(scope, [row.id for row in found])

    rows, counts, ahead = run(work())
    if as_json:
        print_json(rows)
    elif not rows and (campaign, state, stage) != (None, None, None):
        say(_none(campaign, state, stage))
    else:
        out = console()
        out.print(tally(counts))
        if rows:
            out.print(id_table(rows) if show_ids else stage_table(rows))
        for line in dict.fromkeys([*pauses(rows), *ahead]):
            out.print(line, markup=False, soft_wrap=True)
    _tell_more(sum(counts.values()), len(rows), ", --campaign, --state and --stage choose among them")


def watch(
    context: typer.Context,
    ref: Annotated[str | None, typer.Argument(help="A campaign or an article; default: the newest campaign.")] = None,
) -> None:
    """Follow the progress until everything has ended. Ctrl-C leaves; the work goes on."""

    async def work() -> str:
        async with reading(settings_of(context)) as session:
            target = await _target(session, ref)
            return summary(await follow(session.database, session.tenant.id, target, console()))

    say(run(work()))


def show_campaigns(
    context: typer.Context,
    ref: Annotated[str | None, typer.Argument(help="A campaign's id or name; without it, all.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=_MOST, help="How many, the newest first.")] = 200,
    as_json: AsJson = False,
) -> None:
    """List campaigns, or show one."""

    async def work() -> tuple[list[CampaignView], int]:
        async with reading(settings_of(context)) as session, session.database.tenant(session.tenant.id) as scope:
            if ref is not None:
                return [await newest_campaign(scope, ref, hint)], 1
            total = await campaign_views.count(scope)
            return await campaigns.list_(scope, after=None, limit=limit), total

    rows, total = run(work())
    if as_json:
        print_json([row.model_dump(mode="json", exclude={"request": {"keywords"}}) for row in rows])
    else:
        console().print(_campaign_table(rows))
    _tell_more(total, len(rows), ", a campaign's id or name shows one")


def _campaign_table(rows: Sequence[CampaignView]) -> Table:
    made = table("campaign", "name", "state", "total", "articles", "submitted", "hold")
    for row in rows:
        counts = ", ".join(f"{n} {state}" for state, n in row.counts.items() if n)
        made.add_row(
            row.id, escape(row.name), row.state, str(row.total), counts,
            row.created_at.strftime("%Y-%m-%d %H:%M"), escape(row.hold or ""),
        )  # fmt: skip
    return made


def open_(
    context: typer.Context,
    ref: Ref,
    browser: Annotated[bool, typer.Option("--browser", help="Open it too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print an article's page in the Temporal UI; it is there while the server is up."""
    settings = settings_of(context)
    address, namespace, ui = endpoints.temporal(settings)
    if ui is None:
        raise CommandError(f"the UI of {address} is not known", "temporal", "look up its address with your operator")
    article = run(_article(settings, ref))
    link = workflow_link(ui, namespace, ids.workflow_id(run(_tenant(settings)), article.id))
    print_json({"url": link}) if as_json else say(link)
    if browser:
        webbrowser.open(link)


def trace(context: typer.Context, ref: Ref, as_json: AsJson = False) -> None:
    """Show an article's waterfall: every attempt and every HTTP call, also while it runs."""
    settings = settings_of(context)
    article = run(_article(settings, ref))
    found = traces.load(settings.home, article.id)
    if as_json:
        say(traces.as_json(found))
    else:
        traces.render(found, console())


def workflow_link(ui: str, namespace: str, workflow_id: str) -> str:
    return f"{ui}/namespaces/{namespace}/workflows/{quote(workflow_id, safe='')}"


def _tell_more(total: int, shown: int, choice: str) -> None:
    """For people, also beside JSON: whoever takes a part for the whole counts wrongly."""
    if total > shown:
        beyond = choice if total > _MOST else ""
        hint(f"and {total - shown:,} more: --limit {min(total, _MOST)} shows {'more' if beyond else 'all'}{beyond}")


def _none(campaign: str | None, state: State | None, stage: Stage | None) -> str:
    """Such as `no article of campaign spring is in review`."""
    of = f" of campaign {campaign}" if campaign else ""
    if state is None:
        return f"no article{of} is at {stage}" if stage else f"there is no article{of} yet"
    stands = {State.REVIEW: "is in review", State.FAILED: "has failed"}.get(state, f"is {state}")
    return f"no article{of} {stands}" + (f" at {stage}" if stage else "")


async def _target(session: Session, ref: str | None) -> str:
    async with session.database.tenant(session.tenant.id) as scope:
        if ref is None:
            newest = await campaigns.list_(scope, after=None, limit=200)
            if not newest:
                raise CommandError("there is none yet", "campaign", "submit one, or name an article")
            return max(newest, key=lambda campaign: campaign.created_at).id
        try:
            return (await newest_campaign(scope, ref, hint)).id
        except CommandError:
            return (await find_article(scope, ref)).id


async def _article(settings: Settings, ref: str) -> ArticleView:
    async with reading(settings) as session, session.database.tenant(session.tenant.id) as scope:
        return await find_article(scope, ref)


async def _tenant(settings: Settings) -> str:
    async with reading(settings) as session:
        return session.tenant.id


async def _details(settings: Settings, ref: str) -> Details:
    async with reading(settings) as session, session.database.tenant(session.tenant.id) as scope:
        article = await find_article(scope, ref)
        return Details(
            article=article,
            events=tuple(await articles.events(scope, article.id)),
            paused_ahead=tuple(await articles.paused_ahead(scope, [article.id])),
        )


def _print_details(details: Details) -> None:
    out, article = console(), details.article
    out.print(stage_table([article]))
    facts = {
        "id": article.id,
        "campaign": article.campaign_id or "–",
        "written by": article.writer or "–",
        "attempts": f"{article.attempts} ({article.faults} faults)",
        "cost": f"{article.cost.micros / 1e6:.4f} {article.cost.currency}",
        "hold": article.hold or "–",
        **({"reason": article.reason} if article.reason else {}),
        **{f"ahead {n + 1}": each for n, each in enumerate(details.paused_ahead) if each != article.reason},
        **{f"on {site}": f"{url} ({state})" for site, url, state in article.urls},
        **{f"warning {n + 1}": f"engines cannot read {why}" for n, why in enumerate(article.warnings)},
    }
    if (found := article.measurement) is not None:
        facts["before"] = f"named in {found.baseline_named} of {found.baseline_ok} answers"
        facts["after"] = (
            f"named in {found.after_named} of {found.after_ok} answers, "
            f"cited in {found.after_cited} of {found.after_grounded} with sources"
        )
    for name, value in facts.items():
        out.print(f"{name:>11}  {escape(value)}")
    for event in details.events:
        out.print(f"{event.at:%H:%M:%S}  {event.stage} {event.state} {event.detail}", markup=False)
