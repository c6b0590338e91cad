"""What waits in a task queue, as the server counts it."""

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client

from citeloop.models.record import Record


class Backlog(Record):
    waiting: int
    oldest_seconds: float
    pollers: int


async def backlog(client: Client, queue: str) -> Backlog:
    """Of an activity queue. RPCError when the server does not answer."""
    reply = await client.workflow_service.describe_task_queue(
        DescribeTaskQueueRequest(
            namespace=client.namespace,
            task_queue=TaskQueue(name=queue),
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
            report_stats=True,
        )
    )
    age = reply.stats.approximate_backlog_age
    return Backlog(
        waiting=reply.stats.approximate_backlog_count,
        oldest_seconds=age.seconds + age.nanos / 1e9,
        pollers=len(reply.pollers),
    )
