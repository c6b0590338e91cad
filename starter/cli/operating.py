"""up, down, demo, worker, db, version: running the thing itself.

The stack and the migrations are imported where they are used: all other commands start without them.
"""

import importlib.metadata
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from citeloop import sealing
from starter import endpoints, simulated
from starter.cli.output import console, print_json, say
from starter.cli.session import AsJson, run, settings_of

db = typer.Typer(help="The database's schema.", no_args_is_help=True)


def up(
    context: typer.Context,
    detach: Annotated[bool, typer.Option("--detach", help="Return as soon as everything answers.")] = False,
    worker: Annotated[bool, typer.Option(help="Also run a worker.")] = True,
    api: Annotated[bool, typer.Option(help="Also run the HTTP API.")] = True,
    sandbox: Annotated[bool, typer.Option("--sandbox", help="Also play the outside world.")] = False,
    scenario: Annotated[Path | None, typer.Option(help="The sandbox's TOML file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run Temporal and Postgres here, with a worker and the API, until Ctrl-C.

    What TEMPORAL_ADDRESS or CITELOOP_DATABASE_URL name is used as it is and not started.

    Example: citeloop up --detach --sandbox
    """
    from starter import running

    settings = settings_of(context)
    file = scenario or (simulated.SCENARIO if sandbox else None)
    parts = running.parts_of(settings, worker=worker, api=api, sandbox=file)
    if not detach:
        run(running.serve(parts, say))
        return
    arguments = ["--home", str(settings.home), "--tenant", settings.tenant]
    if "channels" in settings.model_fields_set:
        arguments += ["--channels", str(settings.channels)]
    arguments += ["up", "--worker" if worker else "--no-worker", "--api" if api else "--no-api"]
    if file is not None:
        arguments += ["--scenario", str(file)]
    known = running.detach(settings.home, arguments)
    if as_json:
        print_json(known)
    else:
        say(f"up: Temporal {known.temporal}, UI {known.ui or 'elsewhere'}, API {known.api or 'not started'}")


def down(context: typer.Context) -> None:
    """Stop what `citeloop up` runs; its data is kept."""
    from starter import running

    ended = run(running.stop(settings_of(context).home))
    say("stopped" if ended else "nothing was running")


def demo(
    context: typer.Context,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the stack up afterwards.")] = False,
) -> None:
    """Run a real campaign of 24 keywords against the sandbox, in a home of its own.

    Everything outside is simulated on this machine; everything inside is the product.
    """
    from starter import demo as demonstration

    passed = run(demonstration.demo(settings_of(context).home / "demo", console(), keep=keep))
    if not passed:
        raise typer.Exit(1)


def worker(
    context: typer.Context,
    only: Annotated[list[str] | None, typer.Option(help="Serve this queue only; may be repeated.")] = None,
) -> None:
    """Run a worker in this terminal.

    Example: citeloop worker --only channel.deepseek --only channel.qwen
    """
    settings = settings_of(context)
    address, namespace, _ = endpoints.temporal(settings)
    known = endpoints.read(settings.home)
    environment = {
        **os.environ,
        **(known.env if known else {}),
        "CITELOOP_HOME": str(settings.home),
        "CITELOOP_TENANT": settings.tenant,
        "CITELOOP_CHANNELS": str(endpoints.channels_file(settings)),
        "CITELOOP_DATABASE_URL": endpoints.database_url(settings),
        "TEMPORAL_ADDRESS": address,
        "TEMPORAL_NAMESPACE": namespace,
    }
    if known is not None and known.api is not None:
        environment.setdefault("CITELOOP_CALLBACK_BASE_URL", known.api)
    if (key := endpoints.secret_key(settings)) is not None:
        environment.setdefault(sealing.VARIABLE, key)
    arguments = [part for queue in only or () for part in ("--only", queue)]
    os.execve(sys.executable, [sys.executable, str(simulated.ROOT / "worker.py"), *arguments], environment)  # noqa: S606


def version(as_json: AsJson = False) -> None:
    """Print the version."""
    number = importlib.metadata.version("citeloop")
    print_json({"version": number}) if as_json else say(f"citeloop {number}")


@db.command()
def upgrade(context: typer.Context) -> None:
    """Bring the schema to this version; safe to repeat."""
    from citeloop.store import migrate

    url = endpoints.database_owner_url(settings_of(context))
    run(migrate.upgrade(url))
    say(f"the schema is at {migrate.head_revision()}")
