"""The stack that `citeloop up` keeps on this machine: whether it runs, and whether all its parts do."""

from pathlib import Path

import httpx

from starter import endpoints, lock
from starter.checks.findings import Finding, fail, listed, ok, skipped, warn
from starter.embedded.postgres import EmbeddedPostgres
from starter.embedded.process import command_line, left_behind
from starter.endpoints import Endpoints

_PATIENCE = 3.0


async def stack(home: Path) -> list[Finding]:
    """Not running is no failure here: what then does not answer is one, in its own group."""
    known, holder = endpoints.read(home), lock.holder(home)
    if holder is None:
        left = _left_behind(home)
        if left:
            return [
                warn(
                    "stack",
                    f"a killed `citeloop up` left {listed(left)} running; "
                    "`citeloop up` takes them over, `citeloop down` ends them",
                )
            ]
        return [skipped("stack", f"not running in {home}; `citeloop up --detach` starts it")]
    if known is None or not known.ready:
        return [warn("stack", f"process {holder} is still starting it; ask again, or see {home / 'run' / 'up.log'}")]
    dead = [name for name, pid in known.pids.items() if not command_line(pid)]
    if dead:
        return [fail("stack", f"{name} keeps dying; its last words stand in {_log(home, name)}") for name in dead]
    stack_ = ok("stack", f"process {holder} keeps {listed(known.pids)} alive")
    return [stack_, *_unread(home, Path(known.channels)), *await _api(known)]


def _unread(home: Path, channels: Path) -> list[Finding]:
    """Worker and API read channels.toml when they start, and the pid file of each is as old as its process."""
    pid_files = (home / "run" / "worker.pid", home / "run" / "api.pid")
    try:
        changed = channels.stat().st_mtime
    except OSError:
        return []
    before = [file.stem for file in pid_files if file.exists() and file.stat().st_mtime < changed]
    if not before:
        return []
    said = f"{channels} was changed after {' and '.join(before)} had read it"
    return [warn("stack", f"{said}; `citeloop down` and `citeloop up` let it take effect")]


async def _api(known: Endpoints) -> list[Finding]:
    if known.api is None:
        return []
    try:
        async with httpx.AsyncClient(timeout=_PATIENCE, trust_env=False) as client:
            reply = await client.get(f"{known.api}/healthz")
    except httpx.HTTPError as error:
        said = type(error).__name__
    else:
        if reply.status_code == httpx.codes.OK:
            return [ok("api", f"answers at {known.api}")]
        said = f"HTTP {reply.status_code}"
    return [fail("api", f"{known.api} does not answer ({said}); `citeloop down`, then `citeloop up --detach`")]


def _left_behind(home: Path) -> list[str]:
    files = (*(home / "temporal").glob("*.pid"), *(home / "run").glob("*.pid"))
    found = [file.stem for file in files if left_behind(file) is not None]
    return ["postgres", *found] if EmbeddedPostgres(home / "postgres").left_behind() is not None else found


def _log(home: Path, name: str) -> Path:
    folder = {"temporal": "temporal", "postgres": "postgres"}.get(name, "run")
    return home / folder / f"{name}.log"
