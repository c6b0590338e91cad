"""The embedded server: killed, left behind, restarted; always on the same port and data."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client

from starter.embedded import ports
from starter.embedded.process import command_line, keep_alive
from starter.embedded.temporal import SEARCH_ATTRIBUTES, EmbeddedTemporal


@pytest.fixture
async def own(tmp_path: Path) -> AsyncIterator[EmbeddedTemporal]:
    server = _server(tmp_path)
    await server.start()
    yield server
    await server.stop()


def _server(folder: Path) -> EmbeddedTemporal:
    return EmbeddedTemporal(folder / "temporal", folder / "ports.json")


async def _start_waiting(address: str, name: str) -> None:
    client = await Client.connect(address)
    await client.start_workflow("Nobody", id=name, task_queue="nobody")


async def test_a_killed_server_comes_back_on_the_same_port_with_its_data(own: EmbeddedTemporal) -> None:
    await _start_waiting(own.address, "kept")
    address, dead = own.address, own.pid
    assert dead is not None
    came_back = asyncio.Event()
    watching = asyncio.create_task(keep_alive("temporal", own, came_back.set))
    os.kill(dead, signal.SIGKILL)
    async with asyncio.timeout(20):
        await came_back.wait()
    client = await Client.connect(address)
    described = await client.get_workflow_handle("kept").describe()
    watching.cancel()
    assert described.id == "kept"
    assert (own.address, own.pid != dead) == (address, True)


async def test_a_second_start_keeps_data_and_ports(tmp_path: Path) -> None:
    first = _server(tmp_path)
    await first.start()
    await _start_waiting(first.address, "kept")
    await first.stop()
    second = _server(tmp_path)
    await second.start()
    client = await Client.connect(second.address)
    described = await client.get_workflow_handle("kept").describe()
    await second.stop()
    assert described.id == "kept"
    assert (second.address, second.ui_url) == (first.address, first.ui_url)


async def test_a_server_left_behind_by_a_killed_supervisor_is_adopted(own: EmbeddedTemporal, tmp_path: Path) -> None:
    successor = _server(tmp_path)
    await successor.start()
    assert successor.pid == own.pid
    await successor.stop()
    assert own.pid is not None
    assert command_line(own.pid) == ""


async def test_retention_and_search_attributes_are_set(temporal: EmbeddedTemporal) -> None:
    client = await Client.connect(temporal.address)
    namespace = await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace="default"))
    known = await client.operator_service.list_search_attributes(ListSearchAttributesRequest(namespace="default"))
    assert namespace.config.workflow_execution_retention_ttl.ToTimedelta() == timedelta(days=30)
    assert {name: known.custom_attributes[name] for name in SEARCH_ATTRIBUTES} == SEARCH_ATTRIBUTES


async def test_a_port_that_a_stranger_has_taken_is_replaced(tmp_path: Path) -> None:
    first = _server(tmp_path)
    await first.start()
    await first.stop()
    host, port = first.address.split(":")
    stranger = await asyncio.start_server(lambda *_: None, host, int(port))
    second = _server(tmp_path)
    await second.start()
    stranger.close()
    await second.stop()
    assert second.address != first.address


def test_ports_are_distinct_and_kept(tmp_path: Path) -> None:
    file = tmp_path / "ports.json"
    chosen = ports.keep(file, "a", "b", "c")
    assert len(set(chosen)) == 3
    assert ports.keep(file, "c", "a") == (chosen[2], chosen[0])
