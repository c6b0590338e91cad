"""CiteLoop as a contender: its embedded stack, its real workers, and its doors for submitting."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path

from bench import processes
from bench.jobs import Batch, brand
from bench.judge import Judge
from bench.terms import Terms, written
from citeloop.channels import catalog
from citeloop.models.plan import MonitorPolicy, ReviewMode, ReviewPolicy, Stage
from citeloop.models.request import CampaignRequest, KeywordLine
from citeloop.store.database import Database
from citeloop.store.repositories import tenants
from starter import simulated
from starter.backlog import backlog
from starter.channel_commands import ChannelCommands
from starter.commands import Commands
from starter.stack import Parts, Stack
from workflows.client import connect

_OFFSETS = MonitorPolicy(offsets=(0,), day=timedelta(seconds=1))
"""One window, at once: the stage is what is measured, not the waiting for days."""


class House:
    name = "citeloop"

    def __init__(self, stack: Stack, database: Database, judge: Judge) -> None:
        self.stack = stack
        self.judge = judge
        self.channels = ChannelCommands(database)
        self._database = database
        self._commands: dict[str, Commands] = {}
        self._extra: dict[str, asyncio.subprocess.Process] = {}
        self._ids: dict[str, str] = {}

    def tenant_id(self, name: str) -> str:
        """As the ledger's purchase ids begin."""
        return self._ids.get(name, name)

    def pids(self) -> dict[str, int]:
        own = {name: service.pid for name, service in self.stack.services.items() if service.pid is not None}
        return {**own, **{name: process.pid for name, process in self._extra.items() if process.returncode is None}}

    async def submit(self, batch: Batch, stages: tuple[Stage, ...], *, window: int = 100, engines: int = 2) -> None:
        """A campaign; returns when it is committed and its workflow has been started."""
        commands = await self._of(batch)
        request = CampaignRequest(
            name=batch.keywords[0],
            keywords=tuple(KeywordLine(keyword=keyword, priority=batch.priority) for keyword in batch.keywords),
            stages=stages,
            engines=("perplexity", "hunyuan")[:engines],
            review=ReviewPolicy(mode=ReviewMode.AUTO),
            monitor=_OFFSETS,
            window=window,
        )
        done = await commands.submit_campaign(brand(), request)
        if done.new != len(batch.keywords) or not done.started:
            raise RuntimeError(f"{done.new} of {len(batch.keywords)} submitted, started: {done.started}")

    async def waiting(self, channel: str) -> int:
        """Tasks in the channel's queue."""
        client = await connect(self.stack.temporal_address)
        return (await backlog(client, f"channel.{channel}")).waiting

    async def kill(self, name: str) -> float:
        """SIGKILL; when, by the clock of the ledger. The supervisor brings it back."""
        at = time.time()
        os.kill(self.pids()[name], signal.SIGKILL)
        return at

    async def restarted(self, name: str, before: int) -> float:
        """When the new process began, once it is there."""
        async with asyncio.timeout(60):
            while True:
                pid = self.pids().get(name, before)
                if pid != before and (began := processes.started_at(pid)) is not None:
                    return began
                await asyncio.sleep(0.05)

    async def add_worker(self, name: str, stack: AsyncExitStack, profile: Path | None = None) -> None:
        """Another worker process on the same queues; ended with `stack`."""
        program = ["-m", "bench.profiled", str(profile)] if profile is not None else ["worker.py"]
        log = (self.stack.home / f"{name}.log").open("wb")
        stack.callback(log.close)
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *program,
            cwd=simulated.ROOT,
            env={**os.environ, **self.stack.child_env()}, stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self._extra[name] = process
        stack.push_async_callback(_ended, process)
        await asyncio.sleep(3)

    async def _of(self, batch: Batch) -> Commands:
        if batch.tenant not in self._commands:
            async with self._database.operator() as operator:
                tenant = await tenants.ensure(operator, batch.tenant, batch.weight)
            self._ids[batch.tenant] = tenant.id
            client = await connect(self.stack.temporal_address)
            known = catalog.load(self.stack.parts.channels, {**os.environ, **self.stack.child_env()})
            self._commands[batch.tenant] = Commands(client, self._database, known, tenant, by="bench")
        return self._commands[batch.tenant]


async def _ended(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(30):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


@asynccontextmanager
async def house(terms: Terms, folder: Path, *, workers: int = 1, profile: Path | None = None) -> AsyncIterator[House]:
    """Everything answers inside, everything is stopped after.

    profile: where the worker's cProfile goes; there is one worker then, and it is slower by the profiler.
    """
    sandbox_file, channels_file = written(terms, folder)
    parts = Parts(
        home=folder / "home",
        channels=channels_file,
        sandbox=sandbox_file,
        worker=profile is None,
        env=simulated.ENVIRONMENT,
    )
    async with AsyncExitStack() as stack:
        running = await stack.enter_async_context(Stack(parts))
        database = Database(running.database_url, pool_size=4)
        stack.push_async_callback(database.close)
        judge = Judge(running.sandbox_url or "")
        stack.push_async_callback(judge.close)
        own = House(running, database, judge)
        if profile is not None:
            await own.add_worker("worker", stack, profile)
        for number in range(1, workers):
            await own.add_worker(f"worker-{number + 1}", stack)
        yield own
