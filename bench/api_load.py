"""How much the HTTP API takes on this machine: submissions for half a minute, then reads at a fixed rate.

Everything runs here: embedded Temporal and Postgres, a worker that meanwhile works on what was submitted, the
sandbox, the API, and the client in a process of its own. Requests are sent by the clock whether or not earlier
ones have been answered, so that a slow answer delays no later request and hides nothing.

    python bench/api_load.py --seconds 30 --submissions 55 --reads 100
"""

import argparse
import asyncio
import json
import random
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
from rich.console import Console
from rich.table import Table
from sqlalchemy import text

from citeloop.store.database import Database
from citeloop.store.repositories.api_keys import KeyRole
from citeloop.store.repositories.tenants import TenantRow
from starter import files, keys, simulated
from starter.connecting import tenant_of
from starter.stack import Parts, Stack

PAGE = 50
CONNECTIONS = 32
PATIENCE = 600
ADMITTED = text("SELECT count(*), count(started_at) FROM articles WHERE tenant_id = :tenant")


class Line:
    """One kept connection. The common clients cost as much as the API itself, on the same two cores."""

    def __init__(self, url: str, key: str) -> None:
        self._where = urlsplit(url)
        self._key = key
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, body: Any) -> tuple[int, bytes]:
        """OSError or EOFError when the connection is lost."""
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._where.hostname, self._where.port)
        reader, writer = self._streams
        content = b"" if body is None else json.dumps(body).encode()
        writer.write(
            f"{method} {path} HTTP/1.1\r\nHost: {self._where.netloc}\r\nAuthorization: Bearer {self._key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n".encode()
            + content
        )
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head)
        return int(head[9:12]), await reader.readexactly(int(length[1]) if length else 0)


class Load:
    """Requests by the clock; latencies in seconds, by status."""

    def __init__(self, url: str, key: str) -> None:
        self._idle: asyncio.Queue[Line] = asyncio.Queue()
        for _ in range(CONNECTIONS):
            self._idle.put_nowait(Line(url, key))
        self.latencies: list[float] = []
        self.statuses: Counter[str] = Counter()
        self.answers: list[bytes] = []

    async def run(self, requests: list[tuple[str, str, Any]], rate: float) -> float:
        """Seconds from the first request to the last answer."""
        began = time.perf_counter()
        sent = []
        for number, request in enumerate(requests):
            await asyncio.sleep(max(0.0, began + number / rate - time.perf_counter()))
            sent.append(asyncio.create_task(self._one(*request, due=began + number / rate)))
        await asyncio.gather(*sent)
        return time.perf_counter() - began

    async def _one(self, method: str, path: str, body: Any, *, due: float) -> None:
        """The latency counts from when the request was due, not from when a connection was free for it."""
        line = await self._idle.get()
        try:
            status, answer = await line.ask(method, path, body)
            self.statuses[str(status)] += 1
            self.answers.append(answer)
        except (OSError, EOFError) as error:
            self.statuses[type(error).__name__] += 1
        finally:
            self._idle.put_nowait(line)
        self.latencies.append(time.perf_counter() - due)

    def percentile(self, share: float) -> float:
        """In milliseconds."""
        ordered = sorted(self.latencies)
        return round(1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))], 1)

    def report(self, seconds: float) -> dict[str, Any]:
        return {
            "requests": len(self.latencies),
            "per_second": round(len(self.latencies) / seconds, 1),
            "statuses": dict(self.statuses),
            "p50_ms": self.percentile(0.5),
            "p99_ms": self.percentile(0.99),
            "max_ms": self.percentile(1.0),
        }


async def client(url: str, key: str, seconds: int, submissions: int, reads: int) -> dict[str, Any]:
    """In a process of its own: its work is not the API's."""
    run = f"{time.time():.0f}"
    writing = Load(url, key)
    took = await writing.run(
        [
            ("POST", "/v1/articles", {"brand": "milvus", "keyword": f"load {run} {n}", "review": {"mode": "auto"}})
            for n in range(seconds * submissions)
        ],
        submissions,
    )
    made = {known for answer in writing.answers if (known := json.loads(answer).get("id"))}
    reading = Load(url, key)
    read_in = await reading.run(_reads(sorted(made), seconds * reads), reads)
    return {"submissions": writing.report(took), "accepted": len(made), "reads": reading.report(read_in)}


def _reads(made: list[str], number: int) -> list[tuple[str, str, Any]]:
    """Half single articles, the rest lists, events and drafts: what a dashboard asks."""
    choose = random.Random(7)  # noqa: S311 - a load, not a secret
    paths = []
    for _ in range(number):
        one = f"/v1/articles/{choose.choice(made)}"
        others = (f"/v1/articles?limit={PAGE}", "/v1/articles?state=running", f"{one}/events", f"{one}/drafts")
        paths.append(one if choose.random() < 0.5 else choose.choice(others))  # noqa: PLR2004 - half
    return [("GET", path, None) for path in paths]


async def bench(seconds: int, submissions: int, reads: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as home:
        parts = Parts(
            home=Path(home),
            channels=simulated.CHANNELS,
            sandbox=simulated.ROOT / "sandbox" / "quiet.toml",
            worker=True,
            api=True,
            env=simulated.ENVIRONMENT,
        )
        async with Stack(parts) as stack:
            database = Database(stack.database_url, pool_size=2)
            try:
                tenant = await tenant_of(database, parts.tenant)
                key = (await keys.create(database, tenant, "bench", KeyRole.OPERATOR)).key
                await _brand(stack.api_url or "", key)
                began = time.perf_counter()
                result = await _client_process(stack.api_url or "", key, seconds, submissions, reads)
                show(result)
                return {**result, **await _admitted(database, tenant, result["accepted"], began)}
            finally:
                await database.close()


async def _brand(url: str, key: str) -> None:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    async with httpx.AsyncClient(base_url=url, headers=headers, trust_env=False) as http:
        brand = files.read_brand(simulated.BRAND).model_dump_json()
        (await http.put("/v1/brands/milvus", content=brand)).raise_for_status()


async def _client_process(url: str, key: str, *numbers: int) -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, __file__, "--client", url, "--seconds", str(numbers[0]),
        "--submissions", str(numbers[1]), "--reads", str(numbers[2]),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, _ = await process.communicate(key.encode())
    result: dict[str, Any] = json.loads(out)
    return result


async def _admitted(database: Database, tenant: TenantRow, accepted: int, began: float) -> dict[str, Any]:
    """Until every article that was accepted has its workflow, or PATIENCE is over."""
    while True:
        async with database.tenant(tenant.id) as scope:
            stored, started = (await scope.sql.execute(ADMITTED, {"tenant": tenant.id})).one()
        took = time.perf_counter() - began
        if started >= accepted or took > PATIENCE:
            lost = accepted - stored
            return {"lost": lost, "admitted": started, "admitted_per_second": round(started / took, 1)}
        await asyncio.sleep(0.5)


def show(result: dict[str, Any]) -> None:
    """What came of the load; the admission goes on."""
    made = Table(box=None, header_style="bold")
    for column in ("", "requests", "per second", "p50 ms", "p99 ms", "max ms", "statuses"):
        made.add_column(column, justify="left" if column in {"", "statuses"} else "right")
    for name in ("submissions", "reads"):
        row = result[name]
        statuses = ", ".join(f"{status} × {number}" for status, number in row["statuses"].items())
        made.add_row(
            name, *(str(row[key]) for key in ("requests", "per_second", "p50_ms", "p99_ms", "max_ms")), statuses
        )
    Console(width=120).print(made)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--submissions", type=int, default=55, help="a second")
    parser.add_argument("--reads", type=int, default=100, help="a second")
    parser.add_argument("--client", metavar="URL", help=argparse.SUPPRESS)
    given = parser.parse_args()
    numbers = (given.seconds, given.submissions, given.reads)
    if given.client:
        result = asyncio.run(client(given.client, sys.stdin.read(), *numbers))
    else:
        result = asyncio.run(bench(*numbers))
        told = "accepted {accepted}, lost {lost}, admitted {admitted} at {admitted_per_second}/s\n"
        sys.stdout.write(told.format(**result))
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
