"""A site fed by signed webhooks (Standard Webhooks 1.0.0), confirming by callback: at times twice, late or never."""

import asyncio
import base64
import binascii
import hashlib
import hmac
import itertools
import time
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from typing import Literal

import httpx
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sandbox.config import WebhookSettings
from sandbox.desk import Desk
from sandbox.ledger import post_keys
from sandbox.library import Library, read_page
from sandbox.luck import Draw
from sandbox.pages import challenge, listing, missing, page
from sandbox.wire import Severed, to_json

_TOLERANCE = 300
_OK = range(200, 300)


def sign(secret: str, webhook_id: str, timestamp: str, body: bytes) -> str:
    """`v1,` and the base64 HMAC-SHA256 of `id.timestamp.body`."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{webhook_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def verified(secret: str, headers: Mapping[str, str], body: bytes) -> bool:
    webhook_id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    try:
        age = abs(time.time() - int(timestamp))
    except ValueError:
        return False
    wanted = sign(secret, webhook_id, timestamp, body)
    given = headers.get("webhook-signature", "").split()
    return bool(webhook_id) and age <= _TOLERANCE and any(hmac.compare_digest(wanted, one) for one in given)


class PictureData(BaseModel):
    model_config = ConfigDict(extra="ignore")

    media_type: str
    base64: str
    alt: str = ""


class PageData(BaseModel):
    model_config = ConfigDict(extra="ignore")

    marker: str = Field(min_length=1)
    publication_id: str = ""
    title: str = ""
    slug: str = ""
    html: str = ""
    excerpt: str = ""
    locale: str = "en"
    callback_url: str = ""
    picture: PictureData | None = None


class Event(BaseModel):
    model_config = ConfigDict(extra="ignore")

    type: Literal["article.publish", "article.update", "article.withdraw"]
    timestamp: str | int | float
    data: PageData


@dataclass(frozen=True)
class Placed:
    remote_id: str
    url: str
    data: PageData
    picture: bytes

    @property
    def keys(self) -> frozenset[str]:
        return post_keys(title=self.data.title, content=self.data.html, marker=self.data.marker)

    def as_json(self) -> dict[str, object]:
        return {
            "publication_id": self.data.publication_id,
            "marker": self.data.marker,
            "remote_id": self.remote_id,
            "url": self.url,
        }


class Hook:
    def __init__(self, site: str, desk: Desk, library: Library, client: httpx.AsyncClient) -> None:
        self._site = site
        self._desk = desk
        self._library = library
        self._client = client
        self._tasks: set[asyncio.Task[None]] = set()
        self._ids = itertools.count(1)
        self._pages: dict[str, Placed] = {}
        self._seen: dict[str, Response] = {}

    def forget(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._ids = itertools.count(1)
        self._pages.clear()
        self._seen.clear()

    @property
    def settings(self) -> WebhookSettings:
        return self._desk.hook(self._site)

    def routes(self) -> list[Route]:
        site = f"/{self._site}"
        return [
            Route(site, self.receive, methods=["POST"]),
            Route(f"{site}/", self.receive, methods=["POST"]),
            Route(f"{site}/", self.front, methods=["GET"]),
            Route(f"{site}/lookup", self.look_up, methods=["GET"]),
            Route(f"{site}/pages/{{id}}", self.show, methods=["GET"]),
            Route(f"{site}/pages/{{id}}/picture", self.picture, methods=["GET"]),
        ]

    async def receive(self, request: Request) -> Response:
        body = await request.body()
        settings = self.settings
        if not verified(settings.secret, request.headers, body):
            return _error(401, "the signature does not match, or the timestamp is too old")
        webhook_id = request.headers["webhook-id"]
        await asyncio.sleep(self._desk.luck.constant(self._site, webhook_id).between("latency", settings.latency))
        entry = self._desk.ledger.site(self._site)
        if webhook_id in self._seen:
            entry.repeats_recognised += 1
            return self._seen[webhook_id]
        try:
            event = Event.model_validate_json(body)
            picture = _picture(event.data)
        except (ValidationError, binascii.Error) as error:
            return _error(400, str(error).splitlines()[0])
        if event.type == "article.withdraw":
            return self._withdraw(event.data.marker)
        return self._accept(event, picture, request)

    def _accept(self, event: Event, picture: bytes, request: Request) -> Response:
        settings = self.settings
        entry = self._desk.ledger.site(self._site)
        draw = self._desk.luck.draw(self._site, event.type, event.data.title)
        kind = draw.one_of("fault", settings.fault_rates())
        if kind:
            entry.faults[kind] += 1
        if kind == "http_500":
            return _error(500, "internal server error")
        if kind == "html_403":
            return challenge()
        placed = self._place(event, picture, request)
        reply = JSONResponse({"status": "accepted", "remote_id": placed.remote_id}, status_code=202)
        self._seen[request.headers["webhook-id"]] = reply
        if event.data.callback_url:
            self._start(self._confirm(placed, draw, settings))
        if kind == "lost_reply":
            entry.lost_replies += 1
            return Severed()
        return reply

    async def look_up(self, request: Request) -> Response:
        if not verified(self.settings.secret, request.headers, b""):
            return _error(401, "the signature does not match, or the timestamp is too old")
        placed = self._by_marker(request.query_params.get("marker", ""))
        return JSONResponse(placed.as_json()) if placed else _error(404, "no page with this marker")

    async def front(self, _request: Request) -> Response:
        links = [(placed.url, escape(placed.data.title)) for placed in reversed(self._pages.values())]
        return listing(f"CiteLoop sandbox: {self._site}", links)

    async def show(self, request: Request) -> Response:
        placed = self._pages.get(request.path_params["id"])
        if placed is None:
            return missing()
        data = placed.data
        alt = escape(data.picture.alt) if data.picture else ""
        source = escape(f"{placed.url}/picture")
        figure = f'<figure><img src="{source}" alt="{alt}"></figure>\n' if data.picture else ""
        return page(
            title=escape(data.title, quote=False),
            content=figure + data.html,
            locale=data.locale,
            canonical=placed.url,
            excerpt=data.excerpt,
        )

    async def picture(self, request: Request) -> Response:
        placed = self._pages.get(request.path_params["id"])
        if placed is None or placed.data.picture is None:
            return missing()
        return Response(placed.picture, media_type=placed.data.picture.media_type)

    def _place(self, event: Event, picture: bytes, request: Request) -> Placed:
        """A second event of the same marker and type `article.publish` makes a second page, as a naive site does."""
        before = self._by_marker(event.data.marker) if event.type == "article.update" else None
        remote_id = before.remote_id if before else str(next(self._ids))
        own = f"{request.url.scheme}://{request.url.netloc}/{self._site}"
        url = f"{self.settings.public_url.rstrip('/') or own}/pages/{remote_id}"
        placed = Placed(remote_id, url, event.data, picture)
        if before is None:
            self._desk.ledger.site(self._site).placed(placed.keys)
        self._pages[remote_id] = placed
        self._library.put(
            read_page(
                url=url,
                title=event.data.title,
                content=f"<h1>{escape(event.data.title)}</h1>{event.data.html}",
                published=datetime.now(UTC).date(),
                site=f"{request.url.netloc}/{self._site}",
            )
        )
        return placed

    def _withdraw(self, marker: str) -> Response:
        placed = self._by_marker(marker)
        if placed is None:
            return _error(404, "no page with this marker")
        del self._pages[placed.remote_id]
        self._desk.ledger.site(self._site).removed(placed.keys)
        self._library.remove(placed.url)
        return JSONResponse({"status": "withdrawn", "remote_id": placed.remote_id})

    def _by_marker(self, marker: str) -> Placed | None:
        return next((p for p in self._pages.values() if p.data.marker == marker), None)

    async def _confirm(self, placed: Placed, draw: Draw, settings: WebhookSettings) -> None:
        entry = self._desk.ledger.site(self._site)
        if draw.happens("never", settings.never):
            entry.never += 1
            return
        wait = draw.between("delay", settings.delay)
        if draw.happens("late", settings.late):
            entry.late += 1
            wait += settings.late_seconds
        await asyncio.sleep(wait)
        webhook_id = f"msg_{draw.number('id'):.15f}".replace("0.", "")
        payload: dict[str, object] = {
            "type": "article.published",
            "timestamp": datetime.now(UTC).isoformat(),
            "data": placed.as_json(),
        }
        deliveries = 1
        if draw.happens("doubled", settings.doubled):
            entry.doubled += 1
            deliveries = 2
        for _ in range(deliveries):
            await self._deliver(placed.data.callback_url, webhook_id, to_json(payload), settings)

    async def _deliver(self, url: str, webhook_id: str, body: bytes, settings: WebhookSettings) -> None:
        """Repeats with the same id until 2xx, 410, or the waits are used up."""
        entry = self._desk.ledger.site(self._site)
        for wait in (0.0, *settings.retry_waits):
            await asyncio.sleep(wait)
            timestamp = str(int(time.time()))
            headers = {
                "content-type": "application/json",
                "webhook-id": webhook_id,
                "webhook-timestamp": timestamp,
                "webhook-signature": sign(settings.secret, webhook_id, timestamp, body),
            }
            entry.callbacks_sent += 1
            try:
                reply = await self._client.post(url, content=body, headers=headers)
            except httpx.HTTPError:
                continue
            if reply.status_code in _OK:
                entry.callbacks_delivered += 1
                return
            if reply.status_code == httpx.codes.GONE:
                break
        entry.callbacks_failed += 1

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _picture(data: PageData) -> bytes:
    return base64.b64decode(data.picture.base64, validate=True) if data.picture else b""


def _error(status: int, message: str) -> Response:
    return JSONResponse({"error": message}, status_code=status)
