"""channels, and channels check | set | pause | resume: the fleet-wide limits."""

from collections.abc import Awaitable, Callable
from fractions import Fraction
from typing import Annotated

import typer
from rich.markup import escape
from temporalio.client import Client
from temporalio.service import RPCError

from citeloop.channels.outside import Outside
from citeloop.models.channel import ChannelSpec, Trial
from citeloop.models.plan import per_second
from citeloop.models.record import Record
from citeloop.settings import Settings
from citeloop.store.database import OperatorScope
from citeloop.store.repositories import channels as store
from citeloop.store.repositories.channels import ChannelRow
from starter.backlog import Backlog, backlog
from starter.cli.output import console, print_json, say, table
from starter.cli.session import AsJson, probing, reading, run, settings_of
from starter.connecting import connected
from starter.errors import CommandError, NotRunning

channels = typer.Typer(help="The channels, their limits and what waits in their queues.", invoke_without_command=True)

Name = Annotated[str, typer.Argument(help="The channel's name in channels.toml.")]


class Checked(Record):
    channel: str
    ok: bool
    message: str
    tested_against: Trial
    notes: tuple[str, ...] = ()


class Listed(Record):
    channel: ChannelRow
    queue: Backlog | None
    """None: Temporal does not answer."""


@channels.callback()
def list_(context: typer.Context, as_json: AsJson = False) -> None:
    """List the channels: limit, why it is that, backlog, calls, 429s."""
    if context.invoked_subcommand is not None:
        return
    settings = settings_of(context)

    async def work() -> tuple[list[ChannelRow], dict[str, Backlog]]:
        async with reading(settings) as session, session.database.operator() as operator:
            rows = await store.rows(operator)
        return rows, await _backlogs(settings, rows)

    rows, waiting = run(work())
    if as_json:
        print_json([Listed(channel=row, queue=waiting.get(row.name)) for row in rows])
        return
    made = table("channel", "roles", "limit", "why", "backlog", "oldest", "pollers", "calls", "429s", "faults")
    for row in rows:
        queue = waiting.get(row.name)
        made.add_row(
            row.name, ", ".join(row.roles), _shown(row.effective_rate), escape(row.why),
            str(queue.waiting) if queue else "?",
            f"{queue.oldest_seconds:.0f} s" if queue else "?",
            str(queue.pollers) if queue else "?",
            str(row.calls), str(row.limited), str(row.faults),
        )  # fmt: skip
    console().print(made)


@channels.command()
def check(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(help="Only this channel.")] = None,
    as_json: AsJson = False,
) -> None:
    """Try each channel's key, model and reachability; exit 1 when one fails."""

    async def work() -> list[Checked]:
        async with probing(settings_of(context)) as (catalog, outside):
            if name is not None and catalog.channel(name) is None:
                known = ", ".join(channel.name for channel in catalog.channels)
                raise CommandError(f"{name!r} is no channel of channels.toml", "channel", f"choose from: {known}")
            chosen = [channel for channel in catalog.channels if name in {None, channel.name}]
            return [await _checked(outside, channel) for channel in chosen]

    results = run(work())
    if as_json:
        print_json(results)
    else:
        for result in results:
            tested = f"tested against: {result.tested_against}"
            say(f"{'ok ' if result.ok else 'BAD'} {result.channel}: {result.message} ({tested})")
            for note in result.notes:
                say(f"    note: {note}")
    if not all(result.ok for result in results):
        raise typer.Exit(1)


@channels.command("set")
def set_(
    context: typer.Context,
    name: Name,
    rate: Annotated[str, typer.Option(help="Such as 3/s or 12/min; `file` goes back to channels.toml.")],
) -> None:
    """Change a channel's limit now, for the whole fleet.

    Example: citeloop channels set deepseek --rate 3/s
    """
    try:
        wanted: Fraction | None = None if rate == "file" else per_second(rate)
    except ValueError as error:
        raise CommandError(str(error), "rate", "such as 3/s, 12/min or 0") from None
    _write(settings_of(context), name, lambda operator: store.set_rate(operator, name, wanted))
    say(f"{name}: {rate}")


@channels.command()
def pause(
    context: typer.Context,
    name: Name,
    reason: Annotated[str, typer.Option(help="Why; shown in the list.")] = "paused by the operator",
) -> None:
    """Stop all calls of a channel; its work waits."""
    _write(settings_of(context), name, lambda operator: store.pause(operator, name, reason))
    say(f"{name}: paused")


@channels.command()
def resume(context: typer.Context, name: Name) -> None:
    """Let a paused channel call again."""
    _write(settings_of(context), name, lambda operator: store.resume(operator, name))
    say(f"{name}: resumed")


def _write(settings: Settings, name: str, change: Callable[[OperatorScope], Awaitable[None]]) -> None:
    async def work() -> None:
        async with reading(settings) as session, session.database.operator() as operator:
            known = [row.name for row in await store.rows(operator)]
            if name not in known:
                raise CommandError(
                    f"{name!r} is no known channel", "channel", f"choose from: {', '.join(known) or 'none yet'}"
                )
            await change(operator)

    run(work())


async def _checked(outside: Outside, channel: ChannelSpec) -> Checked:
    probe = await outside.probe(channel.name)
    message = probe.said or probe.problem.removeprefix(f"{channel.name}: ")
    return Checked(
        channel=channel.name, ok=probe.ok, message=message, tested_against=probe.tested_against, notes=probe.notes
    )


async def _backlogs(settings: Settings, rows: list[ChannelRow]) -> dict[str, Backlog]:
    """Empty when Temporal does not answer: the rest of the list is still worth showing."""
    try:
        client: Client = await connected(settings)
        return {row.name: await backlog(client, row.queue) for row in rows}
    except (NotRunning, RPCError):
        return {}


def _shown(rate: Fraction | None) -> str:
    return "none" if rate is None else f"{float(rate):g}/s"
