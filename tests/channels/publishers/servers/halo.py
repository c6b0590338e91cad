"""Halo 2's console API as its source describes it: names chosen by the client, versions, phases, RFC 7807 errors."""

from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.channels.publishers.servers.serving import fields, parts

TOKEN = "pat_0123456789abcdefghijklmnopqrstuvwxyz"
_CONSOLE = "/apis/api.console.halo.run/v1alpha1/posts"
_STORAGE = "/apis/uc.api.storage.halo.run/v1alpha1/attachments"
_REQUIRED = ("allowComment", "deleted", "excerpt", "pinned", "priority", "publish", "slug", "title", "visible")


class HaloServer:
    def __init__(self) -> None:
        self.posts: dict[str, dict[str, Any]] = {}
        self.contents: dict[str, str] = {}
        """The newest text of each post."""
        self.released: dict[str, str] = {}
        """What visitors see."""
        self.attachments: dict[str, bytes] = {}
        self.limit_next = False

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route(_CONSOLE, self.listed, methods=["GET"]),
                Route(_CONSOLE, self.draft, methods=["POST"]),
                Route(f"{_CONSOLE}/{{name}}", self.update, methods=["PUT"]),
                Route(f"{_CONSOLE}/{{name}}/publish", self.publish, methods=["PUT"]),
                Route(f"{_CONSOLE}/{{name}}/unpublish", self.unpublish, methods=["PUT"]),
                Route("/apis/content.halo.run/v1alpha1/posts/{name}", self.read, methods=["GET"]),
                Route(_STORAGE, self.search, methods=["GET"]),
                Route(f"{_STORAGE}/-/upload", self.upload, methods=["POST"]),
            ]
        )

    async def listed(self, request: Request) -> Response:
        return self._refusal(request) or JSONResponse({"total": len(self.posts), "items": []})

    async def read(self, request: Request) -> Response:
        return self._refusal(request) or self._shown(request.path_params["name"])

    async def draft(self, request: Request) -> Response:
        if refusal := self._refusal(request):
            return refusal
        given = await fields(request)
        post = given["post"]
        name = post["metadata"]["name"]
        missing = [key for key in _REQUIRED if key not in post["spec"]]
        if missing or given["content"]["rawType"] not in {"HTML", "markdown"}:
            return _problem(request, 400, "Bad Request", f"Required: {missing}")
        if name in self.posts:
            return _problem(request, 400, "Duplicate Name Error", "Duplicate name detected")
        post["metadata"] |= {"version": 1}
        post["status"] = {"phase": "DRAFT"}
        self.posts[name], self.contents[name] = post, given["content"]["content"]
        return self._shown(name)

    async def update(self, request: Request) -> Response:
        if refusal := self._refusal(request):
            return refusal
        name = request.path_params["name"]
        given = await fields(request)
        standing = self.posts.get(name)
        if standing is None:
            return _problem(request, 404, "Not Found", f"Post {name} was not found")
        if given["post"]["metadata"].get("version") != standing["metadata"]["version"]:
            return _problem(request, 409, "Conflict", "The resource has been modified; reload it")
        given["post"]["metadata"]["version"] += 1
        self.posts[name] = {**given["post"], "status": standing["status"]}
        self.contents[name] = given["content"]["content"]
        return self._shown(name)

    async def publish(self, request: Request) -> Response:
        if refusal := self._refusal(request):
            return refusal
        name = request.path_params["name"]
        if name not in self.posts:
            return _problem(request, 404, "Not Found", f"Post {name} was not found")
        post = self.posts[name]
        post["spec"]["publish"] = True
        post["metadata"]["version"] += 1
        post["status"] = {"phase": "PUBLISHED", "permalink": f"/archives/{post['spec']['slug']}"}
        self.released[name] = self.contents[name]
        return self._shown(name)

    async def unpublish(self, request: Request) -> Response:
        if refusal := self._refusal(request):
            return refusal
        name = request.path_params["name"]
        post = self.posts[name]
        post["spec"]["publish"] = False
        post["metadata"]["version"] += 1
        post["status"] = {"phase": "DRAFT"}
        self.released.pop(name, None)
        return self._shown(name)

    async def search(self, request: Request) -> Response:
        if refusal := self._refusal(request):
            return refusal
        wanted = request.query_params["keyword"]
        return JSONResponse({"items": [_attachment(name) for name in self.attachments if wanted in name]})

    async def upload(self, request: Request) -> Response:
        if refusal := self._refusal(request):
            return refusal
        file = (await parts(request))["file"]
        self.attachments[file.filename] = file.data
        return JSONResponse(_attachment(file.filename))

    def _shown(self, name: str) -> Response:
        post = self.posts.get(name)
        return JSONResponse(post) if post else JSONResponse({"title": "Not Found", "status": 404}, status_code=404)

    def _refusal(self, request: Request) -> Response | None:
        if self.limit_next:
            self.limit_next = False
            return _problem(request, 429, "Request Not Permitted", "You have exceeded your quota")
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            return _problem(request, 401, "Unauthorized", "Invalid credentials")
        return None


def _attachment(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"displayName": name}, "status": {"permalink": f"/upload/{name}"}}


def _problem(request: Request, status: int, title: str, detail: str) -> Response:
    told = {"type": "about:blank", "title": title, "status": status, "detail": detail, "instance": request.url.path}
    return JSONResponse(told, status_code=status, media_type="application/problem+json")
