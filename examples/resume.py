"""Let a paused article go on: `python examples/resume.py article/TENANT/ARTICLE`."""

from citeloop.settings import Settings
from starter.connecting import connected
from starter.scripts import finish


async def main(workflow_id: str) -> None:
    client = await connected(Settings())
    await client.get_workflow_handle(workflow_id).signal("resume")


finish(main)
