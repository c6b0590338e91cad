"""Any status, any headers, any bytes: a publisher answers or raises a ChannelError, and never shows its secret."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import httpx
from hypothesis import HealthCheck, given, settings

from citeloop.channels.errors import ChannelError
from citeloop.channels.ports import Publisher, Undecidable
from citeloop.channels.publishers.ghost import Ghost
from citeloop.channels.publishers.halo import Halo
from citeloop.channels.publishers.indexnow import IndexNow
from citeloop.channels.publishers.page_check import check_page
from citeloop.channels.publishers.webhook import WebhookSite
from citeloop.channels.publishers.wechat import WeChat
from citeloop.channels.publishers.wordpress import WordPress
from citeloop.channels.wire import Wire
from citeloop.models.channel import SiteKind, SiteSpec
from tests.channels.publishers.conformance import POST
from tests.channels.publishers.scripted import WEBHOOK_SECRET
from tests.channels.publishers.servers.ghost import KEY_ID
from tests.channels.settings import KEY, call
from tests.channels.test_fuzz import BODIES, HEADERS, STATUSES, WORD, _client

FULL = POST.model_copy(update={"json_ld": '{"@graph": []}'})
LEAN = POST.model_copy(update={"picture": None})
HEX = "0f" * 32
Use = Callable[[], Awaitable[object]]


def _uses(http: httpx.AsyncClient) -> list[Use]:
    wire = Wire(http, "site", secrets=(WORD, HEX))
    base = "https://site.example"

    def spec(kind: SiteKind) -> SiteSpec:
        return SiteSpec(name="site", kind=kind, base_url=base)

    blog = WordPress(spec(SiteKind.WORDPRESS), "me", WORD, wire)
    hook = WebhookSite(spec(SiteKind.WEBHOOK), WEBHOOK_SECRET, wire)
    ghost = Ghost(spec(SiteKind.GHOST), f"{KEY_ID}:{HEX}", wire)
    halo = Halo(spec(SiteKind.HALO), WORD, wire)
    wechat = WeChat(spec(SiteKind.WECHAT), "wx0", WORD, wire)
    uses: list[Use] = []
    for one in (blog, hook, ghost, halo, wechat):
        uses += _of(one)
    uses += [partial(one.publish, LEAN, call()) for one in (blog, ghost, halo)]
    uses += [partial(one.publish, FULL, call()) for one in (blog, hook, ghost, halo)]
    uses.append(lambda: IndexNow(base, "a1b2c3d4e5", wire).ping([f"{base}/t"], call()))
    uses.append(lambda: check_page(wire, f"{base}/t", POST, call()))
    uses.append(lambda: wechat.release("m", call()))
    uses.append(lambda: wechat.released("p", call()))
    return uses


def _of(one: Publisher) -> list[Use]:
    return [
        partial(one.publish, POST, call()),
        partial(one.look_up, POST, call()),
        partial(one.update, LEAN, "7", call()),
        partial(one.withdraw, POST, "7", call()),
        partial(one.check, call()),
    ]


async def _told(status: int, headers: dict[str, str], body: bytes) -> list[str]:
    told = []
    async with _client(status, headers, body) as http:
        for use in _uses(http):
            try:
                await use()
            except ChannelError as error:
                told.append(f"{error} {error.request_id} {error.args}")
            except Undecidable:
                continue
    return told


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(STATUSES, HEADERS, BODIES)
def test_no_publisher_breaks_on_any_reply_or_shows_its_secret(
    status: int, headers: dict[str, str], body: bytes
) -> None:
    for told in asyncio.run(_told(status, headers, body.replace(KEY.encode(), WORD.encode()))):
        assert WORD not in told
        assert HEX not in told
        assert "\n" not in told
