"""Any site that takes articles as signed webhooks (Standard Webhooks 1.0.0) and confirms by callback.

Tested against: sandbox, documented shape. The delivery's id is the marker: a repeat of the same publication keeps it,
and the receiver drops it. Corrections and withdrawals are event types of their own, each under its own id.
"""

import base64
import hashlib
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from urllib.parse import quote, urlencode

from pydantic import JsonValue

from citeloop.channels import signing
from citeloop.channels.errors import ChannelError, Fault, Remedy
from citeloop.channels.foreign import at, text_at
from citeloop.channels.judging import fault, judge, judged_json
from citeloop.channels.ports import Ability, Call, Heard, Placed, Post, SiteReport, Undecidable
from citeloop.channels.publishers.doubt import in_doubt
from citeloop.channels.publishers.refusing import gone, refuse_more
from citeloop.channels.reply import HttpReply, Shape, parse_json, read_body
from citeloop.channels.signing import SignatureError, signed_headers
from citeloop.channels.wire import HttpRequest, Wire
from citeloop.models.channel import SiteSpec

_NOT_FOUND, _GONE = 404, 410
_NO_LOOK_UP = frozenset({405, 410, 501})
_REDIRECTED = range(300, 400)


def _utc_now() -> datetime:
    return datetime.now(UTC)


class WebhookSite:
    abilities = frozenset(Ability)

    def __init__(self, site: SiteSpec, secret: str, wire: Wire, now: Callable[[], datetime] = _utc_now) -> None:
        self._site = site
        self._secret = secret
        self._wire = wire
        self._now = now

    async def publish(self, post: Post, call: Call) -> Placed:
        """Any 2xx is acceptance, unconfirmed until the callback. Raises ChannelError, UNKNOWN after a lost reply."""
        refuse_more(post, self.abilities, self._site.name)
        try:
            return await self._deliver("article.publish", post.marker, post, call)
        except ChannelError as error:
            raise in_doubt(error) from None

    async def look_up(self, post: Post, call: Call) -> Placed | None:
        """`GET {base_url}/lookup?marker=…`, signed. Raises Undecidable where the site does not offer it."""
        url = f"{self._site.base_url}/lookup?{urlencode({'marker': post.marker})}"
        request = HttpRequest("GET", url, {"Accept": "application/json", **self._signed(post.marker, b"")})
        return await self._wire.exchange(request, call, lambda reply: _found(reply, post))

    async def update(self, post: Post, remote_id: str, call: Call) -> Placed:
        """An `article.update` event. Acceptance is all there is to know: no callback is waited for."""
        refuse_more(post, self.abilities, self._site.name)
        try:
            placed = await self._deliver("article.update", _event_id("update", post, call), post, call)
        except ChannelError as error:
            raise gone(self._site.name, remote_id) if error.status == _NOT_FOUND else error from None
        return placed.model_copy(update={"confirmed": True})

    async def withdraw(self, post: Post, remote_id: str, call: Call) -> None:  # noqa: ARG002 - the marker names it
        """An `article.withdraw` event; a site that does not know the marker has nothing to withdraw."""
        try:
            await self._deliver("article.withdraw", _event_id("withdraw", post, call), post, call)
        except ChannelError as error:
            if error.status != _NOT_FOUND:
                raise

    async def check(self, call: Call) -> SiteReport:
        """Asks for a marker that cannot exist: the answer shows reachability, the signature and the look-up."""
        try:
            await self.look_up(Post(marker="citeloop-connection-test", slug="", title="", html=""), call)
        except Undecidable:
            note = "the site offers no look-up: after a lost reply a person has to decide"
            return SiteReport(notes=(note,))
        except ChannelError as error:
            words = "the site does not take our signature: check that both sides hold the same secret"
            return SiteReport(problems=(f"{words} ({error})" if error.fault is Fault.UNAUTHORIZED else error.message,))
        return SiteReport()

    def read_callback(self, headers: Mapping[str, str], body: bytes, now: datetime) -> Heard:
        event_id = signing.verify([self._secret], headers, body, now)
        try:
            event = parse_json(body, fit=lambda signed: signed)  # what cannot be kept is refused, not mended
        except ValueError:
            raise SignatureError("the callback's body is no JSON") from None
        return Heard(
            event_id=event_id,
            type=text_at(event, "type"),
            remote_id=text_at(event, "data", "remote_id"),
            url=text_at(event, "data", "url"),
        )

    async def _deliver(self, kind: str, event_id: str, post: Post, call: Call) -> Placed:
        body = json.dumps(self._payload(kind, post, call), ensure_ascii=False).encode("utf-8", "replace")
        headers = {"Content-Type": "application/json", **self._signed(event_id, body)}
        request = HttpRequest("POST", self._site.base_url, headers, body)
        return await self._wire.exchange(request, call, lambda reply: _accepted(reply, post))

    def _signed(self, event_id: str, body: bytes) -> dict[str, str]:
        try:
            return signed_headers(self._secret, quote(event_id, safe="/:-_~"), self._now(), body)
        except SignatureError as error:
            raise ChannelError(Fault.UNAUTHORIZED, f"{self._site.secret_env}: {error}") from None

    def _payload(self, kind: str, post: Post, call: Call) -> dict[str, JsonValue]:
        data: dict[str, JsonValue] = {"publication_id": call.purchase_id, "marker": post.marker}
        if kind != "article.withdraw":
            data |= _article(post)
        return {"type": kind, "timestamp": self._now().isoformat(), "data": data}


def _article(post: Post) -> dict[str, JsonValue]:
    """What a post may lack is left out of the event."""
    picture: dict[str, JsonValue] | None = None
    if post.picture is not None:
        picture = {
            "media_type": post.picture.media_type,
            "base64": base64.b64encode(post.picture.data).decode(),
            "alt": post.picture_alt,
        }
        if post.picture.credit:
            picture["credit"] = post.picture.credit
    extras: dict[str, JsonValue] = {
        "tags": list(post.tags),
        "categories": list(post.categories),
        "author": post.author,
        "canonical_url": post.canonical_url,
        "json_ld": post.json_ld,
    }
    return {
        "title": post.title,
        "slug": post.slug,
        "html": post.html,
        "excerpt": post.excerpt,
        "locale": post.locale,
        "callback_url": post.callback_url,
        "picture": picture,
        **{name: value for name, value in extras.items() if value},
    }


def _event_id(verb: str, post: Post, call: Call) -> str:
    """One per correction: the same in its repeats, another for the next one (`call` names the operation)."""
    told = f"{call.purchase_id}\x1f{post.title}\x1f{post.html}\x1f{post.excerpt}"
    return f"{post.marker}.{verb}.{hashlib.sha256(told.encode('utf-8', 'replace')).hexdigest()[:12]}"


def _accepted(reply: HttpReply, post: Post) -> Placed:
    if reply.ok:
        body = read_body(reply) if reply.body else None
        answer = body.json if body else None
        identity = text_at(answer, "remote_id") or text_at(answer, "id") or post.marker
        return Placed(remote_id=identity[:200], url=text_at(answer, "url"), confirmed=False)
    if reply.status in _REDIRECTED:
        raise fault(
            Fault.UNAVAILABLE,
            reply,
            f"HTTP {reply.status}: redirected to {_target(reply)}; webhooks follow no redirect: set base_url to the "
            "final address",
        )
    if reply.status == _GONE:
        words = "HTTP 410: the endpoint asks to be sent nothing any more; remove the site"
        raise fault(Fault.INVALID, reply, words, remedy=Remedy.DISABLE_ENDPOINT)
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


def _target(reply: HttpReply) -> str:
    return reply.headers.get("location", "nowhere").split("?")[0].split("#")[0]
