"""The embedded stack: real Temporal and Postgres, and whichever of our own processes are wanted, kept alive."""

import asyncio
import contextlib
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.service import RPCError

from citeloop import sealing
from citeloop.store import migrate
from starter import endpoints
from starter.connecting import reached
from starter.embedded import ports
from starter.embedded.postgres import EmbeddedPostgres
from starter.embedded.process import Child, Program, Service, keep_alive, left_behind
from starter.embedded.temporal import NAMESPACE, EmbeddedTemporal, prepare_namespace
from starter.endpoints import Endpoints
from starter.lock import HomeLock
from starter.simulated import ROOT
from starter.simulation import keep_apart
from workflows.client import connect
from workflows.options import WORKFLOWS

_OTHER_TEMPORAL = (
    "start it, or correct TEMPORAL_ADDRESS and the client profile; where neither names a server, "
    "`citeloop up` starts its own"
)


@dataclass(frozen=True)
class Parts:
    """What to start. A part whose address is given already stands elsewhere and is not started."""

    home: Path
    channels: Path
    tenant: str = "default"
    temporal_address: str | None = None
    namespace: str = NAMESPACE
    database_url: str | None = None
    database_owner_url: str | None = None
    sandbox: Path | None = None
    """The sandbox's TOML file; None: no sandbox."""
    worker: bool = False
    api: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    """What the sandbox's channels need; for worker, API and later commands."""


class Stack:
    """`async with Stack(parts) as stack:` — everything answers inside, everything is stopped after."""

    def __init__(self, parts: Parts, *, say: Callable[[str], None] = lambda _: None) -> None:
        self.parts = parts
        self.home = parts.home.resolve()
        self.services: dict[str, Service] = {}
        self.sandbox_url: str | None = None
        self.api_url: str | None = None
        self.temporal_address = parts.temporal_address or ""
        self.ui_url: str | None = None
        self.database_url = parts.database_url or ""
        self.database_owner_url = parts.database_owner_url
        self._lock = HomeLock(self.home)
        self._ports_file = self.home / "ports.json"
        self._logs = self.home / "run"
        self._watchers: list[asyncio.Task[None]] = []
        self._ready = False
        self._say = say

    @property
    def endpoints(self) -> Endpoints:
        return Endpoints(
            supervisor=os.getpid(),
            ready=self._ready,
            temporal=self.temporal_address,
            namespace=self.parts.namespace,
            ui=self.ui_url,
            database_url_file=str(self.home / "database.url"),
            database_owner_url_file=str(self.home / "database-owner.url") if self.database_owner_url else None,
            sandbox=self.sandbox_url,
            api=self.api_url,
            channels=str(self.parts.channels.resolve()),
            env=self._sandbox_env(),
            pids={name: service.pid for name, service in self.services.items() if service.pid is not None},
        )

    async def __aenter__(self) -> Self:
        self._lock.acquire()
        try:
            if self.parts.database_url is None:
                keep_apart(self.home, simulated=self.parts.sandbox is not None)
            await self._start()
        except BaseException:
            await self._stop()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stop()

    async def _start(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        await self._start_temporal()
        await self._start_database()
        self._publish()
        if self.parts.sandbox is not None:
            await self._start_sandbox(self.parts.sandbox)
        if self.parts.api:
            await self._start_api()
        if self.parts.worker:
            await self._start_worker()
        for name, service in self.services.items():
            self._watchers.append(asyncio.create_task(keep_alive(name, service, self._publish)))
        self._ready = True
        self._publish()

    async def _start_database(self) -> None:
        if self.parts.database_url is None:
            postgres = EmbeddedPostgres(self.home / "postgres")
            self.services["postgres"] = postgres
            await postgres.start()
            self.database_url = postgres.url("app")
            self.database_owner_url = postgres.url("owner")
            self._say("Postgres answers")
        if self.database_owner_url is not None:
            await migrate.upgrade(self.database_owner_url)

    async def _start_temporal(self) -> None:
        if self.parts.temporal_address is not None:
            client = await reached(self.parts.temporal_address, self.parts.namespace, _OTHER_TEMPORAL)
            await prepare_namespace(client.service_client, self.parts.namespace, retention=None)
            return
        temporal = EmbeddedTemporal(self.home / "temporal", self._ports_file)
        self.services["temporal"] = temporal
        await temporal.start()
        self.temporal_address, self.ui_url = temporal.address, temporal.ui_url
        self._say(f"Temporal answers at {temporal.address}, its UI at {temporal.ui_url}")

    async def _start_sandbox(self, scenario: Path) -> None:
        port = self._port("sandbox")
        url = f"http://{ports.LOOPBACK}:{port}"
        argv = (sys.executable, "-m", "sandbox", "--config", str(scenario), "--port", str(port))
        await self._start_child(Program("sandbox", argv, niceness=10), _answers(f"{url}/_healthz"))
        self.sandbox_url = url
        self._say(f"the sandbox plays the outside world at {url}")

    async def _start_api(self) -> None:
        port = self._port("api")
        self.api_url = f"http://{ports.LOOPBACK}:{port}"
        argv = (sys.executable, "-m", "starter.api", "--port", str(port))
        await self._start_child(Program("api", argv, env=self.child_env()), _answers(f"{self.api_url}/healthz"))
        self._say(f"the API answers at {self.api_url}")

    async def _start_worker(self) -> None:
        program = Program(
            "worker",
            (sys.executable, str(ROOT / "worker.py")),
            env=self.child_env(),
            niceness=10,  # on one machine the doors go before the work
            stop_within=timedelta(seconds=40),
        )
        await self._start_child(program, _polls(self.temporal_address, self.parts.namespace, WORKFLOWS))
        self._say("the worker polls its queues")

    async def _start_child(self, program: Program, healthy: Callable[[], Awaitable[bool]]) -> None:
        child = Child(program, self._logs, healthy)
        self.services[program.name] = child
        await child.start()

    def child_env(self) -> dict[str, str]:
        """What a process of ours needs to reach this stack."""
        known = {
            "CITELOOP_HOME": str(self.home),
            "CITELOOP_CHANNELS": str(self.parts.channels.resolve()),
            "CITELOOP_TENANT": self.parts.tenant,
            "CITELOOP_DATABASE_URL": self.database_url,
            "TEMPORAL_ADDRESS": self.temporal_address,
            "TEMPORAL_NAMESPACE": self.parts.namespace,
            "CITELOOP_CALLBACK_BASE_URL": self.api_url,
            sealing.VARIABLE: os.environ.get(sealing.VARIABLE) or endpoints.kept_secret_key(self.home),
        }
        return {**{key: value for key, value in known.items() if value}, **self._sandbox_env()}

    def _sandbox_env(self) -> dict[str, str]:
        if self.sandbox_url is None:
            return {}
        return {**self.parts.env, "CITELOOP_SANDBOX_URL": self.sandbox_url}

    def _port(self, name: str) -> int:
        """The kept port; a new one when a stranger has taken it meanwhile."""
        (port,) = ports.keep(self._ports_file, name)
        if ports.taken(port) and left_behind(self._logs / f"{name}.pid") is None:
            ports.forget(self._ports_file, name)
            (port,) = ports.keep(self._ports_file, name)
        return port

    def _publish(self) -> None:
        known = self.endpoints
        endpoints.private(Path(known.database_url_file), self.database_url)
        if known.database_owner_url_file and self.database_owner_url:
            endpoints.private(Path(known.database_owner_url_file), self.database_owner_url)
        endpoints.write(self.home, known)

    async def _stop(self) -> None:
        for watcher in self._watchers:
            watcher.cancel()
        await asyncio.gather(*self._watchers, return_exceptions=True)
        self._watchers.clear()
        endpoints.file_of(self.home).unlink(missing_ok=True)
        for name in reversed(self.services):
            with contextlib.suppress(ProcessLookupError):
                await self.services[name].stop()
        self.services.clear()
        self._lock.release()


def _answers(url: str) -> Callable[[], Awaitable[bool]]:
    async def healthy() -> bool:
        try:
            async with httpx.AsyncClient(timeout=2, trust_env=False) as client:
                return (await client.get(url)).status_code == httpx.codes.OK
        except httpx.HTTPError:
            return False

    return healthy


def _polls(address: str, namespace: str, queue: str) -> Callable[[], Awaitable[bool]]:
    """Healthy once somebody polls the queue; Temporal remembers a dead poller for minutes."""
    request = DescribeTaskQueueRequest(
        namespace=namespace,
        task_queue=TaskQueue(name=queue),
        task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
    )

    async def healthy() -> bool:
        try:
            client = await connect(address, namespace)
            return bool((await client.workflow_service.describe_task_queue(request)).pollers)
        except (RPCError, RuntimeError):
            return False

    return healthy
