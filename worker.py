"""The composition root: one Worker for workflow tasks, one for the desk, one per channel and kind of site."""

import argparse
import asyncio
import fnmatch
import gc
import logging
import os
import signal
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

import uvloop
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from activities.bookkeeping import BookkeepingActivities
from activities.correcting import CorrectingActivities
from activities.illustrating import IllustratingActivities
from activities.inspecting import InspectingActivities
from activities.monitoring import MonitoringActivities
from activities.publishing import PublishingActivities
from activities.reconciling import Reconciler
from activities.reviewing import ReviewingActivities
from activities.slots import Concurrency, Overhang, Slots
from activities.tracing import ActivityNames
from activities.writing import WritingActivities
from citeloop import telemetry
from citeloop.channels import catalog
from citeloop.channels.outside import Outside
from citeloop.models.channel import Catalog, SiteKind, publisher_queue
from citeloop.models.plan import CallPolicy
from citeloop.settings import Settings
from citeloop.store.database import Database
from citeloop.store.repositories import channels
from workflows import options
from workflows.article import ArticleWorkflow
from workflows.campaign import CampaignWorkflow
from workflows.client import connect
from workflows.correction import CorrectionWorkflow

log = logging.getLogger("citeloop.worker")

STICKY = timedelta(seconds=2)
"""How long a dead worker's cached workflows wait before another worker takes them over."""

BEAT = timedelta(seconds=1)
"""The SDK would hold beats back for 0.8 × the heartbeat timeout: so late a cancel would come, and a stall of the
remaining fifth on a busy machine would pass for a death and have the call bought again."""

SWEEPS = (10_000, 20, 20)
"""Hundreds of calls in flight keep more than Python's 700 young objects: each sweep would find them all alive."""

DESK_SLOTS = 20

PUBLISHER_SLOTS = 100
"""Of each kind of site. Any site holds at most its own concurrency of them, however long it hangs."""


class Hands:
    """All activities, with their clients; which queue offers which of them."""

    def __init__(self, database: Database, outside: Outside, client: Client, callback_base: str) -> None:
        self.writing = WritingActivities(database, outside)
        self.illustrating = IllustratingActivities(database, outside)
        self.reviewing = ReviewingActivities(database)
        self.publishing = PublishingActivities(database, outside, callback_base)
        self.inspecting = InspectingActivities(database, outside)
        self.correcting = CorrectingActivities(database, outside)
        self.monitoring = MonitoringActivities(database, outside)
        self.bookkeeping = BookkeepingActivities(database, client)

    def local(self) -> list[Callable[..., Any]]:
        """What runs beside the workflow, as local activities."""
        keeper = self.bookkeeping
        return [
            keeper.note,
            keeper.baseline_ready,
            keeper.measure,
            keeper.brief,
            keeper.census,
            keeper.questions,
            self.reviewing.decide,
            self.correcting.next,
            self.correcting.give_up,
        ]

    def desk(self) -> list[Callable[..., Any]]:
        return [
            self.illustrating.card,
            self.reviewing.judge,
            self.publishing.inbox,
            self.bookkeeping.admit,
            self.bookkeeping.change,
        ]

    def channel(self) -> list[Callable[..., Any]]:
        return [self.writing.generate, self.writing.rewrite, self.illustrating.illustrate, self.monitoring.sample]

    def publisher(self) -> list[Callable[..., Any]]:
        return [
            self.publishing.publish,
            self.publishing.reconcile,
            self.inspecting.page,
            self.correcting.carry_out,
        ]


class Post:
    """One queue to be served: its activities and how many of them at once; for a channel, changed while it runs."""

    def __init__(
        self, queue: str, activities: Sequence[Callable[..., Any]], slots: int, *, channel: bool = False
    ) -> None:
        self.queue = queue
        self.activities = activities
        self.slots = slots
        self.channel = channel


def posts(known: Catalog, queues_in_use: Iterable[str], hands: Hands) -> list[Post]:
    """Every queue of channels.toml, one per kind of site, and every other one that the store says is in use.

    A vanished channel's queue is still served, so that its waiting work can be told to move on.
    """
    served = {spec.queue: Post(spec.queue, hands.channel(), spec.concurrency, channel=True) for spec in known.channels}
    for kind in SiteKind:
        slots = sum(site.concurrency for site in known.sites if site.kind is kind)
        served[publisher_queue(kind)] = Post(publisher_queue(kind), hands.publisher(), max(PUBLISHER_SLOTS, slots))
    for queue in queues_in_use:
        served.setdefault(queue, Post(queue, hands.channel(), 4, channel=True))
    served[options.BOOKKEEPING] = Post(options.BOOKKEEPING, hands.desk(), DESK_SLOTS)
    return list(served.values())


def grace(known: Catalog) -> timedelta:
    """Longer than the longest heartbeat, so that a drained call is never taken for a dead one."""
    policies: list[CallPolicy] = [spec.policy for spec in known.channels]
    policies += [policy for spec in known.channels for policy in spec.stage_policies.values()]
    policies += [site.policy for site in known.sites]
    longest = max((policy.heartbeat for policy in policies), default=timedelta(seconds=10))
    return longest + timedelta(seconds=20)


async def serve(settings: Settings, only: Sequence[str], *, stop: asyncio.Event) -> None:
    """Serve the chosen queues (all by default; patterns such as `channel.*` will do) until `stop` is set."""
    known = catalog.load(settings.channels, os.environ)
    if settings.database_url is None:
        raise SystemExit("error: CITELOOP_DATABASE_URL: not set; `citeloop worker` starts a worker that knows it")
    database, outside = Database(settings.database_url.get_secret_value()), Outside(known, os.environ)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(database.close)
        stack.push_async_callback(outside.close)
        client = await connect()
        async with database.operator() as op:
            await channels.sync(op, known)
            in_use = [row.queue for row in await channels.rows(op)]
        hands = Hands(database, outside, client, settings.callback_base_url or "")
        chosen = [post for post in posts(known, in_use, hands) if _wanted(post.queue, only)]
        live = {post.queue: Slots(post.slots) for post in chosen if post.channel}
        concurrency = Concurrency(database, live)
        await concurrency.apply()
        workers = [_activity_worker(client, post, grace(known), live.get(post.queue)) for post in chosen]
        if _wanted(options.WORKFLOWS, only):
            workers.append(_workflow_worker(client, hands, grace(known)))
        reconciler = asyncio.create_task(Reconciler(client, database).run())
        following = asyncio.create_task(concurrency.run())
        stack.callback(reconciler.cancel)
        stack.callback(following.cancel)
        running = [asyncio.create_task(worker.run()) for worker in workers]
        gc.freeze()  # what was made so far stays: no sweep need look at it again
        gc.set_threshold(*SWEEPS)
        log.info("serving %s", ", ".join(worker.task_queue for worker in workers))
        stopped = asyncio.create_task(stop.wait())
        done, _ = await asyncio.wait({*running, stopped, reconciler, following}, return_when=asyncio.FIRST_COMPLETED)
        log.info("draining")
        await asyncio.gather(*(worker.shutdown() for worker in workers))
        for task in done - {stopped}:
            task.result()


def _wanted(queue: str, only: Sequence[str]) -> bool:
    return not only or any(fnmatch.fnmatchcase(queue, pattern) for pattern in only)


def _activity_worker(client: Client, post: Post, patience: timedelta, live: Slots | None) -> Worker:
    return Worker(
        client,
        task_queue=post.queue,
        activities=post.activities,
        max_concurrent_activities=post.slots if live is None else None,
        tuner=live.tuner() if live is not None else None,
        graceful_shutdown_timeout=patience,
        interceptors=[ActivityNames()] if live is None else [ActivityNames(), Overhang(live)],
        max_heartbeat_throttle_interval=BEAT,
    )


def _workflow_worker(client: Client, hands: Hands, patience: timedelta) -> Worker:
    """Workflows never share a queue with channel activities: eager dispatch would bypass the limits."""
    return Worker(
        client,
        task_queue=options.WORKFLOWS,
        workflows=[ArticleWorkflow, CampaignWorkflow, CorrectionWorkflow],
        activities=hands.local(),
        workflow_runner=UnsandboxedWorkflowRunner(),  # the tests run them sandboxed (ADR 0010)
        disable_eager_activity_execution=True,
        sticky_queue_schedule_to_start_timeout=STICKY,
        graceful_shutdown_timeout=patience,
        interceptors=[ActivityNames()],
    )


async def main(only: Sequence[str]) -> None:
    settings = Settings()
    provider = telemetry.configure(
        "citeloop-worker", home=settings.home, otlp_endpoint=os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT")
    )
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop.set)
    try:
        await serve(settings, only, stop=stop)
    finally:
        provider.shutdown()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", default=[], metavar="QUEUE", help="queue or pattern; repeatable")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    uvloop.run(main(parser.parse_args().only))
    logging.shutdown()
    os._exit(0)  # drained; a native runtime that aborts at interpreter exit must not say otherwise
