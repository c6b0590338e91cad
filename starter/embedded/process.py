"""One child process: its log, its pid file, its health, and how it comes back when it dies."""

import asyncio
import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Protocol

log = logging.getLogger(__name__)

_LOG_LIMIT = 20_000_000
_POLL = 0.1
_BACKOFF = (0.0, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
_STEADY = 30.0
"""Seconds a child must have lived for its next death to count as the first again."""


class StartError(RuntimeError):
    """A child did not come up. The message is for the user: what, where its log is, its last words."""


class Service(Protocol):
    """What the stack keeps alive; `start` after a death brings it back on the same port and data."""

    @property
    def pid(self) -> int | None: ...
    def alive(self) -> bool: ...
    async def start(self) -> None: ...
    async def stop(self) -> None: ...


@dataclass(frozen=True)
class Program:
    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    """Added to the environment of this process."""
    adoptable: bool = False
    """Whether one left behind by a killed supervisor may be kept, if its command line is the same."""
    niceness: int = 0
    """Added to ours, 0 to 19: who gives way to whom on one machine."""
    start_within: timedelta = timedelta(seconds=30)
    stop_within: timedelta = timedelta(seconds=10)


class Child:
    """A program that runs in its own session, so that Ctrl-C in the terminal stops it through us only."""

    def __init__(self, program: Program, folder: Path, healthy: Callable[[], Awaitable[bool]]) -> None:
        self.program = program
        self.log_file = folder / f"{program.name}.log"
        self.pid_file = folder / f"{program.name}.pid"
        self._healthy = healthy
        self._process: asyncio.subprocess.Process | None = None
        self._adopted: int | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else self._adopted

    def alive(self) -> bool:
        if self._process is not None:
            return self._process.returncode is None
        return self._adopted is not None and runs(self._adopted, self.program.argv)

    async def start(self) -> None:
        """Returns when the health check passes. Raises StartError when it does not in time."""
        self._process = self._adopted = None
        left = left_behind(self.pid_file)
        if left is not None:
            if self.program.adoptable and runs(left, self.program.argv) and await self._healthy():
                self._adopted = left
                return
            await end(left, self.program.stop_within)
        await self._spawn()
        await self._until_healthy()

    async def stop(self) -> None:
        pid = self.pid
        if pid is not None and self.alive():
            await end(pid, self.program.stop_within)
        if self._process is not None:
            await self._process.wait()
        self._process = self._adopted = None
        self.pid_file.unlink(missing_ok=True)

    async def _spawn(self) -> None:
        self.log_file.parent.mkdir(parents=True, exist_ok=True)
        if self.log_file.exists() and self.log_file.stat().st_size > _LOG_LIMIT:
            self.log_file.replace(self.log_file.with_suffix(".log.1"))
        with self.log_file.open("ab") as output:
            self._process = await asyncio.create_subprocess_exec(
                *self.program.argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, **self.program.env},
            )
        if self.program.niceness:
            with contextlib.suppress(ProcessLookupError):
                os.setpriority(os.PRIO_PROCESS, self._process.pid, os.nice(0) + self.program.niceness)
        record = {"pid": self._process.pid, "argv": self.program.argv}
        self.pid_file.write_text(json.dumps(record))

    async def _until_healthy(self) -> None:
        deadline = time.monotonic() + self.program.start_within.total_seconds()
        while time.monotonic() < deadline:
            if not self.alive():
                raise StartError(f"{self.program.name} ended while starting{self._last_words()}")
            if await self._healthy():
                return
            await asyncio.sleep(_POLL)
        await self.stop()
        seconds = self.program.start_within.total_seconds()
        raise StartError(f"{self.program.name} did not answer within {seconds:.0f} s{self._last_words()}")

    def _last_words(self) -> str:
        with contextlib.suppress(OSError):
            lines = self.log_file.read_text(errors="replace").strip().splitlines()
            if lines:
                return f"; its log {self.log_file} ends: {lines[-1][:300]}"
        return f"; see {self.log_file}"


async def keep_alive(name: str, service: Service, restarted: Callable[[], None]) -> None:
    """Bring a dead service back, for ever, ever more slowly while it keeps dying. Ends by cancellation."""
    deaths = 0
    up_since = time.monotonic()
    while True:
        await asyncio.sleep(_POLL)
        if service.alive():
            continue
        deaths = 1 if time.monotonic() - up_since > _STEADY else deaths + 1
        pause = _BACKOFF[min(deaths, len(_BACKOFF)) - 1]
        log.warning("%s died; starting it again in %.1f s", name, pause)
        await asyncio.sleep(pause)
        try:
            await service.start()
        except (StartError, OSError) as error:
            log.warning("%s did not come back: %s", name, error)
        else:
            up_since = time.monotonic()
            log.info("%s is back, pid %s", name, service.pid)
            restarted()


def left_behind(pid_file: Path) -> int | None:
    """The pid in the file, if that process still runs the command line recorded beside it."""
    try:
        record = json.loads(pid_file.read_text())
        pid, argv = int(record["pid"]), tuple(record["argv"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return pid if runs(pid, argv) else None


async def end(pid: int, patience: timedelta) -> None:
    """SIGTERM, then SIGKILL to its whole session; returns when the process is gone."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    if await _gone(pid, patience.total_seconds()):
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    await _gone(pid, patience.total_seconds())


async def _gone(pid: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while command_line(pid):
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.05)
    return True


def runs(pid: int, argv: tuple[str, ...]) -> bool:
    """Whether the process is there and was started as `argv`: a reused pid is not ours."""
    return command_line(pid).split() == " ".join(argv).split()


def command_line(pid: int) -> str:
    """How the process was started; empty when it is gone or a zombie."""
    if sys.platform == "linux":
        try:
            raw = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return ""
        return raw.replace(b"\0", b" ").decode(errors="replace").strip()
    shown = subprocess.run(  # noqa: S603
        ["/bin/ps", "-ww", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return "" if "<defunct>" in shown.stdout else shown.stdout.strip()
