"""Reject the draft that waits for review: `python examples/reject.py article/TENANT/ARTICLE NAME NOTES`."""

from citeloop.settings import Settings
from starter.connecting import connected
from starter.scripts import finish


async def main(workflow_id: str, by: str, notes: str) -> None:
    client = await connected(Settings())
    await client.get_workflow_handle(workflow_id).signal("reject", {"by": by, "notes": notes})


finish(main)
