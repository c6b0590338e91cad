"""Workers as a fleet runs them: `python worker.py`, each a process of its own."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from starter.simulated import ROOT
from starter.stack import Stack


class Worker:
    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process = process
        self._log = log

    @property
    def log(self) -> str:
        return self._log.read_text()

    async def drained(self, *, within: float = 40) -> int:
        """SIGTERM; the exit code."""
        self._process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(within):
            return await self._process.wait()

    async def ended(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()


@asynccontextmanager
async def worker(stack: Stack, *only: str, name: str = "one") -> AsyncIterator[Worker]:
    """Serves the queues that match `only`, by default all; killed at the end if it still runs."""
    log = stack.home / f"worker-{name}.log"
    arguments = [part for pattern in only for part in ("--only", pattern)]
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(ROOT / "worker.py"),
            *arguments,
            env={**os.environ, **stack.child_env()},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    started = Worker(process, log)
    try:
        yield started
    finally:
        await started.ended()
