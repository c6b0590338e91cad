"""End an article: `python examples/cancel.py article/TENANT/ARTICLE REASON`."""

from citeloop.settings import Settings
from starter.connecting import connected
from starter.scripts import finish


async def main(workflow_id: str, reason: str) -> None:
    client = await connected(Settings())
    await client.get_workflow_handle(workflow_id).signal("cancel", {"reason": reason})


finish(main)
