"""sites import | list | show | add | set | remove | pause | resume | check: where a tenant publishes."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

import typer
from pydantic import JsonValue
from rich.markup import escape

from citeloop import sealing
from citeloop.channels.outside import Outside
from citeloop.models.channel import SiteKind
from citeloop.models.record import Record
from citeloop.models.site import SiteEntry, SiteState, SiteView
from citeloop.settings import Settings
from starter import endpoints
from starter.cli.output import console, hint, print_json, say, table
from starter.cli.session import AsJson, catalog_of, probing, reading, run, settings_of
from starter.errors import CommandError
from starter.site_commands import Changes, SiteCommands
from starter.site_files import CONCURRENCY, BadFile, import_sites

sites = typer.Typer(help="The tenant's own sites: where its articles are published.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="The site's name.")]
Label = Annotated[str | None, typer.Option("--label", "--tag", help="Only those that bear this label.")]
Labels = Annotated[list[str] | None, typer.Option("--label", "--tag", help="A label to group by; repeatable.")]
User = Annotated[str | None, typer.Option(help="The login: WordPress's user, WeChat's AppID.")]
SecretEnv = Annotated[str | None, typer.Option(help="The variable that holds the secret; it is stored sealed.")]
SecretStdin = Annotated[bool, typer.Option("--secret-stdin", help="Read the secret from standard input.")]
Rate = Annotated[str | None, typer.Option(help="Visits, such as 12/min or 500/h; `none` for no limit.")]
Concurrency = Annotated[int | None, typer.Option(help="Visits at once, 1 to 10.")]
Url = Annotated[str | None, typer.Option("--url", help="Such as https://blog.example.com.")]
Given = Annotated[
    list[str] | None, typer.Option("--set", help="KEY=VALUE as in channels.toml, lists with |; repeatable.")
]
_LISTS = ("tags", "categories")
_MOST_CHECKED = 500
_CHECKS_AT_ONCE = 10


class Checked(Record):
    site: str
    ok: bool
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Imported(Record):
    lines: int
    new: int
    changed: int
    same: int
    dry_run: bool = False


@sites.command("import")
def import_(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="A CSV file; docs/operating.md tells its columns.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Judge the file and keep nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Register all sites of a CSV file, or none of them; again is harmless.

    Example: citeloop sites import examples/sites.csv
    """
    settings = settings_of(context)

    async def work() -> Imported:
        async with _commands(settings) as commands:
            came = await import_sites(commands, file, os.environ, hint, dry_run=dry_run)
        if isinstance(came, int):
            return Imported(lines=came, new=0, changed=0, same=0, dry_run=True)
        lines = came.new + came.changed + came.same
        return Imported(lines=lines, new=came.new, changed=came.changed, same=came.same)

    try:
        done = run(work())
    except BadFile as bad:
        if as_json:
            print_json(bad.faults)
        else:
            for fault in bad.faults[:20]:
                hint(str(fault))
        raise
    if as_json:
        print_json(done)
    elif done.dry_run:
        say(f"{done.lines:,} sites would be registered")
    else:
        say(f"{done.lines:,} sites: {done.new:,} new, {done.changed:,} changed, {done.same:,} as they were")


@sites.command("list")
def list_(
    context: typer.Context,
    kind: Annotated[SiteKind | None, typer.Option(help="Only sites of this kind.")] = None,
    label: Label = None,
    after: Annotated[str | None, typer.Option(help="Begin behind this name.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000)] = 50,
    as_json: AsJson = False,
) -> None:
    """List the registered sites by name, page by page."""

    async def work() -> list[SiteView]:
        async with _commands(settings_of(context)) as commands:
            return await commands.page(after=after, limit=limit + 1, kind=kind, label=label)

    found = run(work())
    rows, more = found[:limit], len(found) > limit
    if as_json:
        items = [row.model_dump(mode="json") for row in rows]
        print_json({"items": items, "next": rows[-1].name if more else None})
        return
    made = table("name", "kind", "address", "user", "rate", "at once", "labels", "state")
    for row in rows:
        made.add_row(
            row.name, row.kind, escape(row.base_url), escape(row.user), row.rate or "none", str(row.concurrency),
            ", ".join(row.labels), row.state,
        )  # fmt: skip
    console().print(made)
    if more:
        hint(f"more: --after {rows[-1].name}")


@sites.command()
def show(context: typer.Context, name: Name, as_json: AsJson = False) -> None:
    """Show one site; its secret is never shown."""

    async def work() -> SiteView:
        async with _commands(settings_of(context)) as commands:
            return await commands.show(name)

    _told(run(work()), as_json=as_json)


@sites.command()
def add(
    context: typer.Context,
    name: Name,
    kind: Annotated[SiteKind, typer.Option(help="What kind of site it is.")],
    url: Annotated[str, typer.Option("--url", help="Such as https://blog.example.com.")],
    user: User = None,
    secret_env: SecretEnv = None,
    secret_stdin: SecretStdin = False,
    rate: Rate = None,
    concurrency: Annotated[int, typer.Option(help="Visits at once, 1 to 10.")] = CONCURRENCY,
    label: Labels = None,
    given: Given = None,
    as_json: AsJson = False,
) -> None:
    """Register a site, or put all of it anew.

    Example: citeloop sites add blog --kind wordpress --url https://blog.example.com --user ann --secret-env BLOG_PW
    """
    entry = SiteEntry(
        name=name, kind=kind, base_url=url, user=user or "", rate=None if rate == "none" else rate,
        concurrency=concurrency, labels=tuple(label or ()), settings=_settings(given or []),
    )  # fmt: skip
    secret = _secret(secret_env, from_stdin=secret_stdin)

    async def work() -> SiteView:
        async with _commands(settings_of(context)) as commands:
            return (await commands.put(entry, secret))[0]

    _told(run(work()), as_json=as_json)


@sites.command("set")
def set_(
    context: typer.Context,
    name: Name,
    url: Url = None,
    user: User = None,
    secret_env: SecretEnv = None,
    secret_stdin: SecretStdin = False,
    rate: Rate = None,
    concurrency: Concurrency = None,
    label: Labels = None,
    given: Given = None,
    as_json: AsJson = False,
) -> None:
    """Change what is named and leave the rest; labels and --set replace all of theirs."""
    changes = Changes(
        base_url=url, user=user, rate="" if rate == "none" else rate, concurrency=concurrency,
        labels=tuple(label) if label else None, settings=_settings(given) if given else None,
    )  # fmt: skip
    secret = _secret(secret_env, from_stdin=secret_stdin)
    _told(_changed(context, name, changes, secret), as_json=as_json)


@sites.command()
def pause(context: typer.Context, name: Name) -> None:
    """Send nothing to a site for now; what is planned for it waits."""
    _changed(context, name, Changes(state=SiteState.PAUSED))
    say(f"{name}: paused")


@sites.command()
def resume(context: typer.Context, name: Name) -> None:
    """Publish to a paused site again; what waits comes back in 2 minutes, after a long pause within the hour."""
    _changed(context, name, Changes(state=SiteState.ACTIVE))
    say(f"{name}: active")


@sites.command()
def remove(context: typer.Context, name: Name) -> None:
    """Forget a site and its secret; what stands on it stays there."""

    async def work() -> None:
        async with _commands(settings_of(context)) as commands:
            await commands.remove(name)

    run(work())
    say(f"{name}: removed")


@sites.command()
def check(
    context: typer.Context,
    names: Annotated[list[str] | None, typer.Argument(help="Only these; sites of channels.toml too.")] = None,
    label: Label = None,
    as_json: AsJson = False,
) -> None:
    """Try address, login and rights of sites, and say what their hosting does to them; exit 1 when one fails."""

    async def work() -> list[Checked]:
        settings = settings_of(context)
        async with probing(settings) as (catalog, outside), _commands(settings) as commands:
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


@sites.command("new-key")
def new_key() -> None:
    """Print a fresh key for CITELOOP_SECRET_KEY; put it before the old one, separated by a comma, to rotate."""
    say(sealing.new_key())


async def _checked(commands: SiteCommands, outside: Outside, names: list[str]) -> list[Checked]:
    slots = asyncio.Semaphore(_CHECKS_AT_ONCE)

    async def one(name: str) -> Checked:
        async with slots:
            report = await commands.check(name, outside)
        problems = tuple(problem.removeprefix(f"{name}: ") for problem in report.problems)
        return Checked(site=name, ok=report.ok, problems=problems, notes=report.notes)

    return list(await asyncio.gather(*(one(name) for name in names)))


def _changed(context: typer.Context, name: str, changes: Changes, secret: str = "") -> SiteView:
    async def work() -> SiteView:
        async with _commands(settings_of(context)) as commands:
            return await commands.change(name, changes, secret)

    return run(work())


@asynccontextmanager
async def _commands(settings: Settings) -> AsyncIterator[SiteCommands]:
    catalog = catalog_of(settings)
    async with reading(settings) as session:
        yield SiteCommands(session.database, catalog, session.tenant, endpoints.secret_key(settings))


def _secret(variable: str | None, *, from_stdin: bool) -> str:
    """Never from the command line itself: every user of the machine could read it there."""
    if from_stdin:
        return sys.stdin.readline().strip()
    if variable is None:
        return ""
    value = os.environ.get(variable, "").strip()
    if not value:
        raise CommandError(f"{variable} is not set", "secret-env", "export it")
    return value


def _settings(given: list[str]) -> dict[str, JsonValue]:
    """`tags=Tea|Oolong` is a list, `owned=false` a truth, `timeouts.total=30s` a part of a table."""
    made: dict[str, JsonValue] = {}
    for one in given:
        key, is_, value = one.partition("=")
        if not is_:
            raise CommandError(f"{one!r} is no setting", "set", "write KEY=VALUE")
        whole, _, part = key.strip().partition(".")
        told: JsonValue = value.strip()
        if whole in _LISTS:
            told = [each.strip() for each in value.split("|") if each.strip()]
        elif value.strip() in {"true", "false"}:
            told = value.strip() == "true"
        if part:
            table_ = made.setdefault(whole, {})
            if not isinstance(table_, dict):
                raise CommandError(f"{whole} is set twice, as a value and as a table", "set", "keep one of the two")
            table_[part] = int(value) if value.strip().isdecimal() else told
        else:
            made[whole] = told
    return made


def _told(site: SiteView, *, as_json: bool) -> None:
    if as_json:
        print_json(site)
        return
    say(f"{site.name}: {site.kind} at {site.base_url}, {site.state}")
    for name, value in (
        ("user", site.user), ("rate", site.rate or "none"), ("at once", site.concurrency),
        ("labels", ", ".join(site.labels)), *sorted(site.settings.items()),
        ("changed", f"{site.updated_at:%Y-%m-%d %H:%M} (revision {site.revision})"),
    ):  # fmt: skip
        if value != "":
            say(f"  {name}: {value}")
