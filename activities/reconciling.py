"""The one setter of queue limits, and the sweeper of rows whose workflow never started.

Every worker runs a Reconciler; a Postgres advisory lock lets one of them act.
"""

import asyncio
import logging
from datetime import timedelta
from fractions import Fraction

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.workflowservice.v1 import UpdateTaskQueueConfigRequest
from temporalio.client import Client
from temporalio.service import RPCError

from citeloop.store.database import Database
from citeloop.store.errors import StoreUnavailable
from citeloop.store.repositories import articles, campaigns, channels, corrections, samples, sweeping, throttling
from citeloop.store.repositories.channels import ChannelRow
from workflows.client import start_article, start_campaign, start_correction
from workflows.orders import CampaignOrder
from workflows.stages import PageRef

log = logging.getLogger(__name__)

EVERY = 0.5
SWEEP_EVERY = 10
AHEAD_OF_PACER = Fraction(5, 4)
"""The queue hands out a little more than the rate: the exact pacing is the store's (ADR 0002), and a turn that
finds no task waiting is lost for good."""

DRAIN = Fraction(20)
"""Tasks a second that a queue hands out although its channel may not be called: those with another channel in their
plan move there, the others ask again later."""

PARTITIONS_EVERY = 172_800
SWEEP_OLDER_THAN = timedelta(seconds=10)


class Reconciler:
    def __init__(self, client: Client, database: Database) -> None:
        self._client = client
        self._database = database
        self._applied: dict[str, tuple[Fraction | None, str]] = {}

    async def run(self) -> None:
        """Until cancelled: twice a second while leading; a lost store or server is waited for."""
        beat = 0
        async with sweeping.Leadership(self._database, "reconciler") as leadership:
            while True:
                try:
                    if await leadership.leads():
                        await self.set_limits()
                        if beat % SWEEP_EVERY == 0:
                            await self.sweep()
                            await self._forget()
                        if beat % PARTITIONS_EVERY == 0:
                            await self._prepare_partitions()
                    else:
                        self._applied.clear()
                except (StoreUnavailable, RPCError) as error:
                    log.warning("reconciler waits: %s", error)
                beat += 1
                await asyncio.sleep(EVERY)

    async def _prepare_partitions(self) -> None:
        async with self._database.operator() as op:
            await samples.prepare_months(op)

    async def _forget(self) -> None:
        async with self._database.operator() as op:
            await throttling.sweep(op)

    async def set_limits(self) -> None:
        """Each channel's effective rate onto its queue, where it differs from what was set last."""
        async with self._database.operator() as op:
            await throttling.recover(op)
            rows = await channels.rows(op)
        for row in rows:
            wanted = (_dispatched(row), row.why)
            if self._applied.get(row.queue) == wanted:
                continue
            await self._set(row.queue, *wanted)
            self._applied[row.queue] = wanted

    async def _set(self, queue: str, rate: Fraction | None, why: str) -> None:
        request = UpdateTaskQueueConfigRequest(
            namespace=self._client.namespace,
            identity="citeloop-reconciler",
            task_queue=queue,
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
        )
        request.update_queue_rate_limit.SetInParent()
        if rate is not None:
            request.update_queue_rate_limit.rate_limit.requests_per_second = float(rate)
        request.update_queue_rate_limit.reason = why
        await self._client.workflow_service.update_task_queue_config(request)

    async def sweep(self) -> None:
        """Start what was committed but never started: the door died in between."""
        async with self._database.operator() as op:
            lone = await sweeping.unstarted(op, SWEEP_OLDER_THAN)
            waiting = await sweeping.unstarted_campaigns(op, SWEEP_OLDER_THAN)
            uncorrected = await corrections.waiting(op, SWEEP_OLDER_THAN)
        for tenant_id, article_id, site in uncorrected:
            page = PageRef(tenant_id=tenant_id, article_id=article_id, site=site)
            await start_correction(self._client, page, tell=False)
        for tenant_id, article_id in lone:
            async with self._database.tenant(tenant_id) as scope:
                plan = await articles.plan(scope, article_id)
            run_id = await start_article(self._client, plan)
            async with self._database.tenant(tenant_id) as scope:
                await articles.started(scope, article_id, run_id)
        for tenant_id, campaign_id in waiting:
            async with self._database.tenant(tenant_id) as scope:
                campaign = await campaigns.get(scope, campaign_id)
            assert campaign is not None
            order = CampaignOrder(tenant_id=tenant_id, campaign_id=campaign_id, window=campaign.request.window)
            await start_campaign(self._client, order)
            async with self._database.tenant(tenant_id) as scope:
                await campaigns.note(scope, campaign_id, "running")


def _dispatched(row: ChannelRow) -> Fraction | None:
    """Tasks a second that the queue may hand out."""
    if row.drains:
        return DRAIN
    rate = row.effective_rate
    return rate and rate * AHEAD_OF_PACER / row.calls_per_dispatch
