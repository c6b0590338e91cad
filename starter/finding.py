"""What people call things: an id, its beginning, a keyword, a campaign's name."""

from citeloop.store.database import Scope
from citeloop.store.errors import NotFound
from citeloop.store.repositories import articles, brand_handles, campaigns
from citeloop.store.repositories.articles import ArticleView
from citeloop.store.repositories.brand_handles import BrandRevision
from citeloop.store.repositories.campaigns import CampaignView
from starter.errors import CommandError, Missing

_PAGE = 200


async def find_brand(scope: Scope, handle: str) -> BrandRevision:
    """Missing when nothing stands under the handle."""
    found = await brand_handles.get(scope, handle)
    if found is None:
        raise no_brand(handle)
    return found


def no_brand(name: str) -> Missing:
    return Missing(f"{name!r} is no brand", "brand", "put it first: PUT /v1/brands/{brand}")


async def find_article(scope: Scope, ref: str) -> ArticleView:
    """By id, unique beginning of an id, or exact keyword. Missing when nothing, CommandError when several match."""
    try:
        found = await articles.find(scope, ref)
    except NotFound as error:
        raise CommandError(str(error), "article", "`citeloop status` lists them") from None
    if found is None:
        raise Missing(f"{ref!r} is no article", "article", "`citeloop status` lists them")
    return found


async def find_campaign(scope: Scope, ref: str) -> CampaignView:
    """By id, unique beginning of an id, or name; of several with that name the newest."""
    known = await campaigns.get(scope, ref)
    if known is not None:
        return known
    page = await campaigns.list_(scope, after=None, limit=_PAGE)
    named = [c for c in page if c.name == ref] or [c for c in page if c.id.startswith(ref.upper())]
    if not named:
        raise Missing(f"{ref!r} is no campaign", "campaign", "`citeloop campaigns` lists them")
    return max(named, key=lambda campaign: campaign.created_at)
