"""Samples: every answer that was bought, scored, with its place in the measurement."""

import base64
import binascii
from enum import StrEnum
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field, ValidationError

from citeloop.models import ids
from citeloop.models.record import Record
from citeloop.store.repositories import campaign_views, sample_views
from citeloop.store.repositories.sample_views import Place, SampleView
from starter.api import examples
from starter.api.answers import KEY_NEEDED, answers
from starter.api.articles import known
from starter.api.campaigns import no_campaign
from starter.api.paging import NAME, ArticleId, CampaignId, Limit, paged
from starter.api.wiring import Caller, CallerDep
from starter.errors import CommandError

router = APIRouter(prefix="/v1", tags=["samples"], dependencies=[KEY_NEEDED])


class Window(StrEnum):
    BASELINE = "baseline"
    AFTER = "after"


InWindow = Annotated[Window | None, Query(description="Only before, or only after publishing.")]
OfEngine = Annotated[str | None, Query(pattern=NAME, description="Only of this engine.")]
AfterPlace = Annotated[str | None, Query(pattern="^[A-Za-z0-9_-]{1,1000}$", description="`next` of the page before.")]


class SamplePage(Record):
    manifest_id: str = Field(description="Two windows compare only under the same manifest.")
    items: tuple[SampleView, ...]
    next: str | None


_EXAMPLE = {"manifest_id": examples.SAMPLE["manifest_id"], "items": [examples.SAMPLE], "next": None}


@router.get("/campaigns/{campaign_id}/samples", summary="List a campaign's samples", responses=answers(_EXAMPLE, 404))
async def list_campaign_samples(
    campaign_id: CampaignId,
    caller: CallerDep,
    window: InWindow = None,
    engine: OfEngine = None,
    after: AfterPlace = None,
    limit: Limit = 100,
) -> SamplePage:
    """All under its manifest, control prompts included, in the order of their windows."""
    async with caller.database.tenant(caller.tenant.id) as scope:
        campaign = await campaign_views.get(scope, campaign_id)
    if campaign is None:
        raise no_campaign(campaign_id)
    return await _page(caller, campaign.manifest_id, None, window, engine, after, limit)


@router.get("/articles/{article_id}/samples", summary="List an article's samples", responses=answers(_EXAMPLE, 404))
async def list_article_samples(
    article_id: ArticleId,
    caller: CallerDep,
    window: InWindow = None,
    engine: OfEngine = None,
    after: AfterPlace = None,
    limit: Limit = 100,
) -> SamplePage:
    """Of its own prompt, whoever asked: the baseline of a campaign is asked by the campaign."""
    article = await known(caller, article_id)
    prompt_id = ids.prompt_id(article.keyword, article.locale)
    return await _page(caller, article.manifest_id, prompt_id, window, engine, after, limit)


async def _page(
    caller: Caller,
    manifest_id: str,
    prompt_id: str | None,
    window: Window | None,
    engine: str | None,
    after: str | None,
    limit: int,
) -> SamplePage:
    place = _read(after) if after is not None else None
    async with caller.database.tenant(caller.tenant.id) as scope:
        found = await sample_views.page(
            scope, manifest_id, prompt_id=prompt_id, window=window, engine=engine, after=place, limit=limit + 1
        )
    items, next_ = paged(found, limit, _written)
    return SamplePage(manifest_id=manifest_id, items=items, next=next_)


def _written(sample: SampleView) -> str:
    place = sample.model_dump_json(include=set(Place.model_fields))
    return base64.urlsafe_b64encode(place.encode()).decode().rstrip("=")


def _read(written: str) -> Place:
    try:
        plain = base64.urlsafe_b64decode(written + "=" * (-len(written) % 4)).decode()
        place = Place.model_validate_json(plain)
    except (ValidationError, binascii.Error, UnicodeDecodeError):
        place = None
    if place is None or not 0 <= place.replicate < 2**31 or "\0" in place.model_dump_json():
        raise CommandError("it is no `next` of ours", "after", "leave it out for the first page")
    return place
