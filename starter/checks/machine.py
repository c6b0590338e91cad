"""This machine: Python, disk, the embedded servers' programs, and the ports they keep."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from starter.checks.findings import Finding, fail, ok, skipped, warn
from starter.embedded import ports
from starter.embedded.postgres import EmbeddedPostgres, binaries
from starter.embedded.process import StartError, left_behind
from starter.embedded.temporal import temporal_binary

OLDEST_PYTHON = (3, 11)
GIB = 2**30
ENOUGH = 5 * GIB
"""Below this a warning."""
LEAST = GIB
"""Below this Postgres may have to stop within days."""
_PATIENCE = 20.0


def python(version: tuple[int, int, int]) -> Finding:
    """version: of the interpreter that runs this."""
    shown = ".".join(map(str, version))
    if version[:2] < OLDEST_PYTHON:
        wanted = ".".join(map(str, OLDEST_PYTHON))
        return fail("python", f"Python {shown} is too old; run `make install PYTHON=/path/to/python{wanted}` or newer")
    return ok("python", f"{shown} at {sys.platform}")


def disk(home: Path, *, enough: int = ENOUGH, least: int = LEAST) -> Finding:
    """Where the embedded servers' data and the traces are. Sizes in bytes."""
    folder = home.absolute()
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        return fail("disk", f"{home} cannot be written to; set CITELOOP_HOME to a folder of your own")
    free = shutil.disk_usage(folder).free
    shown = f"{free / GIB:.1f} GiB free for {home}"
    remedy = "free some space, or set CITELOOP_HOME to a larger disk"
    if free < least:
        return fail("disk", f"only {shown}; {remedy}")
    return warn("disk", f"only {shown}; {remedy}") if free < enough else ok("disk", shown)


async def programs(home: Path, *, temporal: bool, postgres: bool) -> list[Finding]:
    """Whether the embedded servers can be run. False: a server elsewhere is named, and none is needed here."""
    return [
        await _program("temporal program", temporal_binary, "TEMPORAL_ADDRESS", needed=temporal),
        await _program(
            "postgres program",
            lambda: binaries(home / "postgres" / "data") / "postgres",
            "CITELOOP_DATABASE_URL",
            needed=postgres,
        ),
    ]


async def _program(check: str, find: Callable[[], Path], variable: str, *, needed: bool) -> Finding:
    if not needed:
        return skipped(check, f"not needed, since {variable} names a server")
    try:
        path = find()
    except StartError as error:
        return fail(check, str(error))
    try:
        process = await asyncio.create_subprocess_exec(
            str(path), "--version", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        async with asyncio.timeout(_PATIENCE):
            said, _ = await process.communicate()
    except (OSError, TimeoutError) as error:
        return fail(check, f"{path.name} cannot be run ({_words(error)}); install again: rm -rf .venv && make install")
    first = (said.decode(errors="replace").strip().splitlines() or ["nothing"])[0]
    if process.returncode != 0:
        return fail(check, f"{path.name} ends with {first!r}; install again: rm -rf .venv && make install")
    return ok(check, first)


def kept_ports(home: Path) -> list[Finding]:
    """Each port of an earlier `citeloop up` is free, or one of our own processes listens there."""
    known = {**_read(home / "ports.json"), **_read(home / "postgres" / "port.json")}
    if not known:
        return [skipped("ports", "none chosen yet; the first `citeloop up` chooses free ones and keeps them")]
    strange = [name for name, port in known.items() if ports.taken(port) and not _ours(home, name)]
    if not strange:
        return [ok("ports", ", ".join(f"{name} {port}" for name, port in known.items()))]
    return [
        warn(
            "ports",
            f"port {known[name]} of {name} is taken by another program; end that program, "
            "or let the next `citeloop up` choose another port",
        )
        for name in strange
    ]


def _ours(home: Path, name: str) -> bool:
    """Whether the process that keeps this port runs: Temporal has four ports, the others one each."""
    if name == "postgres":
        return EmbeddedPostgres(home / "postgres").left_behind() is not None
    if name.startswith("temporal"):
        return left_behind(home / "temporal" / "temporal.pid") is not None
    return left_behind(home / "run" / f"{name}.pid") is not None


def _read(file: Path) -> dict[str, int]:
    with suppress(OSError, ValueError, AttributeError):
        return {str(name): int(port) for name, port in json.loads(file.read_text()).items()}
    return {}


def _words(error: BaseException) -> str:
    return str(getattr(error, "strerror", None) or error or type(error).__name__)
