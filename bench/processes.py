"""What processes cost, from /proc: processor time and memory of a process and all that it started."""

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self

_TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_MB = 1024 * 1024


def _stat(pid: int) -> list[str]:
    """Fields from the state on; empty when the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def tree(pid: int) -> list[int]:
    """The process and its descendants."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [pid]
    for one in found:
        found += children.get(one, [])
    return found


def cpu_ms(pid: int) -> float:
    """Of the process, of its descendants, and of those that it has already waited for."""
    total = 0.0
    for one in tree(pid):
        if fields := _stat(one):
            total += sum(int(ticks) for ticks in fields[11:15]) * _TICK_MS
    return total


def rss_mb(pid: int) -> float:
    """Resident memory of a lone process; of a family the proportional share, so that what they share counts once."""
    family = tree(pid)
    return sum(_resident(one, shared=len(family) > 1) for one in family) / _MB


def _resident(pid: int, *, shared: bool) -> int:
    """Bytes; 0 when the process is gone."""
    try:
        if shared:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    except OSError:
        return 0


def started_at(pid: int) -> float | None:
    """Seconds since the epoch; None when it is gone."""
    fields = _stat(pid)
    if not fields:
        return None
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    return time.time() - uptime + int(fields[19]) * _TICK_MS / 1000


class Meter:
    """Processor time by name since the meter was made, and the memory of each, once a second."""

    def __init__(self, pids: Callable[[], Mapping[str, int]]) -> None:
        self._pids = pids
        self._before = {name: cpu_ms(pid) for name, pid in pids().items()}
        self.memory: dict[str, list[tuple[float, float]]] = {}
        self._task: asyncio.Task[None] | None = None

    def cpu(self) -> dict[str, float]:
        return {name: cpu_ms(pid) - self._before.get(name, 0.0) for name, pid in self._pids().items()}

    def peak(self, name: str) -> float:
        return max((value for _, value in self.memory.get(name, ())), default=0.0)

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            for name, pid in self._pids().items():
                self.memory.setdefault(name, []).append((time.time(), rss_mb(pid)))
            await asyncio.sleep(1.0)
