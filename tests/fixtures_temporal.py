"""A real Temporal server on ports of its own, in a temporary folder."""

from collections.abc import AsyncIterator

import pytest
from temporalio.client import Client

from starter.embedded.temporal import EmbeddedTemporal
from workflows.client import connect


@pytest.fixture(scope="session")
async def temporal(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EmbeddedTemporal]:
    """One server for the whole session; tests keep apart by ids and queues of their own."""
    folder = tmp_path_factory.mktemp("temporal")
    server = EmbeddedTemporal(folder / "data", folder / "ports.json")
    await server.start()
    yield server
    await server.stop()


@pytest.fixture(scope="session")
async def client(temporal: EmbeddedTemporal) -> Client:
    return await connect(temporal.address)
