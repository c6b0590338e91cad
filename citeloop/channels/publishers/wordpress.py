"""WordPress by its REST API, with an application password (read from core 7.2-alpha, 2026-08).

Every post ends with an empty `<span data-citeloop="…">` that carries our marker: WordPress keeps data attributes for
every role, needs no registered meta field for it, and finds it by its full-text search. A post is ours only if it
bears the marker, whatever its slug became.
"""

import asyncio
import base64
import hashlib
import html
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from typing import TypeVar
from urllib.parse import urlencode

from pydantic import JsonValue

from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.foreign import at, items_at, text_at
from citeloop.channels.judging import fault, garbled, judge
from citeloop.channels.ports import Call, PictureFile, Placed, Post
from citeloop.channels.publishers.doubt import in_doubt
from citeloop.channels.reply import Body, HttpReply, Shape, parse_json, read_body
from citeloop.channels.wire import HttpRequest, Wire
from citeloop.models.channel import SiteSpec

T = TypeVar("T")

_STATUSES = "publish,future,draft,pending,private"
_JSON_START = re.compile(r'\{\s*"|\[\s*[{\]]')
_NOTICES = 20_000
"""Characters in which the JSON must begin."""
_NO_PICTURE = frozenset({Fault.INVALID, Fault.REFUSED, Fault.GARBLED})
_STRIPPED = (
    "the site did not accept the login: check user and application password; if they are right, its server strips "
    'the Authorization header (Apache: SetEnvIf Authorization "(.*)" HTTP_AUTHORIZATION=$1; '
    "nginx: fastcgi_pass_header Authorization)"
)
_FIREWALL = "a firewall before the site refused the request with an HTML page; allow /wp-json/ for this server"
_NO_REST = "the site has no REST API at this address; check base_url"


@dataclass(frozen=True, slots=True)
class _Ask:
    method: str
    route: str
    query: Mapping[str, str]
    body: bytes = b""
    headers: Mapping[str, str] | None = None


class WordPress:
    def __init__(self, site: SiteSpec, user: str, password: str, wire: Wire) -> None:
        self._site = site
        self._login = base64.b64encode(f"{user}:{password}".encode()).decode()
        self._wire = wire
        self._plain_permalinks = False

    async def publish(self, post: Post, call: Call) -> Placed:
        """Media first, then the post, within the call's total. Raises ChannelError; UNKNOWN only for the post itself.

        An article survives without its picture where the site refuses the picture for good.
        """
        patience = _Patience(call)
        media = await self._picture(post, patience)
        try:
            created = await self._create(post, media, patience)
        except ChannelError as error:
            if media and error.change == "drop_featured_media":
                created = await self._create(post, 0, patience)
            else:
                raise
        if text_at(created, "slug") in {post.slug, ""}:
            return _placed(created)
        return await self._settle_double(post, created, patience)

    async def look_up(self, post: Post, call: Call) -> Placed | None:
        """By slug in every status, then by a search for the marker (WordPress may have changed the slug)."""
        found = await self._bearing(post, _Patience(call))
        return _placed(found[0]) if found else None

    async def _create(self, post: Post, media: int, patience: "_Patience") -> JsonValue:
        content = f'{post.html}\n<span data-citeloop="{html.escape(post.marker, quote=True)}"></span>'
        fields: dict[str, JsonValue] = {
            "title": post.title,
            "content": content,
            "excerpt": post.excerpt,
            "slug": post.slug,
            "status": "publish",
        }
        if media:
            fields["featured_media"] = media
        body = json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace")
        headers = {"Content-Type": "application/json"}
        try:
            return await self._ask(_Ask("POST", "/wp/v2/posts", {}, body, headers), patience, _created)
        except ChannelError as error:
            raise in_doubt(error) from None

    async def _settle_double(self, post: Post, created: JsonValue, patience: "_Patience") -> Placed:
        """Another slug than asked: if an earlier post of ours holds it, we posted twice, and the second one goes."""
        identity = text_at(created, "id")
        try:
            earlier = [one for one in await self._bearing(post, patience) if text_at(one, "id") != identity]
            if earlier:
                removal = _Ask("DELETE", f"/wp/v2/posts/{identity}", {"force": "true"})
                await self._ask(removal, patience, wordpress_json)
                return _placed(earlier[0])
        except ChannelError:
            return _placed(created)
        return _placed(created)

    async def _bearing(self, post: Post, patience: "_Patience") -> list[JsonValue]:
        for query in ({"slug": post.slug}, {"search": post.marker}):
            asked = query | {"status": _STATUSES, "context": "edit", "per_page": "100"}
            posts = await self._ask(_Ask("GET", "/wp/v2/posts", asked), patience, _listed)
            ours = [one for one in posts if _bears(one, post.marker)]
            if ours:
                return ours
        return []

    async def _picture(self, post: Post, patience: "_Patience") -> int:
        """The media id, 0 for none. The file's name is its digest, so that a repeat finds it."""
        if post.picture is None:
            return 0
        name = f"citeloop-{hashlib.sha256(post.picture.data).hexdigest()[:16]}"
        try:
            query = {"slug": name, "context": "edit"}
            known = await self._ask(_Ask("GET", "/wp/v2/media", query), patience, _listed)
            if known:
                return _identity(known[0])
            return _identity(await self._ask(_upload(name, post, post.picture), patience, _created))
        except ChannelError as error:
            if error.fault in _NO_PICTURE or error.change == "drop_picture":
                return 0
            raise

    async def _ask(self, ask: _Ask, patience: "_Patience", decode: Callable[[HttpReply], T]) -> T:
        try:
            return await self._wire.exchange(self._request(ask), patience.left(), decode)
        except ChannelError as error:
            if error.change != "use_rest_route_query" or self._plain_permalinks:
                raise
        self._plain_permalinks = True
        try:
            return await self._wire.exchange(self._request(ask), patience.left(), decode)
        except ChannelError:
            self._plain_permalinks = False
            raise

    def _request(self, ask: _Ask) -> HttpRequest:
        if self._plain_permalinks:
            url = f"{self._site.base_url}/?{urlencode({'rest_route': ask.route, **ask.query})}"
        else:
            query = f"?{urlencode(ask.query)}" if ask.query else ""
            url = f"{self._site.base_url}/wp-json{ask.route}{query}"
        headers = {
            "Authorization": f"Basic {self._login}",
            "Accept": "application/json",
            **(ask.headers or {}),
        }
        return HttpRequest(ask.method, url, headers, ask.body)


class _Patience:
    """One `total` over several requests: Temporal's start-to-close knows only one."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._deadline = asyncio.get_running_loop().time() + call.policy.total.total_seconds()

    def left(self) -> Call:
        seconds = max(self._deadline - asyncio.get_running_loop().time(), 0.1)
        policy = self._call.policy.model_copy(update={"total": timedelta(seconds=seconds)})
        return self._call.model_copy(update={"policy": policy})


def wordpress_json(reply: HttpReply) -> JsonValue:
    """The JSON of a good reply, PHP notices before it forgiven. Raises ChannelError with hosting faults in words."""
    body = _without_notices(read_body(reply))
    if reply.status == 404 and body.shape is not Shape.JSON:  # noqa: PLR2004
        raise fault(Fault.INVALID, reply, f"HTTP 404: {_NO_REST}", change="use_rest_route_query")
    if reply.status == 403 and body.shape is not Shape.JSON:  # noqa: PLR2004
        raise fault(Fault.INVALID, reply, f"HTTP 403: {_FIREWALL}")
    if error := judge(reply, body):
        code = text_at(body.json, "code")
        if reply.status == 401:  # noqa: PLR2004
            raise fault(Fault.UNAUTHORIZED, reply, f"HTTP 401 {code}: {_STRIPPED}")
        error.change = {
            "rest_invalid_featured_media": "drop_featured_media",
            "rest_upload_sideload_error": "drop_picture",
            "rest_cannot_create": "drop_picture",
        }.get(code, error.change)
        raise error
    if body.shape is not Shape.JSON:
        raise garbled(reply, f"expected JSON and got {body.shape}: {body.text[:120]}")
    return body.json


def _without_notices(body: Body) -> Body:
    if body.shape not in {Shape.HTML, Shape.TEXT}:
        return body
    text = body.text
    for start in islice(_JSON_START.finditer(text, 0, _NOTICES), 5):
        try:
            value = parse_json(text[start.start() :])
        except ValueError:
            continue
        return Body(Shape.JSON, body.raw, value)
    return body


def _created(reply: HttpReply) -> JsonValue:
    value = wordpress_json(reply)
    if not isinstance(value, dict) or not text_at(value, "id"):
        # A POST that a redirect on the way turned into a GET answers 200 with a list.
        raise garbled(reply, "the site did not say what it created")
    return value


def _listed(reply: HttpReply) -> list[JsonValue]:
    value = wordpress_json(reply)
    if not isinstance(value, list):
        raise garbled(reply, "expected a list of posts")
    return list(items_at(value))


def _upload(name: str, post: Post, picture: PictureFile) -> _Ask:
    extension = "png" if picture.media_type == "image/png" else "jpg"
    headers = {
        "Content-Type": picture.media_type,
        "Content-Disposition": f'attachment; filename="{name}.{extension}"',
    }
    return _Ask("POST", "/wp/v2/media", {"alt_text": post.picture_alt}, picture.data, headers)


def _bears(post: JsonValue, marker: str) -> bool:
    written = html.escape(marker, quote=True)
    return any(written in text_at(post, "content", form) for form in ("raw", "rendered"))


def _identity(item: JsonValue) -> int:
    found = at(item, "id")
    return found if isinstance(found, int) else 0


def _placed(post: JsonValue) -> Placed:
    """`confirmed` False for a post that is there but not public yet (future, pending, draft)."""
    return Placed(
        remote_id=text_at(post, "id"),
        url=text_at(post, "link"),
        confirmed=text_at(post, "status") in {"publish", ""},
    )
