"""Ask an article how far it has come: `python examples/progress.py article/TENANT/ARTICLE`."""

import asyncio
import json
import os
import sys

from citeloop.settings import Settings
from starter import endpoints
from workflows.client import connect


async def main(workflow_id: str) -> None:
    address, namespace, _ = endpoints.temporal(Settings())
    client = await connect(address, namespace)
    progress = await client.get_workflow_handle(workflow_id).query("progress")
    print(json.dumps(progress, ensure_ascii=False, indent=1), flush=True)


asyncio.run(main(*sys.argv[1:]))
os._exit(0)  # the work is done; at a normal exit the native runtime of SDK 1.35 sometimes aborts
