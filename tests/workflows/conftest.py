import contextlib
import sysconfig
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
from temporalio.client import Client, WorkflowHandle
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from citeloop.models.plan import Plan
from citeloop.models.work import Ended
from tests.workflows.world import QUEUES, World, plan
from workflows.article import ArticleWorkflow
from workflows.campaign import CampaignWorkflow
from workflows.correction import CorrectionWorkflow
from workflows.orders import ArticleOrder
from workflows.steering import CAMPAIGN, CHANNEL, PRIORITY, STAGE, STATE, TENANT

SCRIPTS = Path(sysconfig.get_path("scripts"))


@pytest.fixture(scope="session")
async def skipping() -> AsyncIterator[WorkflowEnvironment]:
    """A test server whose clock jumps over every wait."""
    async with await WorkflowEnvironment.start_time_skipping(
        data_converter=pydantic_data_converter, test_server_existing_path=str(SCRIPTS / "temporal-test-server")
    ) as env:
        await env.client.operator_service.add_search_attributes(
            AddSearchAttributesRequest(
                namespace="default",
                search_attributes={
                    **dict.fromkeys(
                        (key.name for key in (TENANT, CAMPAIGN, STAGE, STATE, CHANNEL)),
                        IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
                    ),
                    PRIORITY.name: IndexedValueType.INDEXED_VALUE_TYPE_INT,
                },
            )
        )
        yield env


@pytest.fixture(scope="session")
async def running() -> AsyncIterator[WorkflowEnvironment]:
    """The real server, as the stack runs it; its clock is everybody's."""
    async with await WorkflowEnvironment.start_local(
        data_converter=pydantic_data_converter,
        dev_server_existing_path=str(SCRIPTS / "temporal"),
        dev_server_extra_args=["--dynamic-config-value", 'history.timerProcessorMaxTimeShift="10ms"'],
        search_attributes=[TENANT, CAMPAIGN, STAGE, STATE, CHANNEL, PRIORITY],
        dev_server_log_level="error",
    ) as env:
        yield env


@dataclass
class Theatre:
    """A world in which workflows run: its client, its workers, its script."""

    env: WorkflowEnvironment
    world: World

    @property
    def _own(self) -> int:
        return id(self.world)

    @property
    def last_id(self) -> str:
        """The id under which `start` starts the default article."""
        return f"article/t1/a1/{self._own}"

    @property
    def client(self) -> Client:
        return self.env.client

    async def start(
        self,
        wanted: Plan | None = None,
        *,
        workflow_id: str | None = None,
        **order: Any,
    ) -> WorkflowHandle[ArticleWorkflow, Ended]:
        wanted = wanted or plan()
        return await self.client.start_workflow(
            ArticleWorkflow.run,
            ArticleOrder(plan=wanted, **order),
            id=workflow_id or f"article/{wanted.tenant_id}/{wanted.article_id}/{self._own}",
            task_queue=QUEUES[0],
        )


@contextlib.asynccontextmanager
async def _theatre(env: WorkflowEnvironment) -> AsyncIterator[Theatre]:
    world = World()
    async with AsyncExitStack() as stack:
        for queue in QUEUES:
            await stack.enter_async_context(
                Worker(
                    env.client,
                    task_queue=queue,
                    workflows=[ArticleWorkflow, CampaignWorkflow, CorrectionWorkflow] if queue == QUEUES[0] else [],
                    activities=world.activities(),
                    disable_eager_activity_execution=True,
                )
            )
        yield Theatre(env, world)


@pytest.fixture
async def theatre(running: WorkflowEnvironment) -> AsyncIterator[Theatre]:
    async with _theatre(running) as theatre:
        yield theatre


@pytest.fixture
async def years(skipping: WorkflowEnvironment) -> AsyncIterator[Theatre]:
    """A theatre in which days pass at once."""
    async with _theatre(skipping) as theatre:
        yield theatre
