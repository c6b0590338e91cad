"""Progress as server-sent events, from the store: resumed where it broke off, ended when everything has ended."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Annotated

from fastapi import APIRouter, Header, Response, status
from starlette.responses import StreamingResponse

from citeloop.store.database import Scope
from citeloop.store.errors import StoreUnavailable
from citeloop.store.repositories import event_feed
from citeloop.store.repositories.event_feed import Batch, Mark
from starter.api import articles, campaigns, examples
from starter.api.answers import ALWAYS, KEY_NEEDED, Answers, problems
from starter.api.paging import ArticleId, CampaignId
from starter.api.wiring import Caller, CallerDep
from starter.errors import CommandError

router = APIRouter(prefix="/v1", tags=["progress"], dependencies=[KEY_NEEDED])

LastEventId = Annotated[
    str | None,
    Header(alias="Last-Event-ID", max_length=60, description="The id of the last event seen; EventSource sends it."),
]
Read = Callable[[Scope, str, Mark | None], Awaitable[Batch]]

_EVERY = (0.25, 0.5, 1.0)
"""Seconds between two looks; the last one while nothing happens."""
_STREAM: Answers = {
    200: {"content": {"text/event-stream": {"example": examples.STREAM}}},
    204: {"description": "Everything has ended, and all of it was sent before: EventSource stops asking"},
    **problems(*ALWAYS, 404),
}


@router.get(
    "/campaigns/{campaign_id}/events",
    summary="Watch a campaign",
    response_class=StreamingResponse,
    responses=_STREAM,
)
async def watch_campaign(campaign_id: CampaignId, caller: CallerDep, last: LastEventId = None) -> Response:
    """Every event of its articles from the beginning, then as they happen; `event: end` when all have ended."""
    await campaigns.known(caller, campaign_id)
    return await _stream(caller, event_feed.of_campaign, campaign_id, last)


@router.get(
    "/articles/{article_id}/events/stream",
    summary="Watch an article",
    response_class=StreamingResponse,
    responses=_STREAM,
)
async def watch_article(article_id: ArticleId, caller: CallerDep, last: LastEventId = None) -> Response:
    await articles.known(caller, article_id)
    return await _stream(caller, event_feed.of_article, article_id, last)


async def _stream(caller: Caller, read: Read, id_: str, last: str | None) -> Response:
    first = await _look(caller, read, id_, _mark(last) if last else None)
    if last and first.over and not first.events:
        return Response(status_code=status.HTTP_204_NO_CONTENT)
    return StreamingResponse(_lines(caller, read, id_, first), media_type="text/event-stream")


async def _lines(caller: Caller, read: Read, id_: str, batch: Batch) -> AsyncIterator[str]:
    began = told = time.monotonic()
    quiet = 0
    yield "retry: 2000\n\n"
    while True:
        if batch.events:
            quiet, told = 0, time.monotonic()
            yield "".join(
                f"id: {mark}\nevent: {event.kind}\ndata: {event.model_dump_json()}\n\n"
                for event, mark in zip(batch.events, batch.marks, strict=True)
            )
        if batch.over:
            yield 'event: end\ndata: {"reason":"everything has ended"}\n\n'
            return
        if time.monotonic() - began > caller.parts.stream.total_seconds():
            return
        if time.monotonic() - told > caller.parts.heartbeat.total_seconds():
            told = time.monotonic()
            yield ": nothing new\n\n"
        if len(batch.events) < event_feed.PAGE:
            await asyncio.sleep(_EVERY[min(quiet, len(_EVERY) - 1)])
            quiet += 1
        try:
            batch = await _look(caller, read, id_, batch.mark)
        except StoreUnavailable:
            return  # the client comes back and is told properly


async def _look(caller: Caller, read: Read, id_: str, mark: Mark | None) -> Batch:
    async with caller.database.tenant(caller.tenant.id) as scope:
        return await read(scope, id_, mark)


def _mark(written: str) -> Mark:
    try:
        return Mark.read(written)
    except ValueError:
        raise CommandError("it is no id of ours", "Last-Event-ID", "leave it out to begin anew") from None
