"""Every script and command of docker-compose.yml, run for real against Postgres and Temporal, without containers."""

import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client

from citeloop.store import migrate
from starter import simulated
from starter.embedded import ports
from starter.embedded.postgres import EmbeddedPostgres, binaries
from starter.embedded.process import Child, Program
from starter.embedded.temporal import SEARCH_ATTRIBUTES, EmbeddedTemporal, temporal_binary
from tests.deploy.composition import ROOT, Composition
from tests.deploy.installation import ENTRYPOINT, Collector, Installation, call
from tests.starter.conftest import fast_channels

NAMESPACE = "citeloop"
Health = Callable[[], Coroutine[Any, Any, bool]]


@pytest.fixture(scope="module")
async def postgres(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EmbeddedPostgres]:
    """A server as the image makes it: an administrator and nothing else."""
    server = EmbeddedPostgres(tmp_path_factory.mktemp("deployed") / "postgres")
    await server.start()
    admin = await asyncpg.connect(server.url("superuser", "postgres"))
    for statement in ("DROP DATABASE citeloop", "DROP ROLE citeloop_app", "DROP ROLE citeloop_owner"):
        await admin.execute(statement)
    await admin.close()
    yield server
    await server.stop()


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.close()


@pytest.fixture(scope="module")
async def installation(
    compose: Composition,
    postgres: EmbeddedPostgres,
    temporal: EmbeddedTemporal,
    collector: Collector,
    sandbox_process: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Installation:
    """Everything up to where worker and API may start: roles, schema, namespace."""
    folder = tmp_path_factory.mktemp("installation")
    made = Installation(
        compose=compose,
        addresses={
            "@postgres:5432": f"@{ports.LOOPBACK}:{postgres.port}",
            "temporal:7233": temporal.address,
            "collector:4318": collector.address,
        },
        home=folder,
        channels=fast_channels(folder),
        keys={**simulated.ENVIRONMENT, "CITELOOP_SANDBOX_URL": sandbox_process},
    )
    assert await roles(made, postgres) == (0, "")
    status, said = await made.run("migrate", *compose.services["migrate"].command)
    assert status == 0, said
    status, said = await namespace(made)
    assert status == 0, said
    return made


async def roles(installation: Installation, postgres: EmbeddedPostgres, **changed: str) -> tuple[int, str]:
    """What the service `roles` does, with the server's own client."""
    service = installation.compose.services["roles"]
    given = {**installation.environment("roles"), "PGHOST": ports.LOOPBACK, "PGPORT": str(postgres.port)}
    given["PGPASSWORD"] = postgres.url("superuser").split(":")[2].partition("@")[0]
    command = [word.replace("/deploy/", f"{ROOT}/deploy/postgres/") for word in service.command]
    return await call(str(binaries(postgres.data) / service.entrypoint[0]), *command, environ={**given, **changed})


async def namespace(installation: Installation) -> tuple[int, str]:
    service = installation.compose.services["temporal-namespace"]
    script = service.command[0].replace("/deploy/", f"{ROOT}/deploy/temporal/")
    given = installation.environment("temporal-namespace")
    path = os.pathsep.join((str(temporal_binary().parent), given["PATH"]))
    return await call(*service.entrypoint, script, environ={**given, "PATH": path, "SETTLE_SECONDS": "1"})


async def started(installation: Installation, service: str, folder: Path, healthy: Health, *more: str) -> Child:
    words = (*installation.compose.services[service].command, *more)
    program = Program(
        service,
        ("sh", str(ENTRYPOINT), *words),
        env=installation.environment(service),
        start_within=timedelta(seconds=40),
        stop_within=timedelta(seconds=60),
    )
    child = Child(program, folder, healthy)
    await child.start()
    return child


@pytest.fixture(scope="module")
async def worker(installation: Installation, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Child]:
    status, said = await installation.health("worker")
    assert (status, "polls citeloop.workflows" in said) == (1, True), said

    async def healthy() -> bool:
        return (await installation.health("worker"))[0] == 0

    child = await started(installation, "worker", tmp_path_factory.mktemp("worker"), healthy)
    yield child
    await child.stop()


async def test_roles_and_databases_are_made_with_no_more_than_they_need(
    installation: Installation, postgres: EmbeddedPostgres
) -> None:
    admin = await asyncpg.connect(postgres.url("superuser", "postgres"))
    rows = await admin.fetch(
        "SELECT datname, pg_get_userbyid(datdba) AS owner,"
        " has_database_privilege('citeloop_app', oid, 'CONNECT') AS app,"
        " has_database_privilege('temporal', oid, 'CONNECT') AS temporal FROM pg_database"
        " WHERE datname IN ('citeloop', 'temporal', 'temporal_visibility') ORDER BY 1"
    )
    powers = await admin.fetch(
        "SELECT rolname FROM pg_roles WHERE rolname IN ('citeloop_owner', 'citeloop_app', 'temporal')"
        " AND (rolsuper OR rolbypassrls OR rolcreatedb OR rolcreaterole OR rolreplication)"
    )
    await admin.close()
    assert [tuple(row.values()) for row in rows] == [
        ("citeloop", "citeloop_owner", True, False),
        ("temporal", "temporal", False, True),
        ("temporal_visibility", "temporal", False, True),
    ]
    assert powers == []


async def test_roles_can_be_made_again_with_another_password(
    installation: Installation, postgres: EmbeddedPostgres
) -> None:
    changed = "another-password-0123456789"
    assert await roles(installation, postgres, TEMPORAL_DB_PASSWORD=changed) == (0, "")
    url = f"postgresql://temporal:{changed}@{ports.LOOPBACK}:{postgres.port}/temporal"
    connection = await asyncpg.connect(url)
    assert await connection.fetchval("SELECT current_user") == "temporal"
    await connection.close()
    assert changed not in postgres.log_file.read_text()


async def test_a_failing_statement_of_the_roles_fails_the_job(
    installation: Installation, postgres: EmbeddedPostgres
) -> None:
    status, said = await roles(
        installation, postgres, PGUSER="temporal", PGDATABASE="temporal", PGPASSWORD="another-password-0123456789"
    )
    assert (status != 0, "permission denied" in said or "authentication failed" in said) == (True, True), said


async def test_the_schema_is_at_its_newest_and_migrating_again_changes_nothing(installation: Installation) -> None:
    assert (await installation.run("migrate", "migrate"))[0] == 0
    url = installation.environment("worker")["CITELOOP_DATABASE_URL"]
    assert await migrate.current_revision(url) == migrate.head_revision()


async def test_the_namespace_has_its_retention_and_search_attributes(
    installation: Installation, temporal: EmbeddedTemporal
) -> None:
    status, said = await namespace(installation)
    assert (status, said.splitlines()[-1]) == (0, f"namespace {NAMESPACE} is ready")
    client = await Client.connect(temporal.address, namespace=NAMESPACE)
    described = await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=NAMESPACE))
    kept = described.config.workflow_execution_retention_ttl.ToTimedelta()
    listed = await client.operator_service.list_search_attributes(ListSearchAttributesRequest(namespace=NAMESPACE))
    assert kept == timedelta(hours=720)
    assert {name: listed.custom_attributes[name] for name in SEARCH_ATTRIBUTES} == SEARCH_ATTRIBUTES


async def test_the_api_becomes_healthy_and_stops_when_told(installation: Installation, tmp_path: Path) -> None:
    (port,) = ports.free(1)
    address = f"http://{ports.LOOPBACK}:{port}"

    async def healthy() -> bool:
        return (await installation.health("api", address))[0] == 0

    assert not await healthy()
    child = await started(installation, "api", tmp_path, healthy, "--host", ports.LOOPBACK, "--port", str(port))
    await child.stop()
    status, said = await installation.health("api", address)
    assert (status, "does not answer" in said) == (1, True)


async def test_a_worker_that_serves_one_kind_of_queue_is_healthy_by_that_kind_only(
    installation: Installation, tmp_path: Path
) -> None:
    async def healthy() -> bool:
        return (await installation.health("worker", "publisher.webhook"))[0] == 0

    assert not await healthy()
    child = await started(installation, "worker", tmp_path, healthy, "--only", "publisher.*")
    status, said = await installation.health("worker")
    await child.stop()
    assert (status, "polls citeloop.workflows" in said) == (1, True)


async def test_an_article_goes_from_the_command_line_to_the_worker_and_its_spans_to_the_collector(
    installation: Installation, worker: Child, collector: Collector
) -> None:
    words = ("submit", "what the container does", "--brand", str(simulated.BRAND), "--stages", "generate", "--wait")
    status, said = await installation.run("cli", *words)
    assert status == 0, said
    status, said = await installation.run("cli", "status", "--json")
    assert (status, '"what the container does"' in said) == (0, True), said
    assert {"citeloop-cli", "citeloop-worker"} <= collector.services


async def test_nothing_is_written_to_the_home_of_a_container(installation: Installation, worker: Child) -> None:
    """Its root file system is read-only and its home in memory."""
    written = [file.name for file in installation.home.rglob("*") if file.is_file()]
    assert written == ["channels.toml"]
