"""Submit a campaign: `python examples/start.py BRAND.toml KEYWORDS.csv`."""

from pathlib import Path

from citeloop.models.request import CampaignRequest
from citeloop.settings import Settings
from starter.cli.session import acting
from starter.files import read_brand, read_keywords
from starter.scripts import finish


async def main(brand: str, keywords: str) -> None:
    request = CampaignRequest(name=Path(keywords).stem, keywords=read_keywords(Path(keywords)))
    async with acting(Settings()) as desk:
        print(await desk.commands.submit_campaign(read_brand(Path(brand)), request), flush=True)


finish(main)
