"""Campaigns: submitted in one write, looked at, and steered as a whole."""

from enum import StrEnum
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response, status

from citeloop.models.record import Record
from citeloop.store.repositories import campaign_views
from citeloop.store.repositories.campaign_views import CampaignSummary, KeywordView
from starter.api import examples
from starter.api.answers import KEY_NEEDED, WRITING, answers, body, plain_text
from starter.api.bodies import CampaignSubmission, IdempotencyKey, Priority, Reason, digest
from starter.api.paging import After, CampaignId, Limit, Page, paged
from starter.api.steered import steered, steering
from starter.api.wiring import Caller, CallerDep
from starter.errors import Missing
from starter.telling import Effect

router = APIRouter(prefix="/v1/campaigns", tags=["campaigns"], dependencies=[KEY_NEEDED])
_WRITTEN = [Depends(plain_text)]


class CampaignState(StrEnum):
    SUBMITTED = "submitted"
    RUNNING = "running"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    DONE = "done"


class CampaignAccepted(Record):
    id: str
    articles: int
    href: str
    events: str


class CampaignPage(Page[CampaignSummary]):
    pass


class KeywordPage(Page[KeywordView]):
    pass


@router.post(
    "",
    status_code=status.HTTP_202_ACCEPTED,
    summary="Submit a campaign",
    responses=answers(examples.CAMPAIGN_ACCEPTED, 404, 409, *WRITING, status=202),
    openapi_extra=body(examples.CAMPAIGN_SUBMISSION),
    dependencies=_WRITTEN,
)
async def submit_campaign(
    submission: CampaignSubmission, caller: CallerDep, response: Response, key: IdempotencyKey = None
) -> CampaignAccepted:
    """All its articles are committed when this answers; their work follows, and survives any crash from here on.

    Without an Idempotency-Key, the same request for the same brand is the same campaign.
    """
    request, commands = submission.request, caller.commands
    accepted = await commands.accept_campaign(submission.brand, request, key=key, asked=digest(submission))
    assert accepted.campaign_id is not None
    caller.parts.starter.offer(lambda: commands.start(accepted, request))
    href = f"{router.prefix}/{accepted.campaign_id}"
    response.headers["Location"] = href
    return CampaignAccepted(
        id=accepted.campaign_id, articles=len(accepted.article_ids), href=href, events=f"{href}/events"
    )


@router.get("", summary="List campaigns", responses=answers(examples.page(examples.CAMPAIGN)))
async def list_campaigns(
    caller: CallerDep,
    state: Annotated[CampaignState | None, Query(description="Only in this state.")] = None,
    after: After = None,
    limit: Limit = 50,
) -> CampaignPage:
    """The newest first."""
    async with caller.database.tenant(caller.tenant.id) as scope:
        found = await campaign_views.list_(scope, state=state, after=after, limit=limit + 1)
    items, next_ = paged(found, limit, lambda campaign: campaign.id)
    return CampaignPage(items=items, next=next_)


@router.get("/{campaign_id}", summary="Show a campaign", responses=answers(examples.CAMPAIGN, 404))
async def show_campaign(campaign_id: CampaignId, caller: CallerDep) -> CampaignSummary:
    """`counts` says how many of its articles are in which state."""
    async with caller.database.tenant(caller.tenant.id) as scope:
        found = await campaign_views.get(scope, campaign_id)
    if found is None:
        raise no_campaign(campaign_id)
    return found


@router.get(
    "/{campaign_id}/keywords",
    summary="List a campaign's keywords",
    responses=answers(examples.page(examples.KEYWORD), 404),
)
async def list_keywords(
    campaign_id: CampaignId, caller: CallerDep, after: After = None, limit: Limit = 100
) -> KeywordPage:
    """In the order of the request, each with the article that was made for it."""
    async with caller.database.tenant(caller.tenant.id) as scope:
        found = await campaign_views.keywords(scope, campaign_id, after=after, limit=limit + 1)
        if not found and not await campaign_views.exists(scope, campaign_id):
            raise no_campaign(campaign_id)
    items, next_ = paged(found, limit, lambda line: line.article_id)
    return KeywordPage(items=items, next=next_)


@router.post(
    "/{campaign_id}/pause",
    summary="Pause a campaign",
    responses=steering(),
    openapi_extra=body({"reason": "prices change on Monday"}),
    dependencies=_WRITTEN,
)
async def pause_campaign(
    campaign_id: CampaignId, caller: CallerDep, response: Response, given: Reason | None = None
) -> Effect:
    """Running calls are finished; nothing more is bought for any of its articles."""
    await known(caller, campaign_id)
    reason = given.reason if given else ""
    return steered(response, await caller.commands.pause_campaign(campaign_id, reason))


@router.post("/{campaign_id}/resume", summary="Resume a campaign", responses=steering())
async def resume_campaign(campaign_id: CampaignId, caller: CallerDep, response: Response) -> Effect:
    await known(caller, campaign_id)
    return steered(response, await caller.commands.resume_campaign(campaign_id))


@router.post(
    "/{campaign_id}/cancel",
    summary="Cancel a campaign",
    responses=steering(),
    openapi_extra=body({"reason": "wrong brand"}),
    dependencies=_WRITTEN,
)
async def cancel_campaign(
    campaign_id: CampaignId, caller: CallerDep, response: Response, given: Reason | None = None
) -> Effect:
    """Every article that has not ended is cancelled. What is published stays published."""
    await known(caller, campaign_id)
    return steered(response, await caller.commands.cancel_campaign(campaign_id, given.reason if given else ""))


@router.put(
    "/{campaign_id}/priority",
    summary="Prioritise a campaign",
    responses=steering(),
    openapi_extra=body({"priority": 1}),
    dependencies=_WRITTEN,
)
async def prioritise_campaign(
    campaign_id: CampaignId, given: Priority, caller: CallerDep, response: Response
) -> Effect:
    """All its articles, among the tenant's own; it never competes with other tenants."""
    await known(caller, campaign_id)
    return steered(response, await caller.commands.prioritise_campaign(campaign_id, given.priority))


def no_campaign(campaign_id: str) -> Missing:
    return Missing(f"{campaign_id!r} is no campaign", "campaign", "")


async def known(caller: Caller, campaign_id: str) -> None:
    """Missing: an id is an id here, never a name or a beginning."""
    async with caller.database.tenant(caller.tenant.id) as scope:
        if not await campaign_views.exists(scope, campaign_id):
            raise no_campaign(campaign_id)
