"""100,000 sites: how long their CSV file takes to import, and how fast pages of them are listed over HTTP.

`python -m bench.sites [--sites 100000] [--pages 1000]` starts a Postgres of its own in a temporary folder, and needs
nothing else. The API is called in its own process, over its whole stack of middleware, without a socket between.
"""

import argparse
import asyncio
import csv
import json
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

import httpx
from temporalio.client import Client

from citeloop import sealing
from citeloop.channels.outside import Outside
from citeloop.models.channel import Catalog
from citeloop.store import migrate
from citeloop.store.database import Database
from citeloop.store.repositories import tenants
from citeloop.store.repositories.api_keys import KeyRole
from citeloop.store.repositories.tenants import TenantRow
from starter import keys
from starter.api.app import assemble
from starter.api.wiring import Wiring
from starter.embedded.postgres import EmbeddedPostgres
from starter.site_commands import SiteCommands
from starter.site_files import import_sites
from workflows.client import connect

KINDS = ("wordpress", "ghost", "halo", "wordpress")


def write(path: Path, count: int) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(("name", "kind", "base_url", "user", "secret", "rate", "concurrency", "labels", "tags"))
        for n in range(count):
            secret = f"{n:024x} {n % 97:02x}"
            kind = KINDS[n % len(KINDS)]
            rows.writerow(
                (f"site-{n:06}", kind, f"https://site-{n}.example.com", "ann", secret, "12/min", 2,
                 f"group-{n % 100}|{'even' if n % 2 == 0 else 'odd'}", "Tea|Guides" if kind != "halo" else "")
            )  # fmt: skip


async def listed(database: Database, tenant: TenantRow, count: int, pages: int) -> dict[str, dict[str, float]]:
    """Milliseconds of one page of 50, p50 and p99, by what is asked for."""
    app = assemble()
    client: Client = await connect("127.0.0.1:1", lazy=True)
    app.state.wiring = Wiring(database, client, Outside(Catalog(), {}))
    made = await keys.create(database, tenant, "bench", KeyRole.VIEWER)
    draw = random.Random(7)  # noqa: S311 - a repeatable bench
    asked = {
        "all": dict,
        "kind": lambda: {"kind": draw.choice(("wordpress", "ghost", "halo"))},
        "label, 1 of 100": lambda: {"label": f"group-{draw.randrange(100)}"},
        "label, 1 of 2": lambda: {"label": draw.choice(("even", "odd"))},
    }
    figures = {}
    headers = {"Authorization": f"Bearer {made.key}"}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://api", headers=headers) as http:
        for name, query in asked.items():
            taken = []
            for _ in range(pages):
                params = {**query(), "after": f"site-{draw.randrange(count):06}", "limit": 50}
                began = time.perf_counter()
                (await http.get("/v1/sites", params=params)).raise_for_status()
                taken.append((time.perf_counter() - began) * 1000)
            cuts = statistics.quantiles(taken, n=100)
            figures[name] = {"p50": round(cuts[49], 1), "p99": round(cuts[98], 1)}
    return figures


async def measure(count: int, pages: int, folder: Path) -> dict[str, object]:
    postgres = EmbeddedPostgres(folder / "postgres")
    await postgres.start()
    try:
        await migrate.upgrade(postgres.url("owner"))
        database = Database(postgres.url("app"))
        async with database.operator() as op:
            tenant = await tenants.ensure(op, "bench")
        file = folder / "sites.csv"
        write(file, count)
        commands = SiteCommands(database, Catalog(), tenant, sealing.new_key())
        seconds = []
        for _ in range(2):
            began = time.perf_counter()
            await import_sites(commands, file, {}, _silent)
            seconds.append(round(time.perf_counter() - began, 1))
        found = await listed(database, tenant, count, pages)
        await database.close()
    finally:
        await postgres.stop()
    return {"sites": count, "import_seconds": seconds[0], "again_seconds": seconds[1], "list_page_ms": found}


def _silent(_: str) -> None:
    """Progress is of no interest here."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sites", type=int, default=100_000)
    parser.add_argument("--pages", type=int, default=1000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(asyncio.run(measure(given.sites, given.pages, Path(folder))), indent=1))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
