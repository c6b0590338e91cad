"""The real sandbox as a process of its own, without faults, on a free loopback port."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from starter import simulated
from starter.embedded import ports
from starter.embedded.process import Child, Program

ROOT = Path(__file__).resolve().parents[1]


class Sandbox:
    """Its address, its ledger, and the means to change it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.environ = {**simulated.ENVIRONMENT, "CITELOOP_SANDBOX_URL": url}
        self._http = httpx.AsyncClient(base_url=url, trust_env=False, timeout=10)

    async def configure(self, **changes: dict[str, Any]) -> None:
        """Such as `configure(deepseek={"http_500": 1.0})`, until the next reset."""
        (await self._http.post("/_config", json=changes)).raise_for_status()

    async def reset(self) -> None:
        (await self._http.post("/_reset")).raise_for_status()

    async def ledger(self) -> dict[str, Any]:
        reply = await self._http.get("/_ledger", params={"times": "1"})
        reply.raise_for_status()
        written: dict[str, Any] = reply.json()
        return written

    async def close(self) -> None:
        await self._http.aclose()


@pytest.fixture(scope="session")
async def sandbox_process(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    """The address of the one sandbox of this session."""
    (port,) = ports.free(1)
    url = f"http://{ports.LOOPBACK}:{port}"

    async def healthy() -> bool:
        try:
            async with httpx.AsyncClient(trust_env=False, timeout=2) as client:
                return (await client.get(f"{url}/_healthz")).status_code == httpx.codes.OK
        except httpx.HTTPError:
            return False

    argv = (sys.executable, "-m", "sandbox", "--config", str(ROOT / "sandbox" / "quiet.toml"), "--port", str(port))
    child = Child(Program("sandbox", argv), tmp_path_factory.mktemp("sandbox"), healthy)
    await child.start()
    yield url
    await child.stop()


@pytest.fixture
async def sandbox(sandbox_process: str) -> AsyncIterator[Sandbox]:
    """As it was at the start, for each test."""
    made = Sandbox(sandbox_process)
    await made.reset()
    yield made
    await made.close()
