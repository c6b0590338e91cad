"""Where sites confirm what they have published: verified, kept once, then told to the article."""

import json
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Path, Request, status
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from citeloop.channels import signing
from citeloop.channels.errors import ChannelError
from citeloop.channels.outside import ChannelGone, Outside
from citeloop.channels.signing import SignatureError
from citeloop.store.repositories import callbacks
from citeloop.store.repositories.callbacks import Inbound
from starter.api.answers import problems
from starter.api.wiring import Wiring, wiring
from starter.telling import Teller

MAX_BYTES = 64 * 1024

router = APIRouter(prefix="/v1/callbacks", tags=["callbacks"])


Token = Annotated[str, Path(pattern="^[A-Za-z0-9_-]{1,64}$", description="From the callback's address.")]
Text = Annotated[str, Field(max_length=2000, pattern=r"^[^\x00]*$")]


class _Data(BaseModel):
    model_config = ConfigDict(extra="ignore")

    remote_id: Text = ""
    url: Text = ""


class _Event(BaseModel):
    """The parts of a site's event that we read; a site may send more."""

    model_config = ConfigDict(extra="ignore")

    type: str
    data: _Data = _Data()


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
    _, _, site = reserved
    now = datetime.now(UTC)
    event_id = _verified(parts.outside, site, request, body, now)
    event = _read(body)
    inbound = Inbound(
        event_id=event_id,
        type=event.type,
        remote_id=event.data.remote_id,
        url=event.data.url,
        received_at=now,
    )
    async with parts.database.operator() as operator:
        delivery = await callbacks.receive(operator, token, inbound)
    if delivery is not None and not delivery.delivered:
        teller = Teller(parts.client, delivery.tenant_id, parts.patience)
        await teller.called_back(delivery.article_id, delivery.site)
    return {"status": "received"}


def _verified(outside: Outside, site: str, request: Request, body: bytes, now: datetime) -> str:
    """The delivery's id. A site that has vanished from channels.toml can no longer be believed."""
    try:
        secret = outside.signing_secret(site)
        return signing.verify([secret] if secret else [], request.headers, body, now)
    except (SignatureError, ChannelGone, ChannelError) as error:
        raise HTTPException(status.HTTP_401_UNAUTHORIZED, str(error)) from None


async def _body(request: Request) -> bytes:
    read = bytearray()
    async for chunk in request.stream():
        read += chunk
        if len(read) > MAX_BYTES:
            raise HTTPException(status.HTTP_413_CONTENT_TOO_LARGE, f"at most {MAX_BYTES} bytes")
    return bytes(read)


def _read(body: bytes) -> _Event:
    try:
        return _Event.model_validate(json.loads(body))
    except (ValueError, ValidationError):
        raise HTTPException(status.HTTP_422_UNPROCESSABLE_CONTENT, "no event of ours") from None
