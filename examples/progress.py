"""Ask an article how far it has come: `python examples/progress.py article/TENANT/ARTICLE`."""

import json

from citeloop.settings import Settings
from starter.connecting import connected
from starter.scripts import finish


async def main(workflow_id: str) -> None:
    client = await connected(Settings())
    progress = await client.get_workflow_handle(workflow_id).query("progress")
    print(json.dumps(progress, ensure_ascii=False, indent=1), flush=True)


finish(main)
