"""Ghost's Admin API as its SDK and documentation describe it: tokens, unique slugs, edit collisions."""

import base64
import hashlib
import hmac
import itertools
import json
import re
import time
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.channels.publishers.servers.serving import fields, parts

KEY_ID = "6748592f4b9b7700010f6564"
SECRET = "b1b5b9c1d4e5f6a7b8c9d0e1f2a3b4c5d6e7f8a9b0c1d2e3f4a5b6c7d8e9f0a1"
KEY = f"{KEY_ID}:{SECRET}"
_SLUG_FILTER = re.compile(r"slug:~\^'([a-z0-9-]+)'")
_DROPPED = re.compile(r"<script.*?</script>| data-[\w-]+=\"[^\"]*\"", re.DOTALL)
"""What `?source=html` does not carry into Lexical."""
_SHOWN = (
    "title", "custom_excerpt", "tags", "canonical_url", "codeinjection_head", "feature_image", "feature_image_alt",
    "feature_image_caption", "published_at", "status",
)  # fmt: skip


class GhostServer:
    def __init__(self) -> None:
        self.posts: dict[str, dict[str, Any]] = {}
        self.images: dict[str, bytes] = {}
        self.refused_tokens = 0
        self.expire_next = False
        """Answer the next request as if its token had expired."""
        self._ids = itertools.count(0x6748592F4B9B7700010F0001)
        self._clock = itertools.count(1)

    def app(self) -> Starlette:
        admin = "/ghost/api/admin"
        return Starlette(
            routes=[
                Route(f"{admin}/site/", self.site, methods=["GET"]),
                Route(f"{admin}/posts/", self.browse, methods=["GET"]),
                Route(f"{admin}/posts/", self.add, methods=["POST"]),
                Route(f"{admin}/posts/{{id}}/", self.read, methods=["GET"]),
                Route(f"{admin}/posts/{{id}}/", self.edit, methods=["PUT"]),
                Route(f"{admin}/images/upload/", self.upload, methods=["POST"]),
            ]
        )

    async def site(self, request: Request) -> Response:
        return JSONResponse({"site": {"title": "Ghost", "url": _own(request), "version": "6.0"}})

    async def browse(self, request: Request) -> Response:
        if refusal := self._refusal(request):
            return refusal
        wanted = _SLUG_FILTER.fullmatch(request.query_params.get("filter", "slug:~^'a'"))
        if wanted is None:
            return _error(400, "BadRequestError", "Error parsing filter")
        found = [post for post in self.posts.values() if post["slug"].startswith(wanted[1])]
        return JSONResponse({"posts": found, "meta": {"pagination": {"total": len(found)}}})

    async def read(self, request: Request) -> Response:
        if refusal := self._refusal(request):
            return refusal
        post = self.posts.get(request.path_params["id"])
        return JSONResponse({"posts": [post]}) if post else _error(404, "NotFoundError", "Resource not found error")

    async def add(self, request: Request) -> Response:
        if refusal := self._refusal(request):
            return refusal
        (given,) = (await fields(request))["posts"]
        if problem := _invalid(given):
            return problem
        number = f"{next(self._ids):024x}"
        taken = {post["slug"] for post in self.posts.values()}
        slug = next(s for n in itertools.count(1) if (s := given["slug"] + (f"-{n}" if n > 1 else "")) not in taken)
        post = {"id": number, "slug": slug, "url": f"{_own(request)}/{slug}/", "status": "draft"}
        self.posts[number] = self._written(post, given, request)
        return JSONResponse({"posts": [self.posts[number]]}, status_code=201)

    async def edit(self, request: Request) -> Response:
        if refusal := self._refusal(request):
            return refusal
        post = self.posts.get(request.path_params["id"])
        if post is None:
            return _error(404, "NotFoundError", "Resource not found error")
        (given,) = (await fields(request))["posts"]
        if given.get("updated_at") != post["updated_at"]:
            return _error(409, "UpdateCollisionError", "Saving failed! Someone else is editing this post.")
        if problem := _invalid({"title": post["title"], **given}):
            return problem
        self.posts[post["id"]] = self._written(post, given, request)
        return JSONResponse({"posts": [self.posts[post["id"]]]})

    async def upload(self, request: Request) -> Response:
        if refusal := self._refusal(request):
            return refusal
        given = await parts(request)
        if given["purpose"].data != b"image" or given["file"].media_type not in {"image/png", "image/jpeg"}:
            return _error(415, "UnsupportedMediaTypeError", "Please select a valid image.")
        name = given["file"].filename
        self.images[name] = given["file"].data
        ref = given["ref"].data.decode()
        return JSONResponse(
            {"images": [{"url": f"{_own(request)}/content/images/{name}", "ref": ref}]}, status_code=201
        )

    def _written(self, post: dict[str, Any], given: dict[str, Any], request: Request) -> dict[str, Any]:
        told = {name: given[name] for name in _SHOWN if name in given}
        if request.query_params.get("source") == "html" and "html" in given:
            told["html"] = _DROPPED.sub("", given["html"])
        stamp = f"2026-11-29T12:00:{next(self._clock):02d}.000Z"
        return {"codeinjection_head": None, "html": "", **post, **told, "updated_at": stamp}

    def _refusal(self, request: Request) -> Response | None:  # noqa: PLR0911 - one per rule
        if self.expire_next:
            self.expire_next = False
            self.refused_tokens += 1
            return _unauthorized("Invalid token: jwt expired")
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme != "Ghost" or request.headers.get("accept-version") != "v6.0":
            return _error(403, "NoPermissionError", "Authorization failed")
        header, claims, signature = token.split(".")
        told, claimed = json.loads(_decoded(header)), json.loads(_decoded(claims))
        if (told["alg"], told["kid"]) != ("HS256", KEY_ID):
            return _unauthorized("Unknown Admin API Key")
        expected = hmac.new(bytes.fromhex(SECRET), f"{header}.{claims}".encode(), hashlib.sha256).digest()
        if not hmac.compare_digest(expected, _decoded(signature)):
            return _unauthorized("Invalid token: invalid signature")
        if claimed["aud"] != "/admin/" or claimed["exp"] - claimed["iat"] > 300:
            return _unauthorized("Invalid token: jwt audience invalid or maxAge exceeded")
        if not claimed["iat"] - 5 <= time.time() < claimed["exp"]:
            return _unauthorized("Invalid token: jwt expired")
        return None


def _decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def _own(request: Request) -> str:
    return f"{request.url.scheme}://{request.url.netloc}"


def _invalid(given: dict[str, Any]) -> Response | None:
    limits = {"title": 255, "custom_excerpt": 300, "feature_image_alt": 191}
    long = [name for name, limit in limits.items() if len(given.get(name) or "") > limit]
    if long or not given.get("title"):
        return _error(422, "ValidationError", f"Validation error, cannot save post: {', '.join(long) or 'title'}")
    return None


def _unauthorized(message: str) -> Response:
    return _error(401, "UnauthorizedError", message, "INVALID_JWT")


def _error(status: int, kind: str, message: str, code: str | None = None) -> Response:
    error = {"message": message, "type": kind, "code": code, "context": None, "details": None, "id": "e1"}
    return JSONResponse({"errors": [error]}, status_code=status)
