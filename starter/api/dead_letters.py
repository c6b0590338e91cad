"""Parked articles: what could not go on by itself and waits for a person, until it fails for good."""

from fastapi import APIRouter

from citeloop.models.plan import State
from citeloop.store.repositories import article_views
from starter.api import examples
from starter.api.answers import KEY_NEEDED, answers
from starter.api.articles import Article, ArticlePage
from starter.api.paging import After, Limit, OfCampaign, paged
from starter.api.wiring import CallerDep

router = APIRouter(prefix="/v1/dead-letters", tags=["dead letters"], dependencies=[KEY_NEEDED])


@router.get("", summary="List parked articles", responses=answers(examples.page(examples.PARKED)))
async def list_dead_letters(
    caller: CallerDep, campaign: OfCampaign = None, after: After = None, limit: Limit = 50
) -> ArticlePage:
    """`reason` says why; POST /v1/articles/{id}/retry tries again, cancel ends it."""
    async with caller.database.tenant(caller.tenant.id) as scope:
        found = await article_views.list_(scope, campaign_id=campaign, state=State.PARKED, after=after, limit=limit + 1)
    items, next_ = paged(found, limit, lambda article: article.id)
    return ArticlePage(items=tuple(Article.of(view) for view in items), next=next_)
