"""Every publisher-side line of wire_faults.jsonl, as the publisher lives through it (the judgement of the bare reply
is tests/channels/test_wire_faults.py)."""

import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from citeloop.channels.errors import ChannelError, Fault, Remedy
from citeloop.channels.handling import handling_of
from citeloop.channels.ports import Placed
from citeloop.channels.publishers.indexnow import IndexNow
from citeloop.channels.publishers.webhook import WebhookSite
from citeloop.channels.publishers.wechat import WeChat
from citeloop.channels.signing import signed_headers, verify
from citeloop.channels.wire import Wire
from citeloop.models.channel import SiteKind
from tests.channels.publishers.conformance import POST
from tests.channels.publishers.lines import lines_reply, raw_reply
from tests.channels.publishers.scripted import BASE, WEBHOOK_SECRET, Scripted, good, publisher, wordpress_row
from tests.channels.settings import call
from tests.channels.test_wire_faults import BY_ID, LINES

SERVICES = {
    "wordpress": SiteKind.WORDPRESS,
    "wordpress_media": SiteKind.WORDPRESS,
    "wordpress_com": SiteKind.WORDPRESS,
    "ghost": SiteKind.GHOST,
    "halo": SiteKind.HALO,
    "wechat_mp": SiteKind.WECHAT,
    "webhook": SiteKind.WEBHOOK,
    "webhook_in": SiteKind.WEBHOOK,
    "indexnow": None,
}
CREATION = {
    SiteKind.WORDPRESS: ("POST", "wp/v2/posts"),
    SiteKind.GHOST: ("POST", "admin/posts/"),
    SiteKind.HALO: ("POST", "v1alpha1/posts"),
    SiteKind.WECHAT: ("POST", "draft/add"),
    SiteKind.WEBHOOK: ("POST", BASE),
}


def creating(line_id: str, *after: httpx.Response) -> tuple[SiteKind, Scripted]:
    """A site whose reply to the creating request is the line, and after it `after`."""
    line = BY_ID[line_id]
    kind = SERVICES[line["service"]]
    assert kind is not None
    answer = httpx.ReadTimeout("silent") if line["status"] is None else lines_reply(line_id)
    return kind, good(kind).first(*CREATION[kind], answer, *after)


async def published(line_id: str, *after: httpx.Response) -> tuple[Placed, Scripted]:
    kind, site = creating(line_id, *after)
    async with site.client() as http:
        return await publisher(kind, http).publish(POST, call()), site


async def refused(line_id: str, *after: httpx.Response) -> tuple[ChannelError, Scripted]:
    kind, site = creating(line_id, *after)
    async with site.client() as http:
        with pytest.raises(ChannelError) as raised:
            await publisher(kind, http).publish(POST, call())
    return raised.value, site


async def fails_for_good(line_id: str) -> None:
    error, site = await refused(line_id)
    assert handling_of(error) == "fail_permanent"
    kind = SERVICES[BY_ID[line_id]["service"]]
    assert kind is not None
    assert len(site.sent(*CREATION[kind])) == 1


async def is_in_doubt(line_id: str) -> None:
    error, site = await refused(line_id)
    assert handling_of(error) == "reconcile_then_retry"
    kind = SERVICES[BY_ID[line_id]["service"]]
    assert kind is not None
    assert len(site.sent(*CREATION[kind])) == 1


async def is_taken(line_id: str) -> None:
    placed, _ = await published(line_id)
    assert placed.remote_id


async def refuses_the_content(line_id: str) -> None:
    error, _ = await refused(line_id)
    assert (error.fault, handling_of(error)) == (Fault.REFUSED, "refuse_content")


async def wp_404_plain_permalinks(line_id: str) -> None:
    found = httpx.Response(200, json=[])
    site = good(SiteKind.WORDPRESS).first("GET", "/wp-json/", lines_reply(line_id)).first("GET", "rest_route", found)
    async with site.client() as http:
        await publisher(SiteKind.WORDPRESS, http).publish(POST, call())
    assert site.sent("POST", "rest_route=%2Fwp%2Fv2%2Fposts")


async def wp_503_maintenance(line_id: str) -> None:
    error, _ = await refused(line_id)
    assert (error.fault, error.delay) == (Fault.OVERLOADED, timedelta(minutes=10))
    assert handling_of(error) == BY_ID[line_id]["correct_handling"]


async def wp_future(line_id: str) -> None:
    placed, _ = await published(line_id)
    assert not placed.confirmed


async def wp_missed_schedule(line_id: str) -> None:
    """Polled by the reconciler's look-ups as long as it is not public."""
    standing = json.loads(lines_reply(line_id).content) | {"content": wordpress_row()["content"]}
    site = good(SiteKind.WORDPRESS).first("GET", "posts", httpx.Response(200, json=[standing]))
    async with site.client() as http:
        found = await publisher(SiteKind.WORDPRESS, http).look_up(POST, call())
    assert found is not None
    assert not found.confirmed


async def wp_featured_invalid(line_id: str) -> None:
    placed, site = await published(line_id, httpx.Response(201, json=wordpress_row()))
    first, second = (json.loads(one.content) for one in site.sent("POST", "wp/v2/posts"))
    assert ("featured_media" in first, "featured_media" in second) == (True, False)
    assert placed.notes[0].startswith("without its picture")


async def refuses_the_picture(line_id: str) -> None:
    """Never tried again, and the article appears without it."""
    site = good(SiteKind.WORDPRESS).first("POST", "media", lines_reply(line_id))
    async with site.client() as http:
        placed = await publisher(SiteKind.WORDPRESS, http).publish(POST, call())
    assert len(site.sent("POST", "media")) == 1
    assert placed.notes[0].startswith("without its picture")


async def renews_the_token_once(line_id: str) -> None:
    kind, site = creating(line_id)
    created = {SiteKind.GHOST: good(kind).rules[2][2][0], SiteKind.WECHAT: httpx.Response(200, json={"media_id": "m"})}
    answer = created[kind]
    assert isinstance(answer, httpx.Response)
    placed, site = await published(line_id, answer)
    assert placed.remote_id
    assert len(site.sent(*CREATION[kind])) == 2
    error, site = await refused(line_id)
    assert (error.fault, error.remedy) == (Fault.UNAUTHORIZED, Remedy.REFRESH_TOKEN)
    assert len(site.sent(*CREATION[kind])) == 2


async def halo_400_duplicate(line_id: str) -> None:
    """Our earlier attempt: it is read, written anew and published under the same name."""
    placed, site = await published(line_id)
    assert placed.confirmed
    assert [one.url.path.rpartition("/")[2] for one in site.sent("PUT", "posts")][-1] == "publish"


async def halo_429(line_id: str) -> None:
    error, _ = await refused(line_id)
    assert (error.fault, error.delay) == (Fault.RATE_LIMITED, None)
    assert handling_of(error) == "retry_backoff"


async def wx_45009(line_id: str) -> None:
    error, _ = await refused(line_id)
    assert handling_of(error) == "reschedule:next_day"
    assert error.delay is not None
    assert timedelta(0) < error.delay <= timedelta(hours=24)


async def wx_40007(line_id: str) -> None:
    placed, site = await published(line_id, httpx.Response(200, json={"media_id": "m2"}))
    assert placed.remote_id == "m2"
    assert len(site.sent("POST", "add_material")) == 2


async def wx_publish_failed(line_id: str) -> None:
    site = good(SiteKind.WECHAT).first("POST", "freepublish/get", lines_reply(line_id))
    async with site.client() as http:
        account = publisher(SiteKind.WECHAT, http)
        assert isinstance(account, WeChat)
        with pytest.raises(ChannelError) as raised:
            await account.released("2247483655", call())
    assert handling_of(raised.value) == "fail_permanent"


async def in_202(line_id: str) -> None:
    site = Scripted([("POST", "indexnow", [lines_reply(line_id)])])
    async with site.client() as http:
        pinged = await IndexNow(BASE, "a1b2c3d4e5f6", Wire(http, "site")).ping([f"{BASE}/t/"], call())
    assert "repeat the ping later" in pinged.note


async def in_403(line_id: str) -> None:
    site = Scripted([("POST", "indexnow", [lines_reply(line_id)])])
    async with site.client() as http:
        with pytest.raises(ChannelError, match=r"a1b2c3d4e5f6\.txt") as raised:
            await IndexNow(BASE, "a1b2c3d4e5f6", Wire(http, "site")).ping([f"{BASE}/t/"], call())
    assert handling_of(raised.value) == "fail_permanent"


async def wh_3xx(line_id: str) -> None:
    error, site = await refused(line_id)
    assert handling_of(error) == "retry_backoff"
    assert "https://other.example/hook" in error.message
    assert [one.url.host for one in site.requests] == ["site.example"]


async def wh_502(line_id: str) -> None:
    """In doubt, so looked up first; the repeat has the same id, a later timestamp and its own signature."""
    early, late = datetime(2026, 11, 29, 12, tzinfo=UTC), datetime(2026, 11, 29, 12, 5, tzinfo=UTC)
    moments = iter([early, early, late, late])
    _, site = creating(line_id, httpx.Response(202))
    async with site.client() as http:
        hook = publisher(SiteKind.WEBHOOK, http)
        assert isinstance(hook, WebhookSite)
        hook._now = lambda: next(moments)
        with pytest.raises(ChannelError) as raised:
            await hook.publish(POST, call())
        assert raised.value.fault is Fault.UNKNOWN
        await hook.publish(POST, call())
    first, second = site.sent("POST", BASE)
    assert first.headers["webhook-id"] == second.headers["webhook-id"] == POST.marker
    assert first.headers["webhook-signature"] != second.headers["webhook-signature"]
    verify([WEBHOOK_SECRET], second.headers, second.content, late)


async def wh_dup_callback(line_id: str) -> None:
    """Repeats have the same event id; among several signatures one that fits is enough."""
    line = BY_ID[line_id]
    body, now = line["body"].encode(), datetime.fromtimestamp(1674087231, UTC)
    genuine = signed_headers(WEBHOOK_SECRET, "msg_1", now, body)["webhook-signature"]
    headers = line["headers"] | {"webhook-signature": f"{line['headers']['webhook-signature']} {genuine}"}
    async with Scripted().client() as http:
        hook = publisher(SiteKind.WEBHOOK, http)
        assert isinstance(hook, WebhookSite)
        heard = [hook.read_callback(headers, body, now) for _ in range(2)]
    assert heard[0] == heard[1]
    assert (heard[0].event_id, heard[0].type) == ("msg_1", "post.published")


HANDLED: dict[str, Callable[[str], Awaitable[None]]] = {
    "wp-401-header-stripped": fails_for_good,
    "wp-403-waf-html": fails_for_good,
    "wp-waf-block-comment": fails_for_good,
    "wp-bom": is_taken,
    "wp-301-post-to-get": fails_for_good,
    "wp-404-plain-permalinks": wp_404_plain_permalinks,
    "wp-503-maintenance": wp_503_maintenance,
    "wp-500-fatal": is_in_doubt,
    "wp-timeout-after-create": is_in_doubt,
    "wp-draft-slug-dup": is_taken,
    "wp-future": wp_future,
    "wp-missed-schedule": wp_missed_schedule,
    "wp-media-sideload-500": refuses_the_picture,
    "wp-media-envelope": refuses_the_picture,
    "wp-featured-invalid": wp_featured_invalid,
    "wp-empty-content": fails_for_good,
    "gh-401-jwt": renews_the_token_once,
    "halo-400-duplicate": halo_400_duplicate,
    "halo-429": halo_429,
    "wx-40001": renews_the_token_once,
    "wx-40164": fails_for_good,
    "wx-45009": wx_45009,
    "wx-40007": wx_40007,
    "wx-45166": refuses_the_content,
    "wx-publish-failed": wx_publish_failed,
    "wx-48001": fails_for_good,
    "in-202": in_202,
    "in-403": in_403,
    "wh-3xx": wh_3xx,
    "wh-502": wh_502,
    "wh-dup-callback": wh_dup_callback,
}


@pytest.mark.parametrize("line_id", [line["id"] for line in LINES if line["service"] in SERVICES])
async def test_the_publisher_handles_the_line_as_it_says(line_id: str) -> None:
    await HANDLED[line_id](line_id)


@pytest.mark.parametrize("kind", [SiteKind.WORDPRESS, SiteKind.GHOST, SiteKind.HALO, SiteKind.WECHAT])
async def test_a_body_that_is_not_what_it_is_declared_to_be_leaves_the_post_in_doubt(kind: SiteKind) -> None:
    """Line gz-misdeclared: it was read after the post had been made."""
    site = good(kind).first(*CREATION[kind], lambda: raw_reply("gz-misdeclared"))
    async with site.client() as http:
        with pytest.raises(ChannelError) as raised:
            await publisher(kind, http).publish(POST, call())
    assert raised.value.fault is Fault.UNKNOWN


@pytest.mark.parametrize("kind", CREATION)
async def test_only_silence_after_sending_is_in_doubt(kind: SiteKind) -> None:
    for silence, fault in ((httpx.ReadError("reset"), Fault.UNKNOWN), (httpx.ConnectError("no"), Fault.UNAVAILABLE)):
        site = good(kind).first(*CREATION[kind], silence)
        async with site.client() as http:
            with pytest.raises(ChannelError) as raised:
                await publisher(kind, http).publish(POST, call())
        assert raised.value.fault is fault
