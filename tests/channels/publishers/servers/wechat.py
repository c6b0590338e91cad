"""WeChat's draft API as documented: errors under HTTP 200, tokens, permanent covers, its own pictures only."""

import itertools
import json
import re
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.channels.publishers.servers.serving import fields, parts

APP_ID, SECRET = "wx0123456789abcdef", "0123456789abcdef0123456789abcdef"
_IMAGE = re.compile(r'<img[^>]*src="(?!https?://mmbiz\.qpic\.cn/)[^"]*"[^>]*>')
_SCRIPT = re.compile(r"<script.*?</script>", re.DOTALL)
_REQUIRED = ("title", "content", "thumb_media_id")


class WeChatServer:
    def __init__(self) -> None:
        self.drafts: dict[str, dict[str, Any]] = {}
        self.published: dict[str, dict[str, Any]] = {}
        self.materials: set[str] = set()
        self.grants = 0
        """Tokens that were really new."""
        self.asked = 0
        """Requests for a token."""
        self.may_publish = True
        self.release_state = 0
        self._token = ""
        self._ids = itertools.count(1)

    def app(self) -> Starlette:
        def route(path: str, handle: Any, method: str = "POST") -> Route:
            async def guarded(request: Request) -> Response:
                refused = self._refused(request)
                answer = refused or await handle(request)
                return JSONResponse(answer, media_type="text/plain")

            return Route(f"/cgi-bin/{path}", guarded, methods=[method])

        return Starlette(
            routes=[
                Route("/cgi-bin/stable_token", self.token, methods=["POST"]),
                route("draft/add", self.add),
                route("draft/get", self.get),
                route("draft/update", self.update),
                route("draft/delete", self.delete),
                route("draft/batchget", self.batchget),
                route("draft/count", self.count, "GET"),
                route("media/uploadimg", self.upload_image),
                route("material/add_material", self.add_material),
                route("freepublish/submit", self.submit),
                route("freepublish/get", self.state),
                route("freepublish/batchget", self.batchget_published),
                route("freepublish/delete", self.delete_published),
            ]
        )

    def expire(self) -> None:
        self._token = ""

    def lose_materials(self) -> None:
        self.materials.clear()

    def release(self, media_id: str) -> str:
        """As the account's people do in their console."""
        article_id = f"article_{next(self._ids)}"
        self.published[article_id] = self.drafts.pop(media_id)
        return article_id

    async def token(self, request: Request) -> Response:
        given = await fields(request)
        self.asked += 1
        if given["appid"] != APP_ID:
            return JSONResponse(_error(40013, "invalid appid"))
        if given["secret"] != SECRET:
            return JSONResponse(_error(40125, "invalid appsecret"))
        if not self._token or given["force_refresh"]:
            self.grants += 1
            self._token = f"90_{self.grants}_" + "Ab3" * 40
        return JSONResponse({"access_token": self._token, "expires_in": 7200})

    async def add(self, request: Request) -> dict[str, Any]:
        raw = await request.body()
        (article,) = json.loads(raw)["articles"]
        if problem := self._problem(article, raw):
            return problem
        media_id = f"media_{next(self._ids)}"
        self.drafts[media_id] = _kept(article)
        return {"media_id": media_id}

    async def update(self, request: Request) -> dict[str, Any]:
        raw = await request.body()
        given = json.loads(raw)
        if given["media_id"] not in self.drafts:
            return _error(40007, "invalid media_id")
        if problem := self._problem(given["articles"], raw):
            return problem
        self.drafts[given["media_id"]] = _kept(given["articles"])
        return _error(0, "ok")

    async def get(self, request: Request) -> dict[str, Any]:
        draft = self.drafts.get((await fields(request))["media_id"])
        return {"news_item": [draft]} if draft else _error(40007, "invalid media_id")

    async def delete(self, request: Request) -> dict[str, Any]:
        known = self.drafts.pop((await fields(request))["media_id"], None)
        return _error(0, "ok") if known else _error(40007, "invalid media_id")

    async def count(self, _request: Request) -> dict[str, Any]:
        return {"total_count": len(self.drafts)}

    async def batchget(self, request: Request) -> dict[str, Any]:
        return _page(self.drafts, "media_id", await fields(request))

    async def batchget_published(self, request: Request) -> dict[str, Any]:
        if not self.may_publish:
            return _error(48001, "api unauthorized")
        return _page(self.published, "article_id", await fields(request))

    async def delete_published(self, request: Request) -> dict[str, Any]:
        self.published.pop((await fields(request))["article_id"])
        return _error(0, "ok")

    async def submit(self, request: Request) -> dict[str, Any]:
        media_id = (await fields(request))["media_id"]
        if media_id not in self.drafts:
            return _error(40007, "invalid media_id")
        if not self.release_state:
            self.release(media_id)
        return {"errcode": 0, "errmsg": "ok", "publish_id": 2247483655}

    async def state(self, _request: Request) -> dict[str, Any]:
        if self.release_state:
            return {"publish_id": 2247483655, "publish_status": self.release_state, "fail_idx": [1]}
        article_id = next(iter(self.published))
        detail = {"count": 1, "item": [{"idx": 1, "article_url": f"https://mp.weixin.qq.com/s/{article_id}"}]}
        return {"publish_id": 1, "publish_status": 0, "article_id": article_id, "article_detail": detail}

    async def upload_image(self, request: Request) -> dict[str, Any]:
        file = (await parts(request))["media"]
        if file.media_type not in {"image/png", "image/jpeg"} or len(file.data) > 1_000_000:
            return _error(40005, "invalid file type")
        return {"url": f"https://mmbiz.qpic.cn/mmbiz_png/{file.filename}"}

    async def add_material(self, request: Request) -> dict[str, Any]:
        assert request.query_params["type"] == "image"
        assert (await parts(request))["media"].data
        media_id = f"material_{next(self._ids)}"
        self.materials.add(media_id)
        return {"media_id": media_id, "url": "https://mmbiz.qpic.cn/mmbiz_png/m"}

    def _problem(self, article: dict[str, Any], raw: bytes) -> dict[str, Any] | None:
        if rb"\u" in raw or any(not article.get(name) for name in _REQUIRED):
            return _error(47001, "data format error")
        if article["thumb_media_id"] not in self.materials:
            return _error(40007, "invalid media_id hint: [h] rid: r")
        if len(article["content"]) > 20_000:
            return _error(45002, "content size out of limit")
        return None

    def _refused(self, request: Request) -> dict[str, Any] | None:
        given = request.query_params.get("access_token")
        if not given or given != self._token:
            return _error(40001, "invalid credential, access_token is invalid or not latest")
        return None


def _kept(article: dict[str, Any]) -> dict[str, Any]:
    """Scripts and foreign pictures vanish without a word."""
    return article | {"content": _SCRIPT.sub("", _IMAGE.sub("", article["content"]))}


def _page(items: dict[str, dict[str, Any]], key: str, asked: dict[str, Any]) -> dict[str, Any]:
    assert asked["count"] <= 20
    newest = list(reversed(items.items()))[asked["offset"] : asked["offset"] + asked["count"]]
    shown = [{key: name, "content": {"news_item": [article]}, "update_time": 1} for name, article in newest]
    return {"total_count": len(items), "item_count": len(shown), "item": shown}


def _error(number: int, message: str) -> dict[str, Any]:
    return {"errcode": number, "errmsg": message}
