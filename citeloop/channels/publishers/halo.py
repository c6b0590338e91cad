"""Halo 2 by its console API and a personal access token. Tested against: documented shape (halo 2.26, 2026-08).

We choose `metadata.name` ourselves: a UUID of the marker. So creating is idempotent (a duplicate name is our own
earlier attempt, answered 400) and the look-up is one read. Creating and publishing are two requests; a post whose
second one was lost is a draft under our name, which the next publication finishes.
"""

import hashlib
import json
import uuid
from collections.abc import Callable
from typing import TypeVar
from urllib.parse import quote, urljoin

from pydantic import JsonValue

from citeloop.channels.delays import header_delay
from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.foreign import at, items_at, text_at
from citeloop.channels.judging import fault, garbled, judged_json
from citeloop.channels.patience import Patience
from citeloop.channels.ports import Ability, Call, Placed, Post, SiteReport
from citeloop.channels.publishers import markup
from citeloop.channels.publishers.doubt import in_doubt
from citeloop.channels.publishers.multipart import File, multipart
from citeloop.channels.publishers.refusing import gone, refuse_more
from citeloop.channels.reply import HttpReply, read_body
from citeloop.channels.wire import HttpRequest, Wire
from citeloop.models.channel import SiteSpec

T = TypeVar("T")

_CONSOLE = "/apis/api.console.halo.run/v1alpha1/posts"
_CONTENT = "/apis/content.halo.run/v1alpha1/posts"
_STORAGE = "/apis/uc.api.storage.halo.run/v1alpha1/attachments"
_MARKER = "citeloop.io/marker"
_NAMES = uuid.UUID("8d3c1c5e-9f0b-5b0e-8d0a-3f1f2d6f5c11")
_NOT_FOUND, _BAD, _TOO_MANY = 404, 400, 429
_DUPLICATE = ("duplicate name", "名称重复", "重复的名称")
_NO_PICTURE = frozenset({Fault.INVALID, Fault.REFUSED, Fault.GARBLED})
_SHOWN = {"PUBLISHED": True, "PENDING_APPROVAL": False}


class Halo:
    abilities = frozenset(Ability) - {
        Ability.CALLBACK,
        Ability.CANONICAL,
        Ability.TAGS,
        Ability.CATEGORIES,
        Ability.AUTHOR,
    }
    """Halo has tags and categories, as things with names of their own; they are not made here yet."""

    def __init__(self, site: SiteSpec, token: str, wire: Wire) -> None:
        self._site = site
        self._token = token
        self._wire = wire

    async def publish(self, post: Post, call: Call) -> Placed:
        refuse_more(post, self.abilities, self._site.name)
        patience = Patience(call)
        image, notes = await self._picture(post, patience)
        name = post_name(post.marker)
        try:
            made = await self._ask("POST", _CONSOLE, patience, _created, _request(post, image, name))
            if made is None:
                await self._rewrite(post, image, patience)
            shown = await self._ask("PUT", f"{_CONSOLE}/{name}/publish", patience, halo_json)
        except ChannelError as error:
            raise in_doubt(error) from None
        return self._placed(shown, notes)

    async def look_up(self, post: Post, call: Call) -> Placed | None:
        """None for a draft of ours too: nobody sees it, and publishing again finishes it."""
        found = await self._find(post_name(post.marker), Patience(call))
        if found is None or at(found, "spec", "deleted") is True or text_at(found, "status", "phase") not in _SHOWN:
            return None
        return self._placed(found)

    async def update(self, post: Post, remote_id: str, call: Call) -> Placed:
        refuse_more(post, self.abilities, self._site.name)
        patience = Patience(call)
        standing = await self._find(remote_id, patience)
        if standing is None or at(standing, "spec", "deleted") is True:
            raise gone(self._site.name, remote_id)
        image, notes = await self._picture(post, patience)
        await self._rewrite(post, image, patience)
        shown = await self._ask("PUT", f"{_CONSOLE}/{quote(remote_id)}/publish", patience, halo_json)
        return self._placed(shown, notes)

    async def withdraw(self, post: Post, remote_id: str, call: Call) -> None:  # noqa: ARG002 - the name is the marker's
        """Unpublished: the text stays with the site's people as a draft."""
        patience = Patience(call)
        if await self._find(remote_id, patience) is not None:
            await self._ask("PUT", f"{_CONSOLE}/{quote(remote_id)}/unpublish", patience, halo_json)

    async def check(self, call: Call) -> SiteReport:
        try:
            await self._ask("GET", f"{_CONSOLE}?page=1&size=1", Patience(call), halo_json)
        except ChannelError as error:
            if error.fault is Fault.UNAUTHORIZED:
                words = f"check {self._site.secret_env}: the token must be valid and may manage posts and attachments"
                return SiteReport(problems=(f"the site refuses the token ({error.message}); {words}",))
            return SiteReport(problems=(error.message,))
        return SiteReport()

    async def _rewrite(self, post: Post, image: str, patience: Patience) -> None:
        """The whole post anew over what stands under our name, with the version by which Halo locks it."""
        name = post_name(post.marker)
        standing = await self._find(name, patience)
        if standing is None:
            raise gone(self._site.name, name)
        wanted = _request(post, image, name)
        metadata = at(standing, "metadata")
        spec = at(standing, "spec")
        assert isinstance(wanted["post"], dict)
        if isinstance(metadata, dict) and isinstance(spec, dict):
            wanted["post"] = {
                **wanted["post"],
                "metadata": metadata | {"annotations": _annotations(post, metadata.get("annotations"))},
                "spec": _spec(post, image) | spec | _told(post, image) | {"deleted": False},
            }
        await self._ask("PUT", f"{_CONSOLE}/{name}", patience, halo_json, wanted)

    async def _find(self, name: str, patience: Patience) -> JsonValue:
        return await self._ask("GET", f"{_CONTENT}/{quote(name)}", patience, _found)

    async def _picture(self, post: Post, patience: Patience) -> tuple[str, list[str]]:
        """Its address; the file's name is its digest, so that a repeat finds it."""
        if post.picture is None:
            return "", []
        name = f"citeloop-{hashlib.sha256(post.picture.data).hexdigest()[:16]}"
        file_name = f"{name}.{markup.extension(post.picture.media_type)}"
        upload = multipart(File("file", file_name, post.picture.media_type, post.picture.data), {})
        try:
            known = await self._ask("GET", f"{_STORAGE}?keyword={name}&page=1&size=1", patience, halo_json)
            link = next((text_at(one, "status", "permalink") for one in items_at(known, "items")), "")
            link = link or await self._ask("POST", f"{_STORAGE}/-/upload", patience, _permalink, upload=upload)
        except ChannelError as error:
            if error.fault not in _NO_PICTURE:
                raise
            return "", [f"without its picture: {error.message}"]
        return urljoin(f"{self._site.base_url}/", link), []

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
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}
        body = b""
        if content is not None:
            headers["Content-Type"] = "application/json"
            body = json.dumps(content, ensure_ascii=False).encode("utf-8", "replace")
        if upload is not None:
            headers["Content-Type"], body = upload
        request = HttpRequest(method, f"{self._site.base_url}{path}", headers, body)
        return await self._wire.exchange(request, patience.call(), decode)

    def _placed(self, post: JsonValue, notes: list[str] | None = None) -> Placed:
        """`status.phase` follows a little later than the reply of `publish`; then `spec.publish` is the word."""
        phase = text_at(post, "status", "phase")
        link = text_at(post, "status", "permalink")
        return Placed(
            remote_id=text_at(post, "metadata", "name"),
            url=urljoin(f"{self._site.base_url}/", link) if link else "",
            confirmed=_SHOWN.get(phase, at(post, "spec", "publish") is True),
            notes=tuple(notes or ()),
        )


def post_name(marker: str) -> str:
    """The same article is the same name, in every process."""
    return str(uuid.uuid5(_NAMES, marker))


def _request(post: Post, image: str, name: str) -> dict[str, JsonValue]:
    body = f"{markup.figure(image, post)}{post.html}\n{markup.span(post.marker)}{markup.json_ld(post, image=image)}"
    return {
        "post": {
            "apiVersion": "content.halo.run/v1alpha1",
            "kind": "Post",
            "metadata": {"name": name, "annotations": _annotations(post, None)},
            "spec": _spec(post, image),
        },
        "content": {"raw": body, "content": body, "rawType": "HTML"},
    }


def _told(post: Post, image: str) -> dict[str, JsonValue]:
    """What a correction changes; all else of a standing post belongs to the site's people."""
    return {
        "title": post.title,
        "cover": image,
        "excerpt": {"autoGenerate": not post.excerpt, "raw": post.excerpt},
    }


def _spec(post: Post, image: str) -> dict[str, JsonValue]:
    return {
        **_told(post, image),
        "slug": post.slug,
        "allowComment": True,
        "deleted": False,
        "pinned": False,
        "priority": 0,
        "publish": False,
        "visible": "PUBLIC",
        "htmlMetas": [],
    }


def _annotations(post: Post, before: JsonValue) -> dict[str, JsonValue]:
    return {**(before if isinstance(before, dict) else {}), _MARKER: post.marker}


def halo_json(reply: HttpReply) -> JsonValue:
    """The JSON of a good reply. Halo words its own rate limit as an exceeded quota."""
    if reply.status == _TOO_MANY:
        error = fault(Fault.RATE_LIMITED, reply, "HTTP 429: the site limits requests")
        error.delay = header_delay(reply.headers, reply.received_at)
        raise error
    return judged_json(reply)


def _created(reply: HttpReply) -> JsonValue:
    """None for a name that is taken: only we make that name, so our earlier attempt succeeded."""
    if reply.status == _BAD:
        told = read_body(reply).json
        words = f"{text_at(told, 'title')} {text_at(told, 'detail')}".lower()
        if any(one in words for one in _DUPLICATE):
            return None
    return halo_json(reply)


def _found(reply: HttpReply) -> JsonValue:
    return None if reply.status == _NOT_FOUND else halo_json(reply)


def _permalink(reply: HttpReply) -> str:
    link = text_at(halo_json(reply), "status", "permalink")
    if not link:
        raise garbled(reply, "the site did not say where the picture is")
    return link
