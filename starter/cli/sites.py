"""sites list | show | check | new-key: where a tenant publishes; what changes it stands in `registering`."""

import asyncio
from typing import Annotated

import typer
from pydantic import JsonValue
from rich.markup import escape

from citeloop import sealing
from citeloop.channels.outside import Outside
from citeloop.models.channel import SiteKind, SiteSpec
from citeloop.models.record import Record
from citeloop.models.site import SiteState, SiteView
from starter.cli import registering
from starter.cli.output import console, hint, print_json, say, table
from starter.cli.registering import Name, tell
from starter.cli.session import AsJson, probing, registry, run, settings_of
from starter.errors import CommandError
from starter.site_commands import SiteCommands

Label = Annotated[str | None, typer.Option("--label", "--tag", help="Only those that bear this label.")]
_MOST_CHECKED = 500
_CHECKS_AT_ONCE = 10
_FILE = "channels.toml"


class Checked(Record):
    site: str
    ok: bool
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def list_(
    context: typer.Context,
    kind: Annotated[SiteKind | None, typer.Option(help="Only sites of this kind.")] = None,
    label: Label = None,
    after: Annotated[str | None, typer.Option(help="Begin behind this name.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000)] = 50,
    as_json: AsJson = False,
) -> None:
    """List the registered sites by name, page by page; behind the last, those of channels.toml."""

    async def work() -> tuple[list[SiteView], tuple[SiteSpec, ...]]:
        async with registry(settings_of(context)) as commands:
            page = await commands.page(after=after, limit=limit + 1, kind=kind, label=label)
            last = len(page) <= limit and label is None  # the file's sites bear no label
            return page, commands.filed(kind) if last else ()

    found, filed = run(work())
    rows, more = found[:limit], len(found) > limit
    if as_json:
        items = [{**row.model_dump(mode="json"), "source": "registry"} for row in rows]
        items += [_filed(site) for site in filed]
        print_json({"items": items, "next": rows[-1].name if more else None})
        return
    made = table("name", "kind", "address", "user", "rate", "at once", "labels", "state", "source")
    for row in rows:
        made.add_row(
            row.name, row.kind, escape(row.base_url), escape(row.user), row.rate or "none", str(row.concurrency),
            ", ".join(row.labels), row.state, "registry",
        )  # fmt: skip
    for site in filed:
        made.add_row(
            site.name, site.kind, escape(site.base_url or site.folder), f"${site.user_env}" if site.user_env else "",
            _rate(site) or "none", str(site.concurrency), "", SiteState.ACTIVE, _FILE,
        )  # fmt: skip
    console().print(made)
    if more:
        hint(f"more: --after {rows[-1].name}")


def show(context: typer.Context, name: Name, as_json: AsJson = False) -> None:
    """Show one site; its secret is never shown."""

    async def work() -> SiteView:
        async with registry(settings_of(context)) as commands:
            return await commands.show(name)

    tell(run(work()), as_json=as_json)


def check(
    context: typer.Context,
    names: Annotated[list[str] | None, typer.Argument(help="Only these; sites of channels.toml too.")] = None,
    label: Label = None,
    as_json: AsJson = False,
) -> None:
    """Try address, login and rights of sites, and say what their hosting does to them; exit 1 when one fails."""

    async def work() -> list[Checked]:
        settings = settings_of(context)
        async with probing(settings) as (catalog, outside), registry(settings) as commands:
            chosen = list(dict.fromkeys(names or []))
            if label is not None or not chosen:
                chosen += await commands.names(label, most=_MOST_CHECKED)
            if label is None and not names:
                chosen += [site.name for site in catalog.sites]
            if not chosen:
                raise CommandError("there is none to check", "sites", "add one, or name another label")
            return await _checked(commands, outside, chosen)

    results = run(work())
    if as_json:
        print_json(results)
    else:
        for result in results:
            mark = "ok " if result.ok else "BAD"
            say(": ".join([f"{mark} {result.site}", *result.problems[:1]]))
            for problem in result.problems[1:]:
                say(f"    {problem}")
            for note in result.notes:
                say(f"    note: {note}")
    if not all(result.ok for result in results):
        raise typer.Exit(1)


def new_key() -> None:
    """Print a fresh key for CITELOOP_SECRET_KEY; put it before the old one, separated by a comma, to rotate."""
    say(sealing.new_key())


def _filed(site: SiteSpec) -> dict[str, JsonValue]:
    """As a registered site, as far as the file tells; its login stands in a variable."""
    return {
        "name": site.name, "kind": site.kind, "base_url": site.base_url, "user_env": site.user_env,
        "rate": _rate(site), "concurrency": site.concurrency, "labels": [], "state": SiteState.ACTIVE, "source": _FILE,
    }  # fmt: skip


def _rate(site: SiteSpec) -> str | None:
    return None if site.rate is None else f"{float(site.rate):g}/s"


async def _checked(commands: SiteCommands, outside: Outside, names: list[str]) -> list[Checked]:
    slots = asyncio.Semaphore(_CHECKS_AT_ONCE)

    async def one(name: str) -> Checked:
        async with slots:
            report = await commands.check(name, outside)
        problems = tuple(problem.removeprefix(f"{name}: ") for problem in report.problems)
        return Checked(site=name, ok=report.ok, problems=problems, notes=report.notes)

    return list(await asyncio.gather(*(one(name) for name in names)))


sites = typer.Typer(help="The tenant's own sites: where its articles are published.", no_args_is_help=True)
for called, command in (
    ("import", registering.import_), ("list", list_), ("show", show), ("add", registering.add),
    ("set", registering.set_), ("pause", registering.pause), ("resume", registering.resume),
    ("remove", registering.remove), ("check", check), ("new-key", new_key),
):  # fmt: skip
    sites.command(called)(command)
