"""sites import | add | set | pause | resume | remove: what a tenant says of its sites."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from pydantic import JsonValue

from citeloop.models.channel import SiteKind
from citeloop.models.record import Record
from citeloop.models.site import SiteEntry, SiteState, SiteView
from starter.cli.output import hint, print_json, say
from starter.cli.session import AsJson, registry, run, settings_of
from starter.errors import CommandError
from starter.site_commands import Changes
from starter.site_files import CONCURRENCY, BadFile, import_sites

Name = Annotated[str, typer.Argument(help="The site's name.")]
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


class Imported(Record):
    lines: int
    new: int
    changed: int
    same: int
    dry_run: bool = False


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
        async with registry(settings) as commands:
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
        async with registry(settings_of(context)) as commands:
            return (await commands.put(entry, secret))[0]

    tell(run(work()), as_json=as_json)


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
    tell(_changed(context, name, changes, secret), as_json=as_json)


def pause(context: typer.Context, name: Name) -> None:
    """Send nothing to a site for now; what is planned for it waits."""
    _changed(context, name, Changes(state=SiteState.PAUSED))
    say(f"{name}: paused")


def resume(context: typer.Context, name: Name) -> None:
    """Publish to a paused site again; what waits comes back in 2 minutes, after a long pause within the hour."""
    _changed(context, name, Changes(state=SiteState.ACTIVE))
    say(f"{name}: active")


def remove(context: typer.Context, name: Name) -> None:
    """Forget a site and its secret; what stands on it stays there."""

    async def work() -> None:
        async with registry(settings_of(context)) as commands:
            await commands.remove(name)

    run(work())
    say(f"{name}: removed")


def tell(site: SiteView, *, as_json: bool) -> None:
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


def _changed(context: typer.Context, name: str, changes: Changes, secret: str = "") -> SiteView:
    async def work() -> SiteView:
        async with registry(settings_of(context)) as commands:
            return await commands.change(name, changes, secret)

    return run(work())


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
