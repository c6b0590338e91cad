"""`citeloop up` and `down`: the stack as a foreground process, detached, and stopped from elsewhere."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from citeloop.settings import Settings
from starter import endpoints, lock, simulated
from starter.embedded.postgres import EmbeddedPostgres
from starter.embedded.process import end, left_behind
from starter.endpoints import Endpoints
from starter.errors import CommandError, Conflict, NotRunning
from starter.stack import Parts, Stack

_START_PATIENCE = timedelta(seconds=120)
_STOP_PATIENCE = timedelta(seconds=60)


def parts_of(settings: Settings, *, worker: bool, api: bool, sandbox: Path | None) -> Parts:
    """What the environment names already is not started."""
    profile = endpoints.temporal_profile()
    secret, owner = settings.database_url, settings.database_owner_url
    channels = settings.channels
    if sandbox is not None and "channels" not in settings.model_fields_set:
        channels = simulated.CHANNELS
    if worker and not channels.exists():
        raise CommandError(
            f"{channels} is not there",
            "channels",
            "copy examples/channels.toml to it and name your channels, or use `citeloop up --sandbox`",
        )
    return Parts(
        home=settings.home,
        channels=channels,
        tenant=settings.tenant,
        temporal_address=profile.get("target_host"),
        namespace=profile.get("namespace") or "default",
        database_url=secret.get_secret_value() if secret else None,
        database_owner_url=owner.get_secret_value() if owner else None,
        sandbox=sandbox,
        worker=worker,
        api=api,
        env=simulated.ENVIRONMENT if sandbox is not None else {},
    )


async def serve(parts: Parts, say: Callable[[str], None]) -> None:
    """Until SIGINT, SIGTERM or SIGHUP (a closed terminal), also while it starts; then all is stopped in order."""
    stop = asyncio.Event()
    loop, starting = asyncio.get_running_loop(), asyncio.current_task()

    def halt() -> None:
        if starting is not None and not stop.is_set():
            starting.cancel()
        stop.set()

    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(name, halt)
    async with Stack(parts, say=say):
        starting = None
        say("up; stop with Ctrl-C or `citeloop down`")
        await stop.wait()
        say("stopping")


def detach(home: Path, arguments: list[str], *, patience: timedelta = _START_PATIENCE) -> Endpoints:
    """Start `citeloop up` in the background; returns when everything answers.

    Conflict, or NotRunning where a server does not answer; nothing of it is left running then.
    """
    if (holder := lock.holder(home)) is not None:
        remedy = "use it as it is; a changed channels.toml or key takes effect after `citeloop down` and `citeloop up`"
        raise Conflict(f"{home} is already run by process {holder}", "home", remedy)
    (home / "run").mkdir(parents=True, exist_ok=True)
    log = home / "run" / "up.log"
    with log.open("wb") as output:
        child = subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", "from starter.cli import main; main()", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    deadline = time.monotonic() + patience.total_seconds()
    while time.monotonic() < deadline:
        known = endpoints.read(home)
        if known is not None and known.ready and known.supervisor == child.pid:
            return known
        if child.poll() is not None:
            break
        time.sleep(0.1)
    late = child.poll() is None
    if late:
        _give_up(home, child)
    last = (log.read_text(errors="replace").strip().splitlines()[-1:] or ["no output"])[0].removeprefix("error: ")
    if child.returncode == NotRunning.exit_code:
        raise NotRunning(f"the stack did not come up: {last}", "up", f"see {log}")
    within = f" within {patience.total_seconds():g} s and was stopped" if late else ""
    raise Conflict(f"the stack did not come up{within}: {last}", "up", f"see {log}")


def _give_up(home: Path, child: subprocess.Popen[bytes]) -> None:
    """End what did not come up in time, with all that it has started: nobody would ever stop it."""
    child.terminate()
    try:
        child.wait(_STOP_PATIENCE.total_seconds())
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    asyncio.run(clear(home))


async def stop(home: Path) -> int:
    """End the stack of this home, and whatever a killed one left behind. Returns how many processes ended."""
    ended = 0
    if (holder := lock.holder(home)) is not None:
        os.kill(holder, signal.SIGTERM)
        deadline = time.monotonic() + _STOP_PATIENCE.total_seconds()
        while lock.holder(home) is not None and time.monotonic() < deadline:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.1)
        ended += 1
    return ended + await clear(home)


async def clear(home: Path) -> int:
    """End the children that a killed supervisor left running."""
    ended = 0
    for pid_file in (*(home / "run").glob("*.pid"), *(home / "temporal").glob("*.pid")):
        pid = left_behind(pid_file)
        if pid is not None:
            await end(pid, timedelta(seconds=10))
            ended += 1
        pid_file.unlink(missing_ok=True)
    if (home / "postgres" / "data" / "postmaster.pid").exists():
        postgres = EmbeddedPostgres(home / "postgres")
        await postgres.start()  # adopts what is there: only so can it be stopped in order
        await postgres.stop()
        ended += 1
    endpoints.file_of(home).unlink(missing_ok=True)
    return ended
