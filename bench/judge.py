"""The sandbox as a process, and its desk: settings changed live, the ledger read."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from bench import referee
from bench.referee import Ledger
from starter.embedded import ports
from starter.embedded.process import Child, Program

Totals = dict[str, Any]
_POLL = 0.25


class Judge:
    def __init__(self, url: str) -> None:
        self.url = url
        self._http = httpx.AsyncClient(base_url=url, trust_env=False, timeout=30)

    async def close(self) -> None:
        await self._http.aclose()

    async def configure(self, **changes: dict[str, Any]) -> None:
        (await self._http.post("/_config", json=changes)).raise_for_status()

    async def limit_next(self, service: str, seconds: float) -> None:
        """The service's next call is answered 429 with that Retry-After."""
        (await self._http.post("/_limit", json={service: seconds})).raise_for_status()

    async def totals(self) -> Totals:
        """calls, ok, limited, bought_twice, posts, duplicate_posts …; and `inside`: calls on the wire now."""
        reply = (await self._http.get("/_ledger")).json()
        inside = sum(int(entry["inside"]) for entry in reply["providers"].values())
        return {**reply["totals"], "inside": inside}

    async def ledger(self) -> Ledger:
        reply = await self._http.get("/_ledger", params={"times": "1", "journal": "1"})
        reply.raise_for_status()
        return referee.read(reply.json())

    async def until(
        self,
        enough: Callable[[Totals], bool],
        *,
        within: float,
        quiet: float = 40.0,
        tell: Callable[[Totals, float], None] = lambda _, __: None,
    ) -> bool:
        """Whether the ledger came to be enough, before time was up and before all had been silent for `quiet`."""
        began = stirred = time.monotonic()
        before = -1
        while True:
            totals = await self.totals()
            now = time.monotonic()
            tell(totals, now - began)
            if enough(totals):
                return True
            moved = int(totals["calls"]) + int(totals["posts"])
            if moved != before or totals["inside"]:
                before, stirred = moved, now
            if now - stirred > quiet or now - began > within:
                return False
            await asyncio.sleep(_POLL)


@asynccontextmanager
async def sandbox(config: Path, folder: Path) -> AsyncIterator[tuple[Judge, int]]:
    """A sandbox of its own, for contenders that bring no stack: its judge and its process id."""
    (port,) = ports.free(1)
    judge = Judge(f"http://{ports.LOOPBACK}:{port}")

    async def healthy() -> bool:
        try:
            await judge.totals()
        except httpx.HTTPError:
            return False
        return True

    argv = (sys.executable, "-m", "sandbox", "--config", str(config), "--port", str(port))
    child = Child(Program("sandbox", argv), folder, healthy)
    await child.start()
    try:
        yield judge, child.pid or 0
    finally:
        await child.stop()
        await judge.close()
