"""Temporal: its version, the namespace and search attributes, exact priority and fairness, its clock."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from temporalio.api.enums.v1 import IndexedValueType, TaskQueueType
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import (
    DescribeNamespaceRequest,
    DescribeTaskQueueRequest,
    GetSystemInfoRequest,
    ListTaskQueuePartitionsRequest,
    PollActivityTaskQueueRequest,
)
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from citeloop.models import ids
from starter.checks.findings import Finding, clock, fail, listed, ok, skipped, warn
from starter.embedded.temporal import NOT_TOLD, RETENTION, SEARCH_ATTRIBUTES

TRIED = (1, 32)
"""The version that the product was built and measured on."""
_PATIENCE = timedelta(seconds=5)
_OWN_QUEUE = "citeloop.doctor"


async def temporal(client: Client, address: str, queues: Sequence[str]) -> list[Finding]:
    """RPCError when it stops answering meanwhile."""
    findings = [await _server(client, address)]
    namespace = await _namespace(client, address)
    findings.append(namespace)
    if namespace.standing == "fail":
        return findings
    return [
        *findings,
        *await _search_attributes(client, address),
        await _partitions(client, queues),
        await _clock(client),
    ]


async def _server(client: Client, address: str) -> Finding:
    info = await client.workflow_service.get_system_info(GetSystemInfoRequest(), timeout=_PATIENCE)
    version = info.server_version
    if _numbers(version) < TRIED:
        wanted = ".".join(map(str, TRIED))
        return warn("server", f"Temporal {version} at {address} was never tried; move to {wanted} or newer")
    return ok("server", f"Temporal {version} answers at {address}")


async def _namespace(client: Client, address: str) -> Finding:
    name = client.namespace
    try:
        described = await client.workflow_service.describe_namespace(
            DescribeNamespaceRequest(namespace=name), timeout=_PATIENCE
        )
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return fail("namespace", f"{name} is not there; {_prepare(client, address)} makes it")
        if error.status in NOT_TOLD:
            return skipped("namespace", f"{name}: this server does not tell")
        raise
    kept = described.config.workflow_execution_retention_ttl.ToTimedelta()
    if kept < RETENTION:
        days = kept / timedelta(days=1)
        return warn(
            "namespace",
            f"{name} keeps an ended workflow for {days:g} {'day' if days == 1 else 'days'}, too short to look into an "
            f"article afterwards; {_prepare(client, address)} makes it {RETENTION.days}",
        )
    return ok("namespace", f"{name}, ended workflows are kept for {kept.days} days")


async def _search_attributes(client: Client, address: str) -> list[Finding]:
    check = "search attributes"
    try:
        reply = await client.operator_service.list_search_attributes(
            ListSearchAttributesRequest(namespace=client.namespace), timeout=_PATIENCE
        )
    except RPCError as error:
        if error.status in NOT_TOLD:
            return [skipped(check, "this server does not tell; look them up in its own console")]
        raise
    known = reply.custom_attributes
    findings = []
    missing = [name for name in SEARCH_ATTRIBUTES if name not in known]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        words = f"{', '.join(missing)} {verb} not registered"
        findings.append(fail(check, f"{words}; {_prepare(client, address)} registers what is missing"))
    for name, wanted in SEARCH_ATTRIBUTES.items():
        if name in known and known[name] != wanted:
            remove = f"temporal operator search-attribute remove --address {address} --namespace {client.namespace}"
            words = f"{name} is of type {_type(known[name])}, not {_type(wanted)}"
            findings.append(fail(check, f"{words}; `{remove} --yes --name {name}`, then {_prepare(client, address)}"))
    return findings or [ok(check, f"all {len(SEARCH_ATTRIBUTES)} registered with the right types")]


def _prepare(client: Client, address: str) -> str:
    """Makes the namespace, its retention and the attributes; the temporal command, told several attributes at
    once, registers only some of them."""
    where = f"TEMPORAL_ADDRESS={address} TEMPORAL_NAMESPACE={client.namespace}"
    return f"`{where} sh deploy/temporal/namespace.sh`"


async def _partitions(client: Client, queues: Sequence[str]) -> Finding:
    """Whether fairness is on cannot be asked; the number of partitions can."""
    parted = []
    for queue in queues:
        request = ListTaskQueuePartitionsRequest(namespace=client.namespace, task_queue=TaskQueue(name=queue))
        try:
            reply = await client.workflow_service.list_task_queue_partitions(request, timeout=_PATIENCE)
        except RPCError as error:
            if error.status in NOT_TOLD:
                return skipped("fairness", "this server does not tell how its queues are parted")
            raise
        if len(reply.activity_task_queue_partitions) > 1:
            parted.append(queue)
    if parted:
        return warn(
            "fairness",
            f"{listed(parted, 2)} have several partitions, so that priority and fairness are only approximate; "
            "give the server the settings of deploy/temporal/dynamic-config.yaml",
        )
    return ok("fairness", "one partition a queue; a server does not tell whether matching.enableFairness is on")


async def _clock(client: Client) -> Finding:
    """The server notes when a queue was last polled: so a queue that nobody else uses is polled for a moment."""
    service, queue, visitor = client.workflow_service, TaskQueue(name=_OWN_QUEUE), ids.new_id()
    poll = PollActivityTaskQueueRequest(namespace=client.namespace, task_queue=queue, identity=visitor)
    look = DescribeTaskQueueRequest(
        namespace=client.namespace, task_queue=queue, task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY
    )
    asked = datetime.now(UTC)
    polling = asyncio.create_task(service.poll_activity_task_queue(poll, timeout=_PATIENCE))
    try:
        for _ in range(20):
            await asyncio.sleep(0.1)
            for poller in (await service.describe_task_queue(look, timeout=_PATIENCE)).pollers:
                if poller.identity == visitor:
                    noted = poller.last_access_time.ToDatetime(UTC)
                    return clock(noted, asked=asked, answered=datetime.now(UTC), whose="Temporal's")
    finally:
        polling.cancel()
        await asyncio.gather(polling, return_exceptions=True)
    return skipped("clock", "this server does not show its time")


def _numbers(version: str) -> tuple[int, ...]:
    """(1, 32) of "1.32.0-152.8"."""
    return tuple(int(part) for part in version.split("-", maxsplit=1)[0].split(".")[:2] if part.isdecimal())


def _type(value: int) -> str:
    name = IndexedValueType.Name(IndexedValueType.ValueType(value))
    return name.removeprefix("INDEXED_VALUE_TYPE_").title().replace("_", "")
