"""Where articles stand on their sites."""

from typing import Annotated

from fastapi import APIRouter, Query

from citeloop.models.work import PublicationState
from citeloop.store.repositories import publication_views
from citeloop.store.repositories.publication_views import PublicationView
from starter.api import examples
from starter.api.answers import KEY_NEEDED, answers
from starter.api.paging import NAME, After, Limit, OfArticle, OfCampaign, Page, paged
from starter.api.wiring import CallerDep

router = APIRouter(prefix="/v1/publications", tags=["publications"], dependencies=[KEY_NEEDED])


class PublicationPage(Page[PublicationView]):
    pass


@router.get("", summary="List publications", responses=answers(examples.page(examples.PUBLICATION)))
async def list_publications(
    caller: CallerDep,
    campaign: OfCampaign = None,
    article: OfArticle = None,
    state: Annotated[PublicationState | None, Query(description="Only in this state.")] = None,
    site: Annotated[str | None, Query(pattern=NAME, description="Only on this site.")] = None,
    after: After = None,
    limit: Limit = 50,
) -> PublicationPage:
    """The newest first; one an article and site."""
    async with caller.database.tenant(caller.tenant.id) as scope:
        found = await publication_views.list_(
            scope, article_id=article, campaign_id=campaign, state=state, site=site, after=after, limit=limit + 1
        )
    items, next_ = paged(found, limit, lambda publication: publication.id)
    return PublicationPage(items=items, next=next_)
