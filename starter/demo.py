"""`citeloop demo`: one real campaign, end to end, against the sandbox; judged by the sandbox's ledger."""

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console

from citeloop import telemetry
from citeloop.channels import catalog
from citeloop.channels.outside import Outside
from citeloop.models.plan import MonitorPolicy, ReviewMode, ReviewPolicy
from citeloop.models.request import CampaignRequest
from citeloop.store.database import Database
from citeloop.store.repositories import samples
from citeloop.store.repositories.articles import ArticleView
from starter import files, lock, report, simulated
from starter.commands import Commands
from starter.connecting import tenant_of
from starter.errors import Conflict
from starter.preflight import Preflight
from starter.report import Ledger
from starter.running import clear
from starter.stack import Parts, Stack
from starter.utilisation import Gauge
from starter.watching import follow, views
from workflows.client import connect

DAY = timedelta(seconds=2)
PATIENCE = 300


async def demo(home: Path, console: Console, *, keep: bool) -> bool:
    """True when everything ended as it should. The last line on stdout is one JSON object."""
    began = time.monotonic()
    _end_in_order_when_told()
    await _fresh(home)
    _isolate(home)
    parts = Parts(
        home=home,
        channels=simulated.CHANNELS,
        tenant="demo",
        sandbox=simulated.SCENARIO,
        worker=True,
        api=True,
        env=simulated.ENVIRONMENT,
    )
    console.print("Everything outside is simulated by the sandbox on this machine; everything inside is real.")
    async with Stack(parts, say=lambda text: console.print(f"  {text}", markup=False)) as stack:
        os.environ.update(stack.child_env())
        provider = telemetry.configure("citeloop-demo", home=stack.home, otlp_endpoint=None)
        passed = await _campaign(stack, console, began)
        telemetry.shutdown(provider)
        if keep:
            await _keep(home, stack)
    return passed


async def _campaign(stack: Stack, console: Console, began: float) -> bool:
    known = catalog.load(stack.parts.channels, os.environ)
    client = await connect(stack.temporal_address)
    database = Database(stack.database_url, pool_size=4)
    outside = Outside(known, os.environ)
    try:
        tenant = await tenant_of(database, stack.parts.tenant)
        commands = Commands(client, database, known, tenant, preflight=Preflight(outside, known, os.environ), by="demo")
        gauge = Gauge(client, known.channels)
        gauging = asyncio.create_task(gauge.run())
        brand = files.read_brand(simulated.BRAND)
        done = await commands.submit_campaign(brand, _request())
        assert done.campaign_id is not None
        console.print(f"{len(done.article_ids)} keywords submitted; the Temporal UI is at {stack.ui_url}")
        rows = await _watched(database, tenant.id, done.campaign_id, console)
        gauging.cancel()
        ledger = await _ledger(stack)
        async with database.tenant(tenant.id) as scope:
            readings = await samples.of_campaign(scope, done.campaign_id)
    finally:
        await outside.close()
        await database.close()
    result = report.summarise(rows, readings, ledger, seconds=time.monotonic() - began)
    report.show(console, rows, gauge.read(ledger.calls), result)
    console.print(f"Temporal UI, while the stack is up: {stack.ui_url}")
    for problem in result.problems:
        console.print(f"[red]not as it should be:[/] {problem}")
    console.file.flush()
    sys.stdout.write(result.figures.model_dump_json() + "\n")
    sys.stdout.flush()
    return not result.problems


def _request() -> CampaignRequest:
    return CampaignRequest(
        name="demo",
        keywords=files.read_keywords(simulated.KEYWORDS),
        review=ReviewPolicy(mode=ReviewMode.AUTO),
        monitor=MonitorPolicy(day=DAY),
    )


async def _watched(database: Database, tenant_id: str, campaign_id: str, console: Console) -> Sequence[ArticleView]:
    """Whatever stands after PATIENCE is judged as it is."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE):
            return await follow(database, tenant_id, campaign_id, console, settled=True)
    return await views(database, tenant_id, campaign_id)


async def _ledger(stack: Stack) -> Ledger:
    async with httpx.AsyncClient(trust_env=False, timeout=10) as client:
        reply = await client.get(f"{stack.sandbox_url}/_ledger", params={"times": "1"})
    reply.raise_for_status()
    written: dict[str, Any] = reply.json()
    totals = written["totals"]
    return Ledger(
        limited=totals["limited"],
        duplicate_posts=totals["duplicate_posts"],
        bought_twice=totals["bought_twice"],
        calls={name: tuple(entry["times"]) for name, entry in written["providers"].items()},
    )


async def _fresh(home: Path) -> None:
    if (holder := lock.holder(home)) is not None:
        raise Conflict(f"{home} is in use by process {holder}", "demo", "end that demo first")
    await clear(home)
    _emptied(home)


def _end_in_order_when_told() -> None:
    """As Ctrl-C does, also when the terminal is closed: the stack is stopped, not left behind."""
    task = asyncio.current_task()
    assert task is not None
    for name in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(name, task.cancel)


def _emptied(home: Path) -> None:
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)


def _isolate(home: Path) -> None:
    """No profile or variable of the user's may lead the demo to another Temporal server."""
    for name in [name for name in os.environ if name.startswith("TEMPORAL_")]:
        del os.environ[name]
    profile = home / "temporal.toml"
    profile.touch()
    os.environ["TEMPORAL_CONFIG_FILE"] = str(profile.resolve())


async def _keep(home: Path, stack: Stack) -> None:
    stop = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    sys.stderr.write(
        f"The stack stays up until Ctrl-C. Look around: {stack.ui_url}, or in another terminal\n"
        f"  citeloop --home {home} --tenant demo status\n"
        f"  citeloop --home {home} --tenant demo trace '向量数据库怎么选型'\n"
    )
    await stop.wait()
