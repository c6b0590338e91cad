"""A site that answers in order what the test says, request by request, and remembers what it was asked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import httpx

from citeloop.channels.ports import Publisher
from citeloop.channels.publishers.ghost import Ghost
from citeloop.channels.publishers.halo import Halo
from citeloop.channels.publishers.webhook import WebhookSite
from citeloop.channels.publishers.wechat import WeChat
from citeloop.channels.publishers.wordpress import WordPress
from citeloop.channels.wire import Wire
from citeloop.models.channel import SiteKind, SiteSpec
from tests.channels.publishers.conformance import MARKER, POST
from tests.channels.publishers.servers import ghost, halo, wechat

Reply = httpx.Response | Exception | Callable[[], httpx.Response]
BASE = "https://site.example"
WEBHOOK_SECRET = "whsec_Y2l0ZWxvb3Agc2FuZGJveCwgMzIgYnl0ZXMgbG9uZyE="


@dataclass
class Scripted:
    """`rules`: (method, part of the address, replies in order; the last one stays). No rule fits: 200 and `{}`."""

    rules: list[tuple[str, str, list[Reply]]] = field(default_factory=list)
    requests: list[httpx.Request] = field(default_factory=list)

    def first(self, method: str, part: str, *replies: Reply) -> "Scripted":
        """Before the rules that stand."""
        self.rules.insert(0, (method, part, list(replies)))
        return self

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        for method, part, replies in self.rules:
            if request.method == method and part in str(request.url):
                reply = replies.pop(0) if len(replies) > 1 else replies[0]
                if isinstance(reply, Exception):
                    raise reply
                if not isinstance(reply, httpx.Response):
                    return reply()
                return httpx.Response(reply.status_code, headers=reply.headers, content=reply.content)
        return httpx.Response(200, json={})

    def sent(self, method: str, part: str) -> list[httpx.Request]:
        return [one for one in self.requests if one.method == method and part in str(one.url)]

    def client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(transport=httpx.MockTransport(self))


def wordpress_row(number: int = 7, **changes: object) -> dict[str, object]:
    content = {"raw": f'<p>x</p><span data-citeloop="{MARKER}"></span>'}
    return {
        "id": number, "slug": POST.slug, "status": "publish", "link": f"{BASE}/{POST.slug}/", "content": content,
        **changes,
    }  # fmt: skip


def good(kind: SiteKind) -> Scripted:
    """A site on which nothing stands yet and all goes well."""
    match kind:
        case SiteKind.WORDPRESS:
            return Scripted(
                [
                    ("GET", "wp/v2/", [httpx.Response(200, json=[])]),
                    ("POST", "media", [httpx.Response(201, json={"id": 31, "source_url": f"{BASE}/p.png"})]),
                    ("POST", "posts", [httpx.Response(201, json=wordpress_row())]),
                ]
            )
        case SiteKind.GHOST:
            post = {
                "id": "6748", "slug": POST.slug, "url": f"{BASE}/t/", "status": "published", "updated_at": "u1",
                "codeinjection_head": f'<meta name="citeloop" content="{MARKER}">',
            }  # fmt: skip
            return Scripted(
                [
                    ("GET", "posts/?", [httpx.Response(200, json={"posts": []})]),
                    ("POST", "images", [httpx.Response(201, json={"images": [{"url": f"{BASE}/p.png"}]})]),
                    ("POST", "posts/", [httpx.Response(201, json={"posts": [post]})]),
                ]
            )
        case SiteKind.HALO:
            shown = {
                "metadata": {"name": "n", "version": 1}, "spec": {"publish": True},
                "status": {"phase": "PUBLISHED", "permalink": "/archives/t"},
            }  # fmt: skip
            return Scripted(
                [
                    ("POST", "upload", [httpx.Response(200, json={"status": {"permalink": "/upload/p.png"}})]),
                    ("POST", "posts", [httpx.Response(200, json=shown)]),
                    ("PUT", "posts", [httpx.Response(200, json=shown)]),
                    ("GET", "posts", [httpx.Response(200, json=shown)]),
                ]
            )
        case SiteKind.WECHAT:
            return Scripted(
                [
                    ("POST", "stable_token", [httpx.Response(200, json={"access_token": "t1", "expires_in": 7200})]),
                    ("POST", "uploadimg", [httpx.Response(200, json={"url": "https://mmbiz.qpic.cn/p"})]),
                    ("POST", "add_material", [httpx.Response(200, json={"media_id": "cover"})]),
                    ("POST", "draft/add", [httpx.Response(200, json={"media_id": "m1"})]),
                ]
            )
        case _:
            return Scripted([("POST", BASE, [httpx.Response(202, json={"remote_id": "41"})])])


def publisher(kind: SiteKind, http: httpx.AsyncClient) -> Publisher:
    site = SiteSpec(name="site", kind=kind, base_url=BASE, secret_env="SECRET", user_env="USER")
    wire = Wire(http, "site")
    makers: dict[SiteKind, Callable[[], Publisher]] = {
        SiteKind.WORDPRESS: lambda: WordPress(site, "me", "pass word", wire),
        SiteKind.GHOST: lambda: Ghost(site, ghost.KEY, wire),
        SiteKind.HALO: lambda: Halo(site, halo.TOKEN, wire),
        SiteKind.WECHAT: lambda: WeChat(site, wechat.APP_ID, wechat.SECRET, wire),
        SiteKind.WEBHOOK: lambda: WebhookSite(site, WEBHOOK_SECRET, wire),
    }
    return makers[kind]()


def bodies(requests: Sequence[httpx.Request]) -> list[str]:
    return [one.content.decode() for one in requests]
