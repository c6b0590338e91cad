"""What `citeloop doctor` sees in a real Temporal, and that its remedies, run as they are written, mend it."""

import asyncio
import os
import re
import subprocess
from collections.abc import AsyncIterator

import pytest
from temporalio import activity
from temporalio.client import Client
from temporalio.service import ConnectConfig, RPCError, ServiceClient
from temporalio.worker import Worker

from citeloop.models.channel import Catalog, SiteKind, SiteSpec
from starter.checks.findings import Finding
from starter.checks.temporal import temporal as examined
from starter.checks.work import queues_of, work
from starter.embedded import ports
from starter.embedded.process import Child, Program
from starter.embedded.temporal import SEARCH_ATTRIBUTES, EmbeddedTemporal, temporal_binary
from tests.starter.cli import ROOT
from workflows.client import connect
from workflows.options import BOOKKEEPING, WORKFLOWS

SITE = SiteSpec(name="blog", kind=SiteKind.WORDPRESS, base_url="http://127.0.0.1:9")


@pytest.fixture(scope="module")
async def bare(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    """The address of a server as it comes: four partitions a queue, one day's retention, no attribute of ours."""
    server, ui, http, metrics = ports.free(4)
    address = f"{ports.LOOPBACK}:{server}"

    async def healthy() -> bool:
        try:
            service = await ServiceClient.connect(ConnectConfig(target_host=address))
            return await service.check_health()
        except (RPCError, RuntimeError):
            return False

    options = f"server start-dev --ip {ports.LOOPBACK} --log-level error --port {server} --ui-port {ui}"
    argv = (str(temporal_binary()), *options.split(), "--http-port", str(http), "--metrics-port", str(metrics))
    child = Child(Program("temporal", argv), tmp_path_factory.mktemp("bare"), healthy)
    await child.start()
    yield address
    await child.stop()


async def _troubles(address: str, namespace: str) -> list[Finding]:
    client = await connect(address, namespace)
    return [one for one in await examined(client, address, [WORKFLOWS]) if one.standing != "ok"]


async def _mend(finding: Finding) -> None:
    """Run the commands of its remedy, with the environment made ready as README says."""
    _, _, remedy = finding.message.partition("; ")
    environ = {"PATH": f"{temporal_binary().parent}:{os.environ['PATH']}", "SETTLE_SECONDS": "1"}
    for command in re.findall(r"`(.+?)`", remedy):
        ran = await asyncio.create_subprocess_shell(command, cwd=ROOT, env={**os.environ, **environ})
        assert await ran.wait() == 0, command


async def _only_fairness_is_left(address: str, namespace: str) -> None:
    """The server's caches learn of a change within seconds."""
    async with asyncio.timeout(30):
        while [one.check for one in await _troubles(address, namespace)] != ["fairness"]:
            await asyncio.sleep(0.5)


async def test_the_embedded_server_is_well(temporal: EmbeddedTemporal) -> None:
    assert await _troubles(temporal.address, "default") == []


async def test_a_server_as_it_comes_is_told_what_it_lacks_and_the_remedy_mends_it(bare: str) -> None:
    namespace, attributes, fairness = await _troubles(bare, "default")
    assert (namespace.check, namespace.standing) == ("namespace", "warn")
    assert namespace.message.startswith("default keeps an ended workflow for 1 day, too short")
    assert (attributes.check, attributes.standing) == ("search attributes", "fail")
    assert attributes.message.startswith(f"{', '.join(SEARCH_ATTRIBUTES)} are not registered; ")
    assert (fairness.check, fairness.standing) == ("fairness", "warn")
    await _mend(attributes)
    await _only_fairness_is_left(bare, "default")


async def test_an_attribute_of_the_wrong_type_is_told_and_mended(bare: str) -> None:
    where = f"--address {bare} --namespace default --name CiteLoopPriority"
    for words in (f"remove {where} --yes", f"create {where} --type Text"):
        command = (str(temporal_binary()), "operator", "search-attribute", *words.split())
        await asyncio.to_thread(subprocess.run, command, capture_output=True, check=True)
    wrong, _ = await _troubles(bare, "default")
    assert wrong.message.startswith("CiteLoopPriority is of type Text, not Int; ")
    await _mend(wrong)
    await _only_fairness_is_left(bare, "default")


async def test_a_namespace_that_is_not_there_is_told_and_the_remedy_makes_it(bare: str) -> None:
    missing, *rest = await _troubles(bare, "citeloop")
    assert (missing.check, missing.standing, rest) == ("namespace", "fail", [])
    await _mend(missing)
    await _only_fairness_is_left(bare, "citeloop")


@activity.defn
async def nothing() -> None:
    """Never called."""


async def test_work_that_nobody_polls_for_is_told(bare: str) -> None:
    client = await Client.connect(bare)
    known = Catalog(sites=(SITE,))
    (unworked,) = await work(client, known, [])
    assert unworked.message.startswith("no worker polls any queue; `citeloop worker`")
    await client.start_workflow("Nobody", id="waiting", task_queue=WORKFLOWS)
    await _backlog(client, known, "no worker polls any queue, and 1 task waits; `citeloop worker`")
    async with Worker(client, task_queue=BOOKKEEPING, activities=[nothing]):
        said = f"1 task waits in {WORKFLOWS} and no worker polls it; `citeloop worker --only {WORKFLOWS}`"
        await _backlog(client, known, said)
        findings = await work(client, known, [])
    assert [(one.standing, one.message.partition(";")[0]) for one in findings[1:]] == [
        ("warn", f"no worker polls {SITE.queue}")
    ]


async def _backlog(client: Client, known: Catalog, said: str) -> None:
    """The server counts a backlog a moment later."""
    async with asyncio.timeout(20):
        while not (await work(client, known, []))[0].message.startswith(said):
            await asyncio.sleep(0.2)


def test_every_queue_of_the_catalogue_is_wanted_once() -> None:
    second = SITE.model_copy(update={"name": "second"})
    assert queues_of(Catalog(sites=(SITE, second))) == [WORKFLOWS, BOOKKEEPING, "publisher.wordpress"]
