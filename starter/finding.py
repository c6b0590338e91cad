"""What people call things: an id, its beginning, a keyword, a campaign's name, a text's digest."""

import re
from collections.abc import Callable

from citeloop.store.database import Scope
from citeloop.store.errors import NotFound
from citeloop.store.repositories import articles, brand_handles, campaign_views, campaigns
from citeloop.store.repositories.articles import ArticleView
from citeloop.store.repositories.brand_handles import BrandRevision
from citeloop.store.repositories.campaign_views import CampaignSummary
from citeloop.store.repositories.campaigns import CampaignView
from starter.errors import CommandError, Missing

_PAGE = 200
_SHOWN = 5
_LEAST_PREFIX = 4
_DIGEST = re.compile("[0-9a-f]{8,64}")


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
        raise CommandError(str(error), "article", "`citeloop status --ids` tells them apart") from None
    if found is None:
        raise Missing(f"{ref!r} is no article", "article", "`citeloop status` lists them")
    return found


async def find_campaign(scope: Scope, ref: str) -> CampaignView:
    """By id, unique beginning of an id, or name. Missing when nothing, CommandError when several match."""
    known = await campaigns.get(scope, ref)
    if known is not None:
        return known
    meant = await _campaigns(scope, ref)
    if len(meant) > 1:
        shown = ", ".join(f"{one.id} ({one.state}, of {one.created_at:%Y-%m-%d %H:%M})" for one in meant[:_SHOWN])
        more = ", …" if len(meant) > _SHOWN else ""
        raise CommandError(f"{ref!r} means {len(meant)} campaigns: {shown}{more}", "campaign", "name one by its id")
    return await _whole(scope, meant[0])


async def newest_campaign(scope: Scope, ref: str, tell: Callable[[str], None]) -> CampaignView:
    """As `find_campaign`, for who only looks: of several the newest, and `tell` is told so. Missing."""
    known = await campaigns.get(scope, ref)
    if known is not None:
        return known
    meant = await _campaigns(scope, ref)
    if len(meant) > 1:
        named = "named" if meant[0].name == ref else "whose id begins with"
        tell(f"newest of {len(meant)} {named} {ref}; id {meant[0].id}")
    return await _whole(scope, meant[0])


def digest_of(given: str) -> str:
    """A digest, or enough of its beginning to mean one text. CommandError: an unset variable must not mean any text."""
    digest = given.lower()
    if not _DIGEST.fullmatch(digest):
        remedy = "give the 64 hex digits of the text that was read, or at least the first 8"
        raise CommandError(f"{given[:70]!r} is no digest", "digest", remedy)
    return digest


async def _campaigns(scope: Scope, ref: str) -> list[CampaignSummary]:
    """All of that name, else all whose id begins so; the newest first. Missing."""
    every: list[CampaignSummary] = []
    while True:
        after = every[-1].id if every else None
        page = await campaign_views.list_(scope, state=None, after=after, limit=_PAGE)
        every.extend(page)
        if len(page) < _PAGE:
            break
    meant = [one for one in every if one.name == ref]
    if not meant and len(ref) >= _LEAST_PREFIX:
        meant = [one for one in every if one.id.startswith(ref.upper())]
    if not meant:
        raise Missing(f"{ref!r} is no campaign", "campaign", "`citeloop campaigns` lists them")
    return meant


async def _whole(scope: Scope, summary: CampaignSummary) -> CampaignView:
    found = await campaigns.get(scope, summary.id)
    assert found is not None
    return found
