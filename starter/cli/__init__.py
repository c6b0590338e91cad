"""The `citeloop` command."""

import asyncio
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from pydantic import ValidationError
from temporalio.service import RPCError

from citeloop.channels.catalog import CatalogError
from citeloop.rules.requests import RequestError, explained
from citeloop.store.errors import StoreUnavailable
from starter.cli import correcting, looking, operating, steering, submitting
from starter.cli.channels import channels
from starter.cli.decoding import decode
from starter.cli.doctor import doctor
from starter.cli.keys import keys
from starter.cli.session import make_settings
from starter.cli.sites import sites
from starter.embedded.process import StartError
from starter.endpoints import DATABASE_REMEDY, TEMPORAL_REMEDY
from starter.errors import CommandError

INTERRUPTED = 130

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="From a keyword to a measured AI answer, durably.",
)


def _version(wanted: bool) -> None:
    if wanted:
        operating.version()
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    home: Annotated[Path | None, typer.Option(help="Data folder; default .citeloop or CITELOOP_HOME.")] = None,
    channels: Annotated[Path | None, typer.Option(help="channels.toml, or CITELOOP_CHANNELS.")] = None,
    tenant: Annotated[str | None, typer.Option(help="Tenant, or CITELOOP_TENANT.")] = None,
    _: Annotated[bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)] = False,
) -> None:
    context.obj = make_settings(home, channels, tenant)


for command in (
    operating.up, operating.down, operating.demo, submitting.submit, submitting.campaign,
    looking.status, looking.watch, looking.trace,
    steering.pause, steering.resume, steering.cancel, steering.approve, steering.send_back,
    steering.reject, steering.priority, steering.retry,
    correcting.correct, correcting.unpublish,
    operating.worker, operating.version,
):  # fmt: skip
    app.command()(command)
app.command("campaigns")(looking.show_campaigns)
app.command("open")(looking.open_)
app.command()(doctor)
app.command()(decode)
app.add_typer(channels, name="channels")
app.add_typer(sites, name="sites")
app.add_typer(operating.db, name="db")
app.add_typer(keys, name="key")


def main() -> NoReturn:
    """Never returns: a native runtime that aborts at interpreter exit must not falsify the exit code."""
    code = 1
    try:
        code = run()
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                code = code or 1
        os._exit(code)


def run(arguments: Sequence[str] | None = None) -> int:
    """One command, errors told on stderr; returns the exit code. None takes the process's own arguments."""
    try:
        code = app(arguments, standalone_mode=False)
    except (KeyboardInterrupt, asyncio.CancelledError):
        return INTERRUPTED
    except typer.TyperException as error:
        return _misused(error)
    except CommandError as error:
        return _fail(str(error), error.exit_code)
    except Exception as error:  # noqa: BLE001 - the last line before the user
        return _fail(*_explained(error))
    return code if isinstance(code, int) else 0


def _explained(error: Exception) -> tuple[str, int]:
    if isinstance(error, CatalogError | RequestError):
        return str(error), 2
    if isinstance(error, ValidationError):
        return str(explained(error, "settings")), 2
    if isinstance(error, StoreUnavailable):
        return f"database: {_first_line(error)}; {DATABASE_REMEDY}", 3
    if isinstance(error, RPCError):
        return f"temporal: {_first_line(error)}; {TEMPORAL_REMEDY}", 3
    if isinstance(error, StartError):
        return _first_line(error), 1
    if os.environ.get("CITELOOP_DEBUG"):
        traceback.print_exception(error)
    return f"{type(error).__name__}: {_first_line(error)}; set CITELOOP_DEBUG=1 to see where", 1


def _misused(error: typer.TyperException) -> int:
    """Bad flags and unknown commands. A command group without a command shows its help."""
    text = error.format_message().replace("Value error, ", "")
    if "\n" in text:
        sys.stderr.write(text + "\n")
        return error.exit_code
    return _fail(f"usage: {text.rstrip('.')}; see `citeloop --help`", error.exit_code)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


def _fail(text: str, code: int) -> int:
    sys.stderr.write(f"error: {text}\n".replace("\r", " "))
    return code
