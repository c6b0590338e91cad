"""Try the stage of a parked article again: `python examples/retry.py article/TENANT/ARTICLE`."""

import asyncio
import os
import sys

from citeloop.settings import Settings
from starter import endpoints
from workflows.client import connect


async def main(workflow_id: str) -> None:
    address, namespace, _ = endpoints.temporal(Settings())
    client = await connect(address, namespace)
    await client.get_workflow_handle(workflow_id).signal("retry")


asyncio.run(main(*sys.argv[1:]))
os._exit(0)  # the work is done; at a normal exit the native runtime of SDK 1.35 sometimes aborts
