"""Any site that takes articles as signed webhooks (Standard Webhooks 1.0.0) and confirms by callback.

The delivery's id is the marker: a repeat of the same publication keeps it, and the receiver drops it.
"""

import base64
import json
from collections.abc import Callable
from datetime import UTC, datetime
from urllib.parse import quote, urlencode

from pydantic import JsonValue

from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.foreign import at, text_at
from citeloop.channels.judging import fault, judge, judged_json
from citeloop.channels.ports import Call, Placed, Post, Undecidable
from citeloop.channels.publishers.doubt import in_doubt
from citeloop.channels.reply import HttpReply, Shape, read_body
from citeloop.channels.signing import SignatureError, signed_headers
from citeloop.channels.wire import HttpRequest, Wire
from citeloop.models.channel import SiteSpec

_NOT_FOUND, _GONE = 404, 410
_NO_LOOK_UP = frozenset({405, 410, 501})


def _utc_now() -> datetime:
    return datetime.now(UTC)


class WebhookSite:
    def __init__(self, site: SiteSpec, secret: str, wire: Wire, now: Callable[[], datetime] = _utc_now) -> None:
        self._site = site
        self._secret = secret
        self._wire = wire
        self._now = now

    async def publish(self, post: Post, call: Call) -> Placed:
        """Any 2xx is acceptance, unconfirmed until the callback. Raises ChannelError, UNKNOWN after a lost reply."""
        body = json.dumps(self._payload(post, call), ensure_ascii=False).encode("utf-8", "replace")
        headers = {"Content-Type": "application/json", **self._signed(post, body)}
        request = HttpRequest("POST", self._site.base_url, headers, body)
        try:
            return await self._wire.exchange(request, call, lambda reply: _accepted(reply, post))
        except ChannelError as error:
            raise in_doubt(error) from None

    async def look_up(self, post: Post, call: Call) -> Placed | None:
        """`GET {base_url}/lookup?marker=…`, signed. Raises Undecidable where the site does not offer it."""
        url = f"{self._site.base_url}/lookup?{urlencode({'marker': post.marker})}"
        request = HttpRequest("GET", url, {"Accept": "application/json", **self._signed(post, b"")})
        return await self._wire.exchange(request, call, lambda reply: _found(reply, post))

    def _signed(self, post: Post, body: bytes) -> dict[str, str]:
        try:
            return signed_headers(self._secret, quote(post.marker, safe="/:-_~"), self._now(), body)
        except SignatureError as error:
            raise ChannelError(Fault.UNAUTHORIZED, f"{self._site.secret_env}: {error}") from None

    def _payload(self, post: Post, call: Call) -> dict[str, JsonValue]:
        picture: dict[str, JsonValue] | None = None
        if post.picture is not None:
            picture = {
                "media_type": post.picture.media_type,
                "base64": base64.b64encode(post.picture.data).decode(),
                "alt": post.picture_alt,
            }
        return {
            "type": "article.publish",
            "timestamp": self._now().isoformat(),
            "data": {
                "publication_id": call.purchase_id,
                "marker": post.marker,
                "title": post.title,
                "slug": post.slug,
                "html": post.html,
                "excerpt": post.excerpt,
                "locale": post.locale,
                "callback_url": post.callback_url,
                "picture": picture,
            },
        }


def _accepted(reply: HttpReply, post: Post) -> Placed:
    if reply.ok:
        body = read_body(reply) if reply.body else None
        answer = body.json if body else None
        identity = text_at(answer, "remote_id") or text_at(answer, "id") or post.marker
        return Placed(remote_id=identity[:200], url=text_at(answer, "url"), confirmed=False)
    if reply.status == _GONE:
        raise fault(Fault.INVALID, reply, "HTTP 410: the endpoint asks to be sent nothing any more; remove the site")
    raise judge(reply, read_body(reply)) or fault(Fault.UNAVAILABLE, reply, f"HTTP {reply.status}")


def _found(reply: HttpReply, post: Post) -> Placed | None:
    if reply.status in _NO_LOOK_UP:
        raise Undecidable
    if reply.status == _NOT_FOUND:
        if read_body(reply).shape is Shape.HTML:
            # A page for people, not an answer about a marker: the path does not exist there.
            raise Undecidable
        return None
    answer = judged_json(reply)
    if at(answer, "found") is False or not answer:
        return None
    url = text_at(answer, "url")
    confirmed = at(answer, "confirmed")
    return Placed(
        remote_id=(text_at(answer, "remote_id") or text_at(answer, "id") or post.marker)[:200],
        url=url,
        confirmed=confirmed if isinstance(confirmed, bool) else bool(url),
    )
