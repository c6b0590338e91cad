"""Corrections and withdrawals of published pages."""

from typing import Annotated, Self

from fastapi import APIRouter, Depends, Response, status
from pydantic import Field, model_validator

from citeloop.models.record import Record
from citeloop.store.repositories.corrections import Correction
from starter.api import correction_examples as examples
from starter.api.answers import KEY_NEEDED, WRITING, Answers, answers, body, plain_text
from starter.api.articles import known
from starter.api.paging import NAME, ULID, ArticleId
from starter.api.wiring import CallerDep
from starter.page_commands import Corrected

router = APIRouter(prefix="/v1/articles", tags=["corrections"], dependencies=[KEY_NEEDED])

Site = Annotated[str | None, Field(pattern=NAME, description="Only on this site; null: wherever it stands.")]
Why = Annotated[str, Field(max_length=500, description="Why; stands in the article's events.")]


class Unpublishing(Record):
    site: Site = None
    reason: Why = ""


class Correcting(Record):
    """`text` or `draft_id`, one of the two."""

    text: Annotated[str | None, Field(max_length=200_000, description="Markdown that begins with one `# ` title.")] = (
        None
    )
    draft_id: Annotated[str | None, Field(pattern=ULID, description="One of the article's drafts.")] = None
    site: Site = None
    reason: Why = ""

    @model_validator(mode="after")
    def _one_text(self) -> Self:
        if (self.text is None) == (self.draft_id is None):
            raise ValueError("give text or draft_id: one of the two")
        return self


class Corrections(Record):
    items: tuple[Correction, ...]


def _changing() -> Answers:
    recorded = "Recorded; it is carried out as soon as site and worker answer"
    return answers(examples.CORRECTED, 404, 409, *WRITING, also={202: (Corrected, recorded)})


@router.post(
    "/{article_id}/unpublish",
    summary="Take an article's pages away",
    responses=_changing(),
    openapi_extra=body({"site": "blog", "reason": "wrong product"}),
    dependencies=[Depends(plain_text)],
)
async def unpublish_article(
    article_id: ArticleId, caller: CallerDep, response: Response, given: Unpublishing | None = None
) -> Corrected:
    """From one site, or from all on which it stands; it is measured no longer. Said twice it is done once."""
    await known(caller, article_id)
    wanted = given or Unpublishing()
    return _told(response, await caller.pages.unpublish(article_id, site=wanted.site, reason=wanted.reason))


@router.post(
    "/{article_id}/correct",
    summary="Correct an article's pages",
    responses=_changing(),
    openapi_extra=body(examples.CORRECTING),
    dependencies=[Depends(plain_text)],
)
async def correct_article(article_id: ArticleId, given: Correcting, caller: CallerDep, response: Response) -> Corrected:
    """Its pages carry another text from now on; whoever asks approves it. 422: the review rules block the text."""
    await known(caller, article_id)
    done = await caller.pages.correct(
        article_id, text=given.text, draft_id=given.draft_id, site=given.site, reason=given.reason
    )
    return _told(response, done)


@router.get(
    "/{article_id}/corrections",
    summary="List an article's corrections",
    responses=answers({"items": [examples.CORRECTION]}, 404),
)
async def list_corrections(article_id: ArticleId, caller: CallerDep) -> Corrections:
    """What was asked for and what came of it, oldest first."""
    await known(caller, article_id)
    return Corrections(items=await caller.pages.history(article_id))


def _told(response: Response, done: Corrected) -> Corrected:
    response.status_code = status.HTTP_200_OK if done.ended else status.HTTP_202_ACCEPTED
    return done
