"""A sandbox as a real process, and the words to talk to it."""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).parents[2]
QUIET = ROOT / "sandbox" / "quiet.toml"
KEY = {"authorization": "Bearer sandbox-key"}
BLOG = ("citeloop", "sandbox app pass")
FACTS = """<facts>
- [F1] Acmebase stores vectors in files (source: https://acme.example/files)
- [F2] Acmebase answers in 3 languages (source: https://acme.example/languages)
- [F3] Acmebase 可以离线运行。 (source: https://acme.example/offline)
</facts>"""


@dataclass(frozen=True)
class Sandbox:
    url: str
    process: subprocess.Popen[str]

    def set(self, name: str, **fields: Any) -> None:
        httpx.post(verify=False, url=f"{self.url}/_config", json={name: fields}).raise_for_status()

    def reset(self) -> None:
        httpx.post(verify=False, url=f"{self.url}/_reset").raise_for_status()

    def ledger(self, *, times: bool = False) -> Any:
        return httpx.get(verify=False, url=f"{self.url}/_ledger", params={"times": int(times)}).json()

    def client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            verify=False, base_url=self.url, headers=KEY, timeout=20, limits=httpx.Limits(max_connections=None)
        )


@contextmanager
def running(config: Path = QUIET, *, seed: int | None = None) -> Iterator[Sandbox]:
    with tempfile.TemporaryDirectory() as folder:
        port_file = Path(folder) / "port"
        command = [sys.executable, "-m", "sandbox", "--config", str(config), "--port-file", str(port_file)]
        command += [] if seed is None else ["--seed", str(seed)]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            deadline = time.monotonic() + 30
            while not port_file.exists():
                assert process.poll() is None, process.communicate()[0]
                assert time.monotonic() < deadline, "the sandbox wrote no port"
                time.sleep(0.02)
            yield Sandbox(f"http://127.0.0.1:{int(port_file.read_text())}", process)
        finally:
            process.terminate()
            told = process.communicate(timeout=10)[0]
        assert "Traceback" not in told, told


def prompt(keyword: str, *, locale: str = "en", task: str = "generate", draft: str = "", notes: str = "") -> str:
    extra = f"<draft>{draft}</draft>\n<notes>{notes}</notes>" if task == "rewrite" else ""
    return (
        f"Write.\n{FACTS}\n<keyword>{keyword}</keyword>\n<brand>Acmebase</brand>\n<locale>{locale}</locale>\n"
        f"<kind>article</kind>\n<task>{task}</task>\n{extra}"
    )


def chat(text: str, *, stream: bool = False, **fields: Any) -> dict[str, Any]:
    return {"model": "any", "stream": stream, "messages": [{"role": "user", "content": text}], **fields}


async def outcome(client: httpx.AsyncClient, path: str, body: dict[str, Any]) -> str:
    """What befell one call, in a word."""
    try:
        reply = await client.post(path, json=body)
    except httpx.TransportError:
        return "cut"
    if reply.status_code != httpx.codes.OK:
        return str(reply.status_code)
    choice = reply.json()["choices"][0]
    return str(choice["finish_reason"]) if choice["message"]["content"] else "empty"


async def eventually(check: Any, *, seconds: float = 5.0) -> Any:
    """The first truthy value of `check`; fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        found = check()
        if found:
            return found
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.05)


def get(url: str, **params: str) -> httpx.Response:
    return httpx.get(verify=False, url=url, params=params)


def streamed(text: str) -> tuple[str, list[dict[str, Any]]]:
    """The words of a stream, and its chunks."""
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: {")]
    chunks = [json.loads(line) for line in lines]
    deltas = [chunk["choices"][0]["delta"].get("content", "") for chunk in chunks if chunk["choices"]]
    return "".join(deltas), chunks
