"""Where sites confirm what they have published: verified, kept once, then told to the article."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Path, Request, status
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from citeloop.channels.errors import ChannelError
from citeloop.channels.outside import ChannelGone, Outside
from citeloop.channels.ports import CallsBack
from citeloop.channels.signing import SignatureError
from citeloop.store.repositories import articles, callbacks, publications
from citeloop.store.repositories.callbacks import Delivery, Inbound
from starter.api.answers import problems
from starter.api.wiring import Wiring, wiring
from starter.site_commands import world_at
from starter.telling import Teller

MAX_BYTES = 64 * 1024

router = APIRouter(prefix="/v1/callbacks", tags=["callbacks"])


Token = Annotated[str, Path(pattern="^[A-Za-z0-9_-]{1,64}$", description="From the callback's address.")]
Text = Annotated[str, Field(max_length=2000, pattern=r"^[^\x00]*$")]


class _Event(BaseModel):
    """What may be kept of what a publisher heard."""

    model_config = ConfigDict(from_attributes=True)

    event_id: Annotated[str, Field(max_length=300, pattern=r"^[^\x00]+$")]
    type: Annotated[str, Field(max_length=100, pattern=r"^[^\x00]+$")]
    remote_id: Text
    url: Text


@router.post(
    "/{token}",
    status_code=status.HTTP_200_OK,
    responses={
        200: {"content": {"application/json": {"example": {"status": "received"}}}},
        **problems(401, 404, 413, 422, 503),
    },
    summary="A site confirms a publication (Standard Webhooks)",
)
async def receive(token: Token, request: Request, parts: Annotated[Wiring, Depends(wiring)]) -> dict[str, str]:
    body = await _body(request)
    async with parts.database.operator() as operator:
        reserved = await callbacks.reservation(operator, token)
    if reserved is None:
        raise HTTPException(status.HTTP_404_NOT_FOUND, "unknown token")
    tenant_id, _, site = reserved
    async with parts.database.tenant(tenant_id) as scope:
        outside = await world_at(scope, parts.outside, site)
    now = datetime.now(UTC)
    inbound = Inbound(**_heard(outside, site, request, body, now).model_dump(), received_at=now)
    async with parts.database.operator() as operator:
        delivery = await callbacks.receive(operator, token, inbound)
    if delivery is not None and not delivery.delivered:
        await _deliver(parts, delivery)
    return {"status": "received"}


async def _deliver(parts: Wiring, delivery: Delivery) -> None:
    """The publication's row first, then the article; one that has ended learns it from its events."""
    async with parts.database.tenant(delivery.tenant_id) as scope:
        await callbacks.apply(scope, delivery.publication_id)
    teller = Teller(parts.client, delivery.tenant_id, parts.patience)
    if await teller.called_back(delivery.article_id, delivery.site):
        return
    async with parts.database.tenant(delivery.tenant_id) as scope:
        row = await publications.get(scope, delivery.article_id, delivery.site)
        await callbacks.delivered(scope, delivery.publication_id)
        if row is not None:
            told = f"{delivery.site} has called back: {row.state} {row.url}".rstrip()
            await articles.told(scope, delivery.article_id, "callback", told)


def _heard(outside: Outside, site: str, request: Request, body: bytes, now: datetime) -> _Event:
    """What the site's publisher makes of it. A site that nobody knows any more can no longer be believed."""
    try:
        publisher = outside.publisher(site)
        heard = publisher.read_callback(request.headers, body, now) if isinstance(publisher, CallsBack) else None
    except (SignatureError, ChannelGone, ChannelError) as error:
        raise HTTPException(status.HTTP_401_UNAUTHORIZED, str(error)) from None
    if heard is None:
        raise HTTPException(status.HTTP_401_UNAUTHORIZED, f"{site} is no site that calls back")
    try:
        return _Event.model_validate(heard)
    except ValidationError:
        raise HTTPException(status.HTTP_422_UNPROCESSABLE_CONTENT, "no event of ours") from None


async def _body(request: Request) -> bytes:
    read = bytearray()
    async for chunk in request.stream():
        read += chunk
        if len(read) > MAX_BYTES:
            raise HTTPException(status.HTTP_413_CONTENT_TOO_LARGE, f"at most {MAX_BYTES} bytes")
    return bytes(read)
