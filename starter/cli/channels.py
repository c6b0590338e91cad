"""channels, and channels check | set | pause | resume: the fleet-wide limits."""

import os
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.markup import escape
from temporalio.client import Client
from temporalio.service import RPCError

from citeloop.channels.catalog import missing_keys
from citeloop.channels.outside import Outside
from citeloop.models.channel import ChannelSpec, Trial
from citeloop.models.money import Money
from citeloop.models.record import Record
from citeloop.settings import Settings
from citeloop.store.database import OperatorScope
from citeloop.store.repositories import channels as store
from citeloop.store.repositories.channel_rows import ChannelRow, spend
from starter.backlog import Backlog, backlog
from starter.channel_commands import ChannelChange
from starter.cli.output import console, print_json, say, table
from starter.cli.session import AsJson, probing, reading, run, settings_of
from starter.connecting import connected
from starter.errors import CommandError, NotRunning

channels = typer.Typer(help="The channels, their limits and what waits in their queues.", invoke_without_command=True)

Name = Annotated[str, typer.Argument(help="The channel's name in channels.toml.")]

_GONE = "not in channels.toml"
"""Still listed, as its queue is still served: what waits there is told to move on."""


class Checked(Record):
    channel: str
    ok: bool
    message: str
    tested_against: Trial
    notes: tuple[str, ...] = ()


class Listed(Record):
    channel: ChannelRow
    limit: float | None
    """Calls per second that may be made now; None is unlimited."""
    why: str
    used: float
    """Calls per second over the last minute."""
    spent_today: tuple[Money, ...]
    """By all tenants, since midnight UTC."""
    queue: Backlog | None
    """None: Temporal does not answer."""


@channels.callback()
def list_(context: typer.Context, as_json: AsJson = False) -> None:
    """List the channels: the limit and whose it is, use, backlog, 429s, spend. `slots` are calls at once per worker.

    Those that are no longer in channels.toml come last: what waits in their queues is told to move on.
    """
    if context.invoked_subcommand is not None:
        return
    listed = run(_listed(settings_of(context)))
    if as_json:
        print_json(listed)
        return
    made = table(
        "channel", "roles", "limit", "why", "used", "slots", "backlog", "oldest", "pollers", "calls", "429s", "faults",
        "today",
    )  # fmt: skip
    for one in listed:
        row, queue = one.channel, one.queue
        made.add_row(
            row.name, ", ".join(row.roles), "none" if one.limit is None else f"{one.limit:g}/s", escape(one.why),
            _used(one), str(row.concurrency),
            str(queue.waiting) if queue else "?",
            f"{queue.oldest_seconds:.0f} s" if queue else "?",
            str(queue.pollers) if queue else "?",
            str(row.calls), str(row.limited), str(row.faults),
            ", ".join(f"{spent.micros / 1e6:.2f} {spent.currency}" for spent in one.spent_today) or "0",
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
            lacking = {one.name: one.message for one in missing_keys(catalog, os.environ, [one.name for one in chosen])}
            return [await _checked(outside, channel, lacking.get(channel.name, "")) for channel in chosen]

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
    rate: Annotated[
        str | None, typer.Option(help="Such as 3/s or 12/min; 0 stops it; `file` goes back to channels.toml.")
    ] = None,
    concurrency: Annotated[
        str | None, typer.Option(help="Calls at once of each worker; `file` goes back to channels.toml.")
    ] = None,
    reset: Annotated[
        bool, typer.Option("--reset", help="Back to channels.toml in everything, without delays, quotas and cuts.")
    ] = False,
) -> None:
    """Change a channel's limits now, for the whole fleet.

    Example: citeloop channels set deepseek --rate 3/s --concurrency 4
    """
    if rate is None and concurrency is None and not reset:
        raise CommandError("nothing to set", "rate", "give --rate, --concurrency or --reset")
    wanted = [ChannelChange.rate(rate)] if rate is not None else []
    wanted += [ChannelChange.concurrency(concurrency)] if concurrency is not None else []

    async def change(operator: OperatorScope) -> None:
        if reset:
            await store.reset(operator, name)
        for one in wanted:
            await one.write(operator, name)

    _write(settings_of(context), name, change)
    said = ["back to channels.toml"] if reset else []
    say(f"{name}: {', '.join([*said, *(one.said for one in wanted)])}")


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
    """Let a paused channel call again, and close its breaker."""
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


async def _checked(outside: Outside, channel: ChannelSpec, lacking: str) -> Checked:
    probe = await outside.probe(channel.name)
    message = lacking or probe.said or probe.problem.removeprefix(f"{channel.name}: ")
    return Checked(
        channel=channel.name, ok=probe.ok, message=message, tested_against=probe.tested_against, notes=probe.notes
    )


async def _listed(settings: Settings) -> list[Listed]:
    async with reading(settings) as session, session.database.operator() as operator:
        rows = await store.rows(operator)
        spent = await spend(operator, datetime.now(UTC).date())
    waiting = await _backlogs(settings, rows)
    return [
        Listed(
            channel=row,
            limit=None if row.effective_rate is None else float(row.effective_rate),
            why=_GONE if row.vanished else row.why,
            used=round(row.calls_last_minute / 60, 3),
            spent_today=spent.get(row.name, ()),
            queue=waiting.get(row.name),
        )
        for row in sorted(rows, key=lambda row: row.vanished)
    ]


async def _backlogs(settings: Settings, rows: list[ChannelRow]) -> dict[str, Backlog]:
    """Empty when Temporal does not answer: the rest of the list is still worth showing."""
    try:
        client: Client = await connected(settings)
        return {row.name: await backlog(client, row.queue) for row in rows}
    except (NotRunning, RPCError):
        return {}


def _used(one: Listed) -> str:
    """The last minute's calls per second, then what is left of other allowances."""
    row = one.channel
    shown = [f"{one.used:.2g}/s"]
    if row.tokens_per_minute is not None:
        shown.append(f"{row.tokens_last_minute} of {row.tokens_per_minute} tokens/min")
    if row.calls_per_day is not None:
        shown.append(f"{row.calls_of_quota} of {row.calls_per_day} calls/day")
    if row.tokens_per_day is not None:
        shown.append(f"{row.tokens_of_quota} of {row.tokens_per_day} tokens/day")
    return ", ".join(shown)
