"""Articles: submitted one by one, listed, looked at, and steered."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response, status

from citeloop.models.money import Money
from citeloop.models.plan import Kind, Stage, State
from citeloop.models.record import Record
from citeloop.models.work import Measurement, PublicationState
from citeloop.store.repositories import article_views
from citeloop.store.repositories.article_views import ArticleView, EventView
from starter.api import examples
from starter.api.answers import KEY_NEEDED, WRITING, answers, body, plain_text
from starter.api.bodies import ArticleSubmission, IdempotencyKey, Priority, Reason, digest
from starter.api.paging import After, ArticleId, Limit, OfCampaign, Page, paged
from starter.api.steered import steered, steering
from starter.api.wiring import Caller, CallerDep
from starter.errors import Missing
from starter.telling import Effect

router = APIRouter(prefix="/v1/articles", tags=["articles"], dependencies=[KEY_NEEDED])
_WRITTEN = [Depends(plain_text)]


class SitePage(Record):
    """Where an article stands on one site; the url is empty until the site has told it."""

    site: str
    url: str
    state: PublicationState


class Article(Record):
    id: str
    campaign_id: str | None
    manifest_id: str
    keyword: str
    locale: str
    kind: Kind
    priority: int
    state: State
    stage: Stage
    done: tuple[Stage, ...]
    round: int
    """How often it was sent back."""
    channel: str
    writer: str
    """The channel that wrote the latest draft."""
    attempts: int
    """Calls to providers and sites, failed ones included."""
    faults: int
    reason: str
    hold: str | None
    pages: tuple[SitePage, ...]
    warnings: tuple[str, ...]
    """`site: why`, for each page that answer engines cannot read."""
    measurement: Measurement | None
    cost: Money
    submitted_at: datetime
    started_at: datetime | None
    updated_at: datetime
    ended_at: datetime | None

    @classmethod
    def of(cls, view: ArticleView) -> "Article":
        shared = {name: getattr(view, name) for name in cls.model_fields if name != "pages"}
        pages = tuple(SitePage.model_construct(site=site, url=url, state=state) for site, url, state in view.urls)
        return cls.model_construct(**shared, pages=pages)


class ArticleAccepted(Record):
    id: str
    href: str
    events: str


class ArticlePage(Page[Article]):
    pass


class EventPage(Record):
    items: tuple[EventView, ...]
    next: int | None


@router.post(
    "",
    status_code=status.HTTP_202_ACCEPTED,
    summary="Submit an article",
    responses=answers(examples.ARTICLE_ACCEPTED, 404, 409, *WRITING, status=202),
    openapi_extra=body(examples.ARTICLE_SUBMISSION),
    dependencies=_WRITTEN,
)
async def submit_article(
    submission: ArticleSubmission, caller: CallerDep, response: Response, key: IdempotencyKey = None
) -> ArticleAccepted:
    """One keyword by itself, committed when this answers.

    Without an Idempotency-Key, the same brand, keyword, locale and kind are the same article.
    """
    request, commands = submission.request, caller.commands
    accepted = await commands.accept_article(submission.brand, request, key=key, asked=digest(submission))
    caller.parts.starter.offer(lambda: commands.start(accepted, request))
    (article_id,) = accepted.article_ids
    href = f"{router.prefix}/{article_id}"
    response.headers["Location"] = href
    return ArticleAccepted(id=article_id, href=href, events=f"{href}/events/stream")


@router.get("", summary="List articles", responses=answers(examples.page(examples.ARTICLE)))
async def list_articles(
    caller: CallerDep,
    campaign: OfCampaign = None,
    state: Annotated[State | None, Query(description="Only in this state.")] = None,
    stage: Annotated[Stage | None, Query(description="Only at this stage.")] = None,
    locale: Annotated[str | None, Query(pattern=r"^[A-Za-z0-9-]{1,35}$", description="Only in this locale.")] = None,
    after: After = None,
    limit: Limit = 50,
) -> ArticlePage:
    """A campaign's in its own order, else the newest first."""
    async with caller.database.tenant(caller.tenant.id) as scope:
        found = await article_views.list_(
            scope, campaign_id=campaign, state=state, stage=stage, locale=locale, after=after, limit=limit + 1
        )
    items, next_ = paged(found, limit, lambda article: article.id)
    return ArticlePage(items=tuple(Article.of(view) for view in items), next=next_)


@router.get("/{article_id}", summary="Show an article", responses=answers(examples.ARTICLE, 404))
async def show_article(article_id: ArticleId, caller: CallerDep) -> Article:
    async with caller.database.tenant(caller.tenant.id) as scope:
        found = await article_views.get(scope, article_id)
    if found is None:
        raise no_article(article_id)
    return Article.of(found)


@router.get(
    "/{article_id}/events",
    summary="List an article's events",
    responses=answers({"items": [examples.EVENT], "next": None}, 404),
)
async def list_events(
    article_id: ArticleId,
    caller: CallerDep,
    after: Annotated[int, Query(ge=0, le=2**53, description="`next` of the page before.")] = 0,
    limit: Limit = 100,
) -> EventPage:
    """What happened to it, oldest first; each change of stage, state or reason is one."""
    async with caller.database.tenant(caller.tenant.id) as scope:
        found = await article_views.events(scope, article_id, after=after, limit=limit + 1)
        if not found and await article_views.get(scope, article_id) is None:
            raise no_article(article_id)
    items = tuple(found[:limit])
    return EventPage(items=items, next=items[-1].seq if len(found) > limit else None)


@router.post(
    "/{article_id}/pause",
    summary="Pause an article",
    responses=steering(),
    openapi_extra=body({"reason": "prices change on Monday"}),
    dependencies=_WRITTEN,
)
async def pause_article(
    article_id: ArticleId, caller: CallerDep, response: Response, given: Reason | None = None
) -> Effect:
    """A running call is finished; nothing more is bought until it is resumed."""
    await known(caller, article_id)
    return steered(response, await caller.commands.pause(article_id, given.reason if given else ""))


@router.post("/{article_id}/resume", summary="Resume an article", responses=steering())
async def resume_article(article_id: ArticleId, caller: CallerDep, response: Response) -> Effect:
    await known(caller, article_id)
    return steered(response, await caller.commands.resume(article_id))


@router.post(
    "/{article_id}/cancel",
    summary="Cancel an article",
    responses=steering(),
    openapi_extra=body({"reason": "wrong product"}),
    dependencies=_WRITTEN,
)
async def cancel_article(
    article_id: ArticleId, caller: CallerDep, response: Response, given: Reason | None = None
) -> Effect:
    """What is published stays published."""
    await known(caller, article_id)
    return steered(response, await caller.commands.cancel(article_id, given.reason if given else ""))


@router.post("/{article_id}/retry", summary="Retry an article", responses=steering())
async def retry_article(article_id: ArticleId, caller: CallerDep, response: Response) -> Effect:
    """A parked stage is tried again; a failed or cancelled article goes on from where it stopped."""
    await known(caller, article_id)
    return steered(response, await caller.commands.retry(article_id))


@router.put(
    "/{article_id}/priority",
    summary="Prioritise an article",
    responses=steering(),
    openapi_extra=body({"priority": 1}),
    dependencies=_WRITTEN,
)
async def prioritise_article(article_id: ArticleId, given: Priority, caller: CallerDep, response: Response) -> Effect:
    """Among the tenant's own articles."""
    await known(caller, article_id)
    return steered(response, await caller.commands.prioritise(article_id, given.priority))


def no_article(article_id: str) -> Missing:
    return Missing(f"{article_id!r} is no article", "article", "")


async def known(caller: Caller, article_id: str) -> ArticleView:
    """Missing: an id is an id here, never a keyword or a beginning."""
    async with caller.database.tenant(caller.tenant.id) as scope:
        found = await article_views.get(scope, article_id)
    if found is None:
        raise no_article(article_id)
    return found
