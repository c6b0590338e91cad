"""Drafts with their verdicts, and people's decisions on them."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Response
from pydantic import Field

from citeloop.models.record import Record
from citeloop.models.work import Action
from citeloop.store.repositories import draft_views
from citeloop.store.repositories.draft_views import DecisionView, DraftSummary, DraftView
from starter.api import examples
from starter.api.answers import KEY_NEEDED, answers, body, plain_text
from starter.api.articles import known
from starter.api.paging import ULID, After, ArticleId, Limit, Page, paged
from starter.api.steered import steered, steering
from starter.api.wiring import CallerDep
from starter.errors import Missing
from starter.telling import Effect

router = APIRouter(prefix="/v1", dependencies=[KEY_NEEDED])

DraftId = Annotated[str, Path(pattern=ULID, description="The draft's id.")]


class DraftPage(Page[DraftSummary]):
    pass


class Decisions(Record):
    items: tuple[DecisionView, ...]


class Deciding(Record):
    action: Action
    draft_digest: Annotated[
        str, Field(pattern="^[0-9a-f]{64}$", description="`digest` of the draft that was read: it decides on no other.")
    ]
    notes: Annotated[str, Field(max_length=2000, description="What is to be changed; the writer reads it.")] = ""


@router.get(
    "/articles/{article_id}/drafts",
    summary="List an article's drafts",
    responses=answers(examples.page(examples.DRAFT), 404),
    tags=["drafts"],
)
async def list_drafts(article_id: ArticleId, caller: CallerDep, after: After = None, limit: Limit = 50) -> DraftPage:
    """Oldest first, without their texts; the last one is what a reviewer decides on."""
    async with caller.database.tenant(caller.tenant.id) as scope:
        found = await draft_views.of_article(scope, article_id, after=after, limit=limit + 1)
    if not found:
        await known(caller, article_id)
    items, next_ = paged(found, limit, lambda draft: draft.id)
    return DraftPage(items=items, next=next_)


@router.get(
    "/drafts/{draft_id}",
    summary="Show a draft",
    responses=answers(examples.DRAFT_WITH_BODY, 404),
    tags=["drafts"],
)
async def show_draft(draft_id: DraftId, caller: CallerDep) -> DraftView:
    """With its text, in Markdown."""
    async with caller.database.tenant(caller.tenant.id) as scope:
        found = await draft_views.get(scope, draft_id)
    if found is None:
        raise Missing(f"{draft_id!r} is no draft", "draft", "")
    return found


@router.get(
    "/articles/{article_id}/decisions",
    summary="List the decisions on an article",
    responses=answers({"items": [examples.DECISION]}, 404),
    tags=["decisions"],
)
async def list_decisions(article_id: ArticleId, caller: CallerDep) -> Decisions:
    """At most one a draft: the first counts. Oldest first."""
    async with caller.database.tenant(caller.tenant.id) as scope:
        found = await draft_views.decisions_of(scope, article_id)
    if not found:
        await known(caller, article_id)
    return Decisions(items=tuple(found))


@router.post(
    "/articles/{article_id}/decisions",
    summary="Approve, send back or reject",
    responses=steering(),
    openapi_extra=body(examples.DECIDING),
    dependencies=[Depends(plain_text)],
    tags=["decisions"],
)
async def decide(article_id: ArticleId, given: Deciding, caller: CallerDep, response: Response) -> Effect:
    """On the very text that was read. 409: the text has changed since, or another decision stands."""
    await known(caller, article_id)
    effect = await caller.commands.decide(article_id, given.action, notes=given.notes, seen=given.draft_digest)
    return steered(response, effect)
