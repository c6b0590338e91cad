"""key create | list | revoke: who may use the HTTP API."""

from typing import Annotated

import typer
from rich.markup import escape

from citeloop.store.repositories.api_keys import KeyRole, KeyView
from starter import keys as actions
from starter.cli.output import console, hint, print_json, say, table
from starter.cli.session import AsJson, reading, run, settings_of

keys = typer.Typer(help="Keys of the HTTP API.", no_args_is_help=True)


@keys.command()
def create(
    context: typer.Context,
    name: Annotated[str, typer.Option(help="Whose key it is; stands in the audit of what is done with it.")],
    role: Annotated[KeyRole, typer.Option(help="A viewer may look at everything and change nothing.")],
    as_json: AsJson = False,
) -> None:
    """Make a key and print it: this once.

    Example: citeloop key create --role operator --name ci
    """

    async def work() -> actions.MadeKey:
        async with reading(settings_of(context)) as session:
            return await actions.create(session.database, session.tenant, name, role)

    made = run(work())
    if as_json:
        print_json(made)
        return
    say(made.key)
    hint(f"{made.name} ({made.role}). Keep it now: it is not shown again.")


@keys.command("list")
def list_(context: typer.Context, as_json: AsJson = False) -> None:
    """List the tenant's keys; only their beginnings are known."""

    async def work() -> list[KeyView]:
        async with reading(settings_of(context)) as session:
            return await actions.listed(session.database, session.tenant)

    rows = run(work())
    if as_json:
        print_json(rows)
        return
    made = table("id", "name", "role", "begins", "made", "last used", "revoked")
    for row in rows:
        used = f"{row.last_used_at:%Y-%m-%d %H:%M}" if row.last_used_at else "never"
        revoked = f"{row.revoked_at:%Y-%m-%d %H:%M}" if row.revoked_at else ""
        made.add_row(row.id, escape(row.name), row.role, row.prefix, f"{row.created_at:%Y-%m-%d}", used, revoked)
    console().print(made)


@keys.command()
def revoke(
    context: typer.Context,
    key: Annotated[str, typer.Argument(help="Its id, or its beginning as the list shows it.")],
) -> None:
    """End a key, from the next request on."""

    async def work() -> KeyView:
        async with reading(settings_of(context)) as session:
            return await actions.revoke(session.database, session.tenant, key)

    ended = run(work())
    say(f"{ended.prefix}… ({ended.name}) is revoked")
