"""What waits in a task queue, as the server counts it."""

import time

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client

from citeloop.models.record import Record

ACTIVITIES = TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY


class Backlog(Record):
    waiting: int
    oldest_seconds: float
    pollers: int
    """The server remembers a dead one for five minutes."""
    silent_seconds: float | None = None
    """Since the newest poll began, by this machine's clock; a live worker asks anew every minute."""


async def backlog(client: Client, queue: str, *, kind: TaskQueueType.ValueType = ACTIVITIES) -> Backlog:
    """Of an activity queue, if not said otherwise. RPCError when the server does not answer."""
    reply = await client.workflow_service.describe_task_queue(
        DescribeTaskQueueRequest(
            namespace=client.namespace,
            task_queue=TaskQueue(name=queue),
            task_queue_type=kind,
            report_stats=True,
        )
    )
    age = reply.stats.approximate_backlog_age
    polled = [poller.last_access_time for poller in reply.pollers]
    return Backlog(
        waiting=reply.stats.approximate_backlog_count,
        oldest_seconds=age.seconds + age.nanos / 1e9,
        pollers=len(reply.pollers),
        silent_seconds=time.time() - max(at.seconds + at.nanos / 1e9 for at in polled) if polled else None,
    )
