"""Change an article's place among your own, 1 first: `python examples/prioritise.py article/TENANT/ARTICLE 1-5`."""

from citeloop.settings import Settings
from starter.connecting import connected
from starter.scripts import finish


async def main(workflow_id: str, priority: str) -> None:
    client = await connected(Settings())
    await client.get_workflow_handle(workflow_id).signal("prioritise", {"priority": int(priority)})


finish(main)
