"""Submit a campaign: `python examples/start.py BRAND.toml KEYWORDS.csv`."""

import asyncio
import os
import sys
from pathlib import Path

from citeloop.models.request import CampaignRequest
from citeloop.settings import Settings
from starter.cli.session import acting
from starter.files import read_brand, read_keywords


async def main(brand: str, keywords: str) -> None:
    request = CampaignRequest(name=Path(keywords).stem, keywords=read_keywords(Path(keywords)))
    async with acting(Settings()) as desk:
        print(await desk.commands.submit_campaign(read_brand(Path(brand)), request), flush=True)


asyncio.run(main(*sys.argv[1:]))
os._exit(0)  # the work is done; at a normal exit the native runtime of SDK 1.35 sometimes aborts
