"""Ghost by its Admin API. Tested against: documented shape (TryGhost/SDK e0054f68, 2026-08).

The marker and the JSON-LD stand in the post's own head injection (`codeinjection_head`), since `?source=html` keeps
neither data attributes nor scripts of the text. Ghost makes a taken slug unique instead of failing, so a post is ours
only if it bears the marker. A token lives five minutes; an expired one is renewed once.
"""

import base64
import hashlib
import hmac
import html
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TypeVar
from urllib.parse import quote, urljoin

from pydantic import JsonValue

from citeloop.channels.errors import ChannelError, Fault, Remedy
from citeloop.channels.foreign import at, items_at, text_at
from citeloop.channels.judging import fault, garbled, judged_json
from citeloop.channels.patience import Patience
from citeloop.channels.ports import Ability, Call, Placed, Post, SiteReport
from citeloop.channels.publishers import markup
from citeloop.channels.publishers.doubt import in_doubt
from citeloop.channels.publishers.multipart import File, multipart
from citeloop.channels.publishers.refusing import foreign, gone, refuse_more
from citeloop.channels.reply import HttpReply
from citeloop.channels.wire import HttpRequest, Wire
from citeloop.models.channel import SiteSpec

T = TypeVar("T")

_TOKEN_LIFE = timedelta(minutes=5)
_TOKEN_MARGIN = timedelta(seconds=60)
_NOT_FOUND, _UNAUTHORIZED, _COLLISION = 404, 401, 409
_LONGEST_EXCERPT, _LONGEST_TITLE, _LONGEST_ALT = 300, 255, 191
_NO_PICTURE = frozenset({Fault.INVALID, Fault.REFUSED, Fault.GARBLED})


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Ghost:
    abilities = frozenset(Ability) - {Ability.CALLBACK, Ability.CATEGORIES, Ability.AUTHOR}

    def __init__(self, site: SiteSpec, key: str, wire: Wire, now: Callable[[], datetime] = _utc_now) -> None:
        self._site = site
        self._key = key
        self._wire = wire
        self._now = now
        self._token = ""
        self._renew_at = datetime.min.replace(tzinfo=UTC)

    async def publish(self, post: Post, call: Call) -> Placed:
        refuse_more(post, self.abilities, self._site.name)
        patience = Patience(call)
        fields, notes = await self._fields(post, patience)
        fields |= {"slug": post.slug, "status": "published"}
        if post.published_at is not None:
            fields["published_at"] = _moment(min(post.published_at, self._now()))
        try:
            made = await self._ask("POST", "posts/?source=html", patience, _one_post, {"posts": [fields]})
        except ChannelError as error:
            raise in_doubt(error) from None
        return _placed(made, notes)

    async def look_up(self, post: Post, call: Call) -> Placed | None:
        """Among the posts whose slug begins with ours, in every status."""
        patience = Patience(call)
        asked = quote(f"slug:~^'{post.slug}'", safe="")
        listed = await self._ask("GET", f"posts/?filter={asked}&limit=50", patience, ghost_json)
        ours = [one for one in items_at(listed, "posts") if _bears(one, post.marker)]
        return _placed(ours[0]) if ours else None

    async def update(self, post: Post, remote_id: str, call: Call) -> Placed:
        """Raises UNAVAILABLE when somebody saved the post meanwhile (409): the next try reads it anew."""
        refuse_more(post, self.abilities, self._site.name)
        patience = Patience(call)
        standing = await self._ours(post, remote_id, patience)
        if standing is None:
            raise gone(self._site.name, remote_id)
        fields, notes = await self._fields(post, patience)
        fields["updated_at"] = text_at(standing, "updated_at")
        changed = await self._ask("PUT", f"posts/{remote_id}/?source=html", patience, _one_post, {"posts": [fields]})
        return _placed(changed, notes)

    async def withdraw(self, post: Post, remote_id: str, call: Call) -> None:
        """Back to a draft of the site's people, without our marker: a later publication is a new post."""
        patience = Patience(call)
        standing = await self._ours(post, remote_id, patience)
        if standing is None:
            return
        fields: dict[str, JsonValue] = {
            "status": "draft",
            "codeinjection_head": None,
            "updated_at": text_at(standing, "updated_at"),
        }
        await self._ask("PUT", f"posts/{remote_id}/", patience, _one_post, {"posts": [fields]})

    async def check(self, call: Call) -> SiteReport:
        patience = Patience(call)
        try:
            site = await self._ask("GET", "site/", patience, ghost_json)
            await self._ask("GET", "posts/?limit=1", patience, ghost_json)
        except ChannelError as error:
            return SiteReport(problems=(error.message,))
        notes = []
        home = text_at(site, "site", "url").rstrip("/")
        if home and home != self._site.base_url:
            notes.append(f"the site calls itself {home}: use that as base_url")
        return SiteReport(notes=tuple(notes))

    async def _fields(self, post: Post, patience: Patience) -> tuple[dict[str, JsonValue], list[str]]:
        image, notes = await self._picture(post, patience)
        head = f'<meta name="citeloop" content="{html.escape(post.marker, quote=True)}">'
        fields: dict[str, JsonValue] = {
            "title": post.title[:_LONGEST_TITLE],
            "html": post.html,
            "custom_excerpt": post.excerpt[:_LONGEST_EXCERPT] or None,
            "tags": [{"name": name} for name in post.tags],
            "canonical_url": post.canonical_url or None,
            "codeinjection_head": head + markup.json_ld(post, image=image),
        }
        if image and post.picture is not None:
            fields |= {
                "feature_image": image,
                "feature_image_alt": post.picture_alt[:_LONGEST_ALT],
                "feature_image_caption": html.escape(post.picture.credit) or None,
            }
        return fields, notes

    async def _picture(self, post: Post, patience: Patience) -> tuple[str, list[str]]:
        """Its address on the site. The upload is no post: repeating it costs a file, not a double."""
        if post.picture is None:
            return "", []
        name = f"citeloop-{hashlib.sha256(post.picture.data).hexdigest()[:16]}"
        file = File(
            "file",
            f"{name}.{markup.extension(post.picture.media_type)}",
            post.picture.media_type,
            post.picture.data,
        )
        try:
            url = await self._ask(
                "POST",
                "images/upload/",
                patience,
                _image_url,
                upload=multipart(file, {"purpose": "image", "ref": name}),
            )
        except ChannelError as error:
            if error.fault not in _NO_PICTURE:
                raise
            return "", [f"without its picture: {error.message}"]
        return urljoin(f"{self._site.base_url}/", url), []

    async def _ours(self, post: Post, remote_id: str, patience: Patience) -> JsonValue:
        """The post of this id, None where it is gone or withdrawn. Raises INVALID where it is another's."""
        found = await self._ask("GET", f"posts/{quote(remote_id, safe='')}/", patience, _maybe_post)
        if found is None or _bears(found, post.marker):
            return found
        if text_at(found, "status") == "draft" and not text_at(found, "codeinjection_head"):
            return None
        raise foreign(self._site.name, remote_id)

    async def _ask(
        self,
        method: str,
        path: str,
        patience: Patience,
        decode: Callable[[HttpReply], T],
        content: dict[str, JsonValue] | None = None,
        *,
        upload: tuple[str, bytes] | None = None,
    ) -> T:
        try:
            return await self._wire.exchange(self._request(method, path, content, upload), patience.call(), decode)
        except ChannelError as error:
            if error.remedy is not Remedy.REFRESH_TOKEN:
                raise
        self._token = ""
        try:
            return await self._wire.exchange(self._request(method, path, content, upload), patience.call(), decode)
        except ChannelError as error:
            if error.status == _UNAUTHORIZED:
                error.message = (
                    f"the site refuses the Admin API key: check {self._site.secret_env}, and that this machine's "
                    f"clock is right ({error.message})"
                )
                error.args = (error.message,)
            raise

    def _request(
        self, method: str, path: str, content: dict[str, JsonValue] | None, upload: tuple[str, bytes] | None
    ) -> HttpRequest:
        headers = {
            "Authorization": f"Ghost {self._current_token()}",
            "Accept-Version": "v6.0",
            "Accept": "application/json",
        }
        body = b""
        if content is not None:
            headers["Content-Type"] = "application/json"
            body = json.dumps(content, ensure_ascii=False).encode("utf-8", "replace")
        if upload is not None:
            headers["Content-Type"], body = upload
        return HttpRequest(method, f"{self._site.base_url}/ghost/api/admin/{path}", headers, body)

    def _current_token(self) -> str:
        now = self._now()
        if not self._token or now >= self._renew_at:
            try:
                self._token = admin_token(self._key, now)
            except ValueError as error:
                raise ChannelError(Fault.UNAUTHORIZED, f"{self._site.secret_env}: {error}") from None
            self._renew_at = now + _TOKEN_LIFE - _TOKEN_MARGIN
        return self._token


def admin_token(key: str, now: datetime) -> str:
    """A JWT (HS256) of five minutes for a key `id:secret`, both in hex. ValueError for what is no such key."""
    identity, _, secret = key.partition(":")
    try:
        known = bytes.fromhex(secret)
    except ValueError:
        known = b""
    if not identity or not known:
        raise ValueError("is no Admin API key; it looks like 24 hex digits, a colon, 64 hex digits")
    issued = int(now.timestamp())
    header = {"alg": "HS256", "kid": identity, "typ": "JWT"}
    claims = {"iat": issued, "exp": issued + int(_TOKEN_LIFE.total_seconds()), "aud": "/admin/"}
    signed = b".".join(_base64url(json.dumps(part, separators=(",", ":")).encode()) for part in (header, claims))
    return (signed + b"." + _base64url(hmac.new(known, signed, hashlib.sha256).digest())).decode()


def _base64url(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def ghost_json(reply: HttpReply) -> JsonValue:
    """The JSON of a good reply. A token that is refused has REFRESH_TOKEN for its remedy."""
    try:
        return judged_json(reply)
    except ChannelError as error:
        if error.status == _UNAUTHORIZED:
            error.remedy = Remedy.REFRESH_TOKEN
        raise


def _one_post(reply: HttpReply) -> JsonValue:
    if reply.status == _COLLISION:
        raise fault(
            Fault.UNAVAILABLE, reply, "somebody is editing the post (409); it is tried again with their version"
        )
    post = at(ghost_json(reply), "posts", 0)
    if not text_at(post, "id"):
        raise garbled(reply, "the site did not say what it created")
    return post


def _maybe_post(reply: HttpReply) -> JsonValue:
    return None if reply.status == _NOT_FOUND else _one_post(reply)


def _image_url(reply: HttpReply) -> str:
    url = text_at(ghost_json(reply), "images", 0, "url")
    if not url:
        raise garbled(reply, "the site did not say where the picture is")
    return url


def _bears(post: JsonValue, marker: str) -> bool:
    return f'content="{html.escape(marker, quote=True)}"' in text_at(post, "codeinjection_head")


def _placed(post: JsonValue, notes: list[str] | None = None) -> Placed:
    return Placed(
        remote_id=text_at(post, "id"),
        url=text_at(post, "url"),
        confirmed=text_at(post, "status") in {"published", ""},
        notes=tuple(notes or ()),
    )


def _moment(value: datetime) -> str:
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
