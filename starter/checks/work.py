"""Whether the work is done: a worker polls every queue, and no channel stands still by a person's word."""

import asyncio
from collections.abc import Iterable, Sequence

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.client import Client

from citeloop.models.channel import Catalog
from citeloop.store.repositories.channels import ChannelRow
from starter.backlog import ACTIVITIES, Backlog, backlog
from starter.checks.findings import Finding, fail, listed, ok, warn
from workflows.options import BOOKKEEPING, WORKFLOWS

ALIVE = 90.0
"""Seconds without a new poll after which a poller is taken for dead: a long poll lasts 60."""


def queues_of(known: Catalog | None) -> list[str]:
    """Every queue that somebody must poll, as far as channels.toml tells."""
    channels = [channel.queue for channel in known.channels] if known is not None else []
    sites = [site.queue for site in known.sites] if known is not None else []
    return list(dict.fromkeys((WORKFLOWS, BOOKKEEPING, *channels, *sites)))


async def work(client: Client, known: Catalog | None, rows: Sequence[ChannelRow]) -> list[Finding]:
    """rows: what the store knows of the channels, vanished ones included. RPCError."""
    wanted = queues_of(known)
    every = list(dict.fromkeys((*wanted, *(row.queue for row in rows))))
    kinds = [TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW if queue == WORKFLOWS else ACTIVITIES for queue in every]
    looked = await asyncio.gather(
        *(backlog(client, queue, kind=kind) for queue, kind in zip(every, kinds, strict=True))
    )
    return [*_polled(dict(zip(every, looked, strict=True)), wanted), *_standing_still(rows)]


def _polled(queues: dict[str, Backlog], wanted: Iterable[str]) -> list[Finding]:
    served = {
        queue for queue, seen in queues.items() if seen.silent_seconds is not None and seen.silent_seconds < ALIVE
    }
    waiting = sum(seen.waiting for seen in queues.values())
    if not served:
        held_up = f", and {_tasks(waiting)}" if waiting else ""
        return [fail("worker", f"no worker polls any queue{held_up}; `citeloop worker`, or `citeloop up --detach`")]
    findings = [
        fail(
            "worker",
            f"{_tasks(seen.waiting)} in {queue} and no worker polls it; `citeloop worker --only {queue}`, "
            "or restart the workers",
        )
        for queue, seen in queues.items()
        if queue not in served and seen.waiting
    ]
    idle = [queue for queue in wanted if queue not in served and not queues[queue].waiting]
    if idle:
        findings.append(
            warn(
                "worker", f"no worker polls {listed(idle)}; restart the workers, so that they read channels.toml again"
            )
        )
    shown = f"{len(served)} queues are polled" + (f", {_tasks(waiting)} in all" if waiting else "")
    return findings or [ok("worker", shown)]


def _standing_still(rows: Iterable[ChannelRow]) -> list[Finding]:
    """A hold that ends by itself is no news."""
    findings = []
    for row in rows:
        if row.vanished:
            continue
        if row.paused:
            remedy = f"`citeloop channels resume {row.name}`"
            told = "" if remedy in row.why else f"; {remedy}"
            findings.append(warn("channels", f"{row.name} is {row.why}{told}"))
        elif row.operator_rate == 0:
            findings.append(
                warn("channels", f"{row.name} is stopped by hand; `citeloop channels set {row.name} --rate file`")
            )
        elif row.breaker_until is not None:
            findings.append(
                warn(
                    "channels",
                    f"{row.name}: {row.why}; it tries again by itself, or now: `citeloop channels resume {row.name}`",
                )
            )
    return findings


def _tasks(count: int) -> str:
    return "1 task waits" if count == 1 else f"{count} tasks wait"
