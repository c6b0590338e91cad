"""A word to a workflow that may have ended meanwhile."""

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from workflows.orders import Rank, Word


async def tell(client: Client, workflow_id: str, signal: str, word: Word | Rank) -> bool:
    """False: it has no open run. RPCError when the server does not answer."""
    try:
        await client.get_workflow_handle(workflow_id).signal(signal, word)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return False
        raise
    return True
