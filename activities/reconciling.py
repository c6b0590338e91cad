"""The one setter of queue limits, and the sweeper of rows whose workflow never started.

Every worker runs a Reconciler; a Postgres advisory lock lets one of them act.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Iterator
from datetime import timedelta
from fractions import Fraction

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.workflowservice.v1 import UpdateTaskQueueConfigRequest
from temporalio.client import Client
from temporalio.service import RPCError

from activities.telling import tell
from citeloop.models import ids
from citeloop.store.database import Database
from citeloop.store.errors import StoreUnavailable
from citeloop.store.repositories import (
    articles,
    campaigns,
    channels,
    corrections,
    samples,
    starting,
    sweeping,
    throttling,
)
from citeloop.store.repositories.channels import ChannelRow
from workflows.client import start_article, start_campaign, start_correction
from workflows.orders import CampaignOrder, Word
from workflows.stages import PageRef

log = logging.getLogger(__name__)

EVERY = 0.5
SWEEP_EVERY = 10
LOOK_EVERY = timedelta(seconds=5)
"""So much later, at most, a follower takes over."""

AHEAD_OF_PACER = Fraction(5, 4)
"""The queue hands out a little more than the rate: the exact pacing is the store's (ADR 0002), and a turn that
finds no task waiting is lost for good."""

DRAIN = Fraction(20)
"""Tasks a second that a queue hands out although its channel may not be called: those with another channel in their
plan move there, the others ask again later."""

MOST_OF_A_REASON = 1000
"""Bytes. The server refuses the limit together with a longer one."""

PARTITIONS_EVERY = timedelta(days=1)
SWEEP_OLDER_THAN = timedelta(seconds=10)


class Reconciler:
    def __init__(self, client: Client, database: Database) -> None:
        self._client = client
        self._database = database
        self._applied: dict[str, tuple[Fraction | None, str]] = {}
        self._failing: set[str] = set()
        self._beat = 0
        """Since it leads."""
        self._partitions_due = 0.0

    async def run(self) -> None:
        """Until cancelled: twice a second while leading. Nothing that fails ends it, since the whole worker would."""
        async with sweeping.Leadership(self._database, "reconciler", look_every=LOOK_EVERY) as leadership:
            while True:
                try:
                    if await leadership.leads():
                        await self._act()
                    else:
                        self._step_down()
                except (StoreUnavailable, RPCError) as error:
                    log.warning("reconciler waits: %s", error)
                except Exception:
                    log.exception("the reconciler's beat failed; it goes on with the next")
                await asyncio.sleep(EVERY)

    async def _act(self) -> None:
        sweeps = self._beat % SWEEP_EVERY == 0
        self._beat += 1
        with self._apart("setting limits"):
            await self.set_limits()
        if not sweeps:
            return
        with self._apart("sweeping"):
            await self.sweep()
        with self._apart("forgetting old faults"):
            await self._forget()
        if time.monotonic() >= self._partitions_due:
            with self._apart("preparing partitions"):
                await self._prepare_partitions()
                self._partitions_due = time.monotonic() + PARTITIONS_EVERY.total_seconds()

    def _step_down(self) -> None:
        """Another leads: what was done before says nothing when it is our turn again."""
        self._applied.clear()
        self._failing.clear()
        self._beat, self._partitions_due = 0, 0.0

    @contextlib.contextmanager
    def _apart(self, what: str) -> Iterator[None]:
        """One part of a beat: the others go on without it. Told once, until it has succeeded.

        A store that does not answer ends the beat: each of a hundred rows would wait for it anew.
        """
        try:
            yield
        except StoreUnavailable:
            raise
        except Exception as error:
            if what not in self._failing:
                log.warning("%s failed, and is tried again: %s", what, error, exc_info=not isinstance(error, RPCError))
            self._failing.add(what)
        else:
            self._failing.discard(what)

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
            with self._apart(f"setting the limit of {row.queue}"):
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
        request.update_queue_rate_limit.reason = why.encode()[:MOST_OF_A_REASON].decode(errors="ignore")
        await self._client.workflow_service.update_task_queue_config(request)

    async def sweep(self) -> None:
        """Start what was committed but never started: the door died in between."""
        async with self._database.operator() as op:
            lone = await sweeping.unstarted(op, SWEEP_OLDER_THAN)
            waiting = await sweeping.unstarted_campaigns(op, SWEEP_OLDER_THAN)
            uncorrected = await corrections.waiting(op, SWEEP_OLDER_THAN)
        for tenant_id, article_id, site in uncorrected:
            with self._apart(f"starting the correction of {article_id} on {site}"):
                page = PageRef(tenant_id=tenant_id, article_id=article_id, site=site)
                await start_correction(self._client, page, tell=False)
        for tenant_id, article_id in lone:
            with self._apart(f"starting article {article_id}"):
                await self.start_article(tenant_id, article_id)
        for tenant_id, campaign_id in waiting:
            with self._apart(f"starting campaign {campaign_id}"):
                await self.start_campaign(tenant_id, campaign_id)

    async def start_article(self, tenant_id: str, article_id: str) -> None:
        """Unless it was held, cancelled or started since the list was read."""
        async with self._database.tenant(tenant_id) as scope:
            plan = await starting.unstarted_plan(scope, article_id)
        if plan is None:
            return
        run_id = await start_article(self._client, plan)
        async with self._database.tenant(tenant_id) as scope:
            cancelled = await articles.started(scope, article_id, run_id)
        await self._stop(ids.workflow_id(tenant_id, article_id), cancelled)

    async def start_campaign(self, tenant_id: str, campaign_id: str) -> None:
        """Unless it was paused, cancelled or started since the list was read."""
        async with self._database.tenant(tenant_id) as scope:
            campaign = await campaigns.get(scope, campaign_id)
            waits = await starting.campaign_waits(scope, campaign_id)
        if campaign is None or not waits:
            return
        order = CampaignOrder(tenant_id=tenant_id, campaign_id=campaign_id, window=campaign.request.window)
        await start_campaign(self._client, order)
        async with self._database.tenant(tenant_id) as scope:
            cancelled = await starting.campaign_began(scope, campaign_id)
        await self._stop(ids.campaign_workflow_id(tenant_id, campaign_id), cancelled)

    async def _stop(self, workflow_id: str, cancelled: str | None) -> None:
        """A run that was begun while its row was being cancelled, for the reason given."""
        if cancelled is not None:
            await tell(self._client, workflow_id, "cancel", Word(by="reconciler", reason=cancelled))


def _dispatched(row: ChannelRow) -> Fraction | None:
    """Tasks a second that the queue may hand out."""
    if row.drains:
        return DRAIN
    rate = row.effective_rate
    return rate and rate * AHEAD_OF_PACER / row.calls_per_dispatch
