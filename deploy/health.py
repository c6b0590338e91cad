"""The container's health check: exit 0 when its process does its work, else 1 and a sentence.

`health.py api [ADDRESS]` asks /readyz. `health.py worker [QUEUE]` asks Temporal whether this container polls the
queue. Without an argument the container's first process says which of the two it is.
"""  # noqa: INP001 - a script of the image, not a package

import asyncio
import os
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client
from temporalio.envconfig import ClientConfig
from temporalio.service import RPCError

ADDRESS = "http://127.0.0.1:8080"
QUEUE = "citeloop.workflows"
PATIENCE = 10
POLL = timedelta(seconds=150)
"""A poll waits for a minute; two missed ones are a dead worker."""


class Unhealthy(Exception):  # noqa: N818 - a verdict
    """Why, in a sentence."""


def api(address: str = ADDRESS) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        opener.open(f"{address}/readyz", timeout=PATIENCE).close()
    except urllib.error.HTTPError as error:
        raise Unhealthy(f"{address}/readyz answers {error.code}: {error.read(200).decode(errors='replace')}") from None
    except OSError as error:
        raise Unhealthy(f"{address} does not answer: {error}") from None


def worker(queue: str = QUEUE) -> None:
    try:
        seen = asyncio.run(asyncio.wait_for(_last_poll(queue), PATIENCE))
    except (RPCError, RuntimeError, TimeoutError) as error:
        raise Unhealthy(f"Temporal does not answer: {error}") from None
    if seen is None or datetime.now(UTC) - seen > POLL:
        raise Unhealthy(f"no worker of {socket.gethostname()} polls {queue}")


async def _last_poll(queue: str) -> datetime | None:
    """When a worker of this host last polled the queue. A worker's identity ends with @ and its host's name."""
    profile = ClientConfig.load_client_connect_config()
    client = await Client.connect(**{"target_host": "localhost:7233", **profile})  # type: ignore[arg-type]
    polls = []
    for kind in (TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW, TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY):
        request = DescribeTaskQueueRequest(
            namespace=client.namespace, task_queue=TaskQueue(name=queue), task_queue_type=kind
        )
        reply = await client.workflow_service.describe_task_queue(request)
        polls += [one.last_access_time.ToDatetime(UTC) for one in reply.pollers if _ours(one.identity)]
    return max(polls, default=None)


def _ours(identity: str) -> bool:
    return identity.endswith(f"@{socket.gethostname()}")


def role(words: Sequence[str]) -> str:
    """What the container does, from its first process: `entrypoint worker` and `python -m worker` are the same."""
    known = {"worker": "worker", "api": "api", "starter.api": "api"}
    return next((known[word] for word in words if word in known), "")


def main(arguments: Sequence[str]) -> int:
    first = Path("/proc/1/cmdline").read_bytes().decode(errors="replace").split("\0")
    wanted, *more = arguments or [role(first)]
    try:
        if wanted == "api":
            api(*more)
        elif wanted == "worker":
            worker(*more)
    except Unhealthy as problem:
        print(problem)  # noqa: T201 - shown by `docker inspect`
        return 1
    return 0


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)  # a native runtime that aborts at interpreter exit must not pass for an illness
