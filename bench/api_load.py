"""How much the HTTP API takes on this machine: reads at a fixed rate, submissions for half a minute, reads again.

Everything runs here: embedded Temporal and Postgres, a worker, the sandbox, the API, and the client in a process of
its own. The first reads meet a worker that is idle, the second one that starts and writes what was submitted as fast
as the machine allows. Requests are sent by the clock whether or not earlier ones have been answered, so that a slow
answer delays no later request and hides nothing.

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

from citeloop.store.database import Database
from citeloop.store.repositories.api_keys import KeyRole
from citeloop.store.repositories.tenants import TenantRow
from citeloop.store.statements import text
from starter import files, keys, simulated
from starter.connecting import tenant_of
from starter.stack import Parts, Stack

PAGE = 50
CONNECTIONS = 32
PATIENCE = 600
EARLIER = 300
"""Articles that stand in the store before anything is measured."""

STANDING = text(
    "SELECT count(*) AS stored, count(started_at) AS started_at, count(ended_at) AS ended_at "
    "FROM articles WHERE tenant_id = :tenant"
)


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


async def client(url: str, key: str, seconds: int, submissions: int, reads: int, stages: list[str]) -> dict[str, Any]:
    """In a process of its own: its work is not the API's. Without submissions it reads what is there."""
    result: dict[str, Any] = {}
    if submissions:
        run = f"{time.time():.0f}"
        body = {"brand": "milvus", "review": {"mode": "auto"}, **({"stages": stages} if stages else {})}
        writing = Load(url, key)
        took = await writing.run(
            [("POST", "/v1/articles", {**body, "keyword": f"load {run} {n}"}) for n in range(seconds * submissions)],
            submissions,
        )
        made = {known for answer in writing.answers if (known := json.loads(answer).get("id"))}
        result |= {"submissions": writing.report(took), "accepted": len(made)}
    else:
        _, answer = await Line(url, key).ask("GET", f"/v1/articles?limit={PAGE}", None)
        made = {one["id"] for one in json.loads(answer)["items"]}
    if reads:
        reading = Load(url, key)
        read_in = await reading.run(_reads(sorted(made), seconds * reads), reads)
        result["reads"] = reading.report(read_in)
    return result


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
                url = stack.api_url or ""
                earlier = await _client_process(url, key, EARLIER // 50, 50, 0, "generate")
                await _counted(database, tenant, "ended_at", earlier["accepted"])
                quiet = await _client_process(url, key, seconds, 0, reads)
                began = time.perf_counter()
                busy = await _client_process(url, key, seconds, submissions, reads)
                busy["reads_while_working"], busy["reads"] = busy["reads"], quiet["reads"]
                show(busy)
                stored, started = await _counted(database, tenant, "started_at", earlier["accepted"] + busy["accepted"])
                started -= earlier["accepted"]
                return {
                    **busy,
                    "lost": busy["accepted"] + earlier["accepted"] - stored,
                    "admitted": started,
                    "admitted_per_second": round(started / (time.perf_counter() - began), 1),
                }
            finally:
                await database.close()


async def _brand(url: str, key: str) -> None:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    async with httpx.AsyncClient(base_url=url, headers=headers, trust_env=False) as http:
        brand = files.read_brand(simulated.BRAND).model_dump_json()
        (await http.put("/v1/brands/milvus", content=brand)).raise_for_status()


async def _client_process(
    url: str, key: str, seconds: int, submissions: int, reads: int, *stages: str
) -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, __file__, "--client", url, "--seconds", str(seconds),
        "--submissions", str(submissions), "--reads", str(reads), "--stages", *stages,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, _ = await process.communicate(key.encode())
    result: dict[str, Any] = json.loads(out)
    return result


async def _counted(database: Database, tenant: TenantRow, column: str, wanted: int) -> tuple[int, int]:
    """(articles, those of them that have been started, or have ended), once all have or PATIENCE is over."""
    began = time.perf_counter()
    while True:
        async with database.tenant(tenant.id) as scope:
            row = (await scope.sql.execute(STANDING, {"tenant": tenant.id})).one()
        reached = int(getattr(row, column))
        if reached >= wanted or time.perf_counter() - began > PATIENCE:
            return int(row.stored), reached
        await asyncio.sleep(0.5)


def show(result: dict[str, Any]) -> None:
    """What came of the load; the admission goes on."""
    made = Table(box=None, header_style="bold")
    for column in ("", "requests", "per second", "p50 ms", "p99 ms", "max ms", "statuses"):
        made.add_column(column, justify="left" if column in {"", "statuses"} else "right")
    for name in ("reads", "submissions", "reads_while_working"):
        row = result[name]
        statuses = ", ".join(f"{status} × {number}" for status, number in row["statuses"].items())
        made.add_row(
            name.replace("_", " "),
            *(str(row[key]) for key in ("requests", "per_second", "p50_ms", "p99_ms", "max_ms")),
            statuses,
        )
    Console(width=120).print(made)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--submissions", type=int, default=55, help="a second")
    parser.add_argument("--reads", type=int, default=100, help="a second")
    parser.add_argument("--stages", nargs="*", default=[], help=argparse.SUPPRESS)
    parser.add_argument("--client", metavar="URL", help=argparse.SUPPRESS)
    given = parser.parse_args()
    numbers = (given.seconds, given.submissions, given.reads)
    if given.client:
        result = asyncio.run(client(given.client, sys.stdin.read(), *numbers, given.stages))
    else:
        result = asyncio.run(bench(*numbers))
        told = "accepted {accepted}, lost {lost}, admitted {admitted} at {admitted_per_second}/s\n"
        sys.stdout.write(told.format(**result))
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
