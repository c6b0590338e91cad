"""Handing an article to a webhook site, and asking it what became of it."""

import base64
import json
from datetime import UTC, datetime

import httpx
import pytest

from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.ports import PictureFile, Placed, Post, Undecidable
from citeloop.channels.publishers.webhook import WebhookSite
from citeloop.channels.signing import verify
from citeloop.channels.wire import Wire
from citeloop.models.channel import SiteKind, SiteSpec
from tests.channels.settings import call
from tests.channels.test_wordpress import lines_reply

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
SECRET = "whsec_" + base64.b64encode(b"a" * 32).decode()
SITE = SiteSpec(name="hook", kind=SiteKind.WEBHOOK, base_url="https://site.example/hook", secret_env="HOOK_SECRET")
POST = Post(
    marker="m-1234567890", slug="tea", title="茶", html="<p>Tea.</p>", callback_url="https://us.example/cb/token"
)
PICTURE = PictureFile(data=b"\x89PNG", media_type="image/png", width=1, height=1)


class Receiver:
    def __init__(self, answer: httpx.Response | Exception) -> None:
        self.answer = answer
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def run(self, verb: str, post: Post = POST, secret: str = SECRET) -> Placed | None:
        async with httpx.AsyncClient(transport=httpx.MockTransport(self)) as http:
            site = WebhookSite(SITE, secret, Wire(http, "hook", secrets=(secret,)), lambda: NOW)
            if verb == "publish":
                return await site.publish(post, call())
            return await site.look_up(post, call())


async def failed(answer: httpx.Response | Exception, verb: str = "publish") -> ChannelError:
    with pytest.raises(ChannelError) as raised:
        await Receiver(answer).run(verb)
    return raised.value


async def test_an_accepted_article_waits_for_its_callback() -> None:
    receiver = Receiver(httpx.Response(202, json={"remote_id": "41"}))
    assert await receiver.run("publish") == Placed(remote_id="41", confirmed=False)


async def test_acceptance_without_a_body_is_acceptance() -> None:
    assert await Receiver(httpx.Response(204)).run("publish") == Placed(remote_id="m-1234567890", confirmed=False)


async def test_the_delivery_is_signed_under_the_marker_and_says_everything() -> None:
    receiver = Receiver(httpx.Response(202))
    await receiver.run("publish", POST.model_copy(update={"picture": PICTURE, "picture_alt": "a cup"}))
    (request,) = receiver.requests
    assert verify([SECRET], request.headers, request.content, NOW) == "m-1234567890"
    payload = json.loads(request.content)
    assert payload["type"] == "article.publish"
    assert payload["timestamp"] == "2026-11-29T12:00:00+00:00"
    assert payload["data"] == {
        "publication_id": "tenant/article/generate/0",
        "marker": "m-1234567890",
        "title": "茶",
        "slug": "tea",
        "html": "<p>Tea.</p>",
        "excerpt": "",
        "locale": "en",
        "callback_url": "https://us.example/cb/token",
        "picture": {"media_type": "image/png", "base64": "iVBORw==", "alt": "a cup"},
    }


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (lines_reply("wh-3xx"), Fault.INVALID),
        (lines_reply("wh-502"), Fault.UNKNOWN),
        (httpx.Response(500), Fault.UNKNOWN),
        (httpx.ReadError("reset"), Fault.UNKNOWN),
        (httpx.ReadTimeout("slow"), Fault.UNKNOWN),
        (httpx.ConnectError("refused"), Fault.UNAVAILABLE),
        (httpx.Response(401), Fault.UNAUTHORIZED),
        (httpx.Response(410), Fault.INVALID),
        (httpx.Response(422, json={"message": "no title"}), Fault.INVALID),
        (httpx.Response(429, headers={"retry-after": "7"}), Fault.RATE_LIMITED),
    ],
    ids=["wh-3xx", "wh-502", "500", "reset", "timeout", "refused", "401", "410", "422", "429"],
)
async def test_only_a_reply_that_leaves_it_open_is_unknown(answer: httpx.Response | Exception, fault: Fault) -> None:
    assert (await failed(answer)).fault is fault


async def test_a_look_up_is_signed_and_finds_the_page() -> None:
    receiver = Receiver(httpx.Response(200, json={"remote_id": "41", "url": "https://site.example/41"}))
    assert await receiver.run("look_up") == Placed(remote_id="41", url="https://site.example/41", confirmed=True)
    (request,) = receiver.requests
    assert str(request.url) == "https://site.example/hook/lookup?marker=m-1234567890"
    assert verify([SECRET], request.headers, b"", NOW)


@pytest.mark.parametrize(
    "answer", [httpx.Response(404, json={"error": "none"}), httpx.Response(404), httpx.Response(200, json={})]
)
async def test_a_marker_that_the_site_does_not_know_is_none(answer: httpx.Response) -> None:
    assert await Receiver(answer).run("look_up") is None


@pytest.mark.parametrize(
    "answer", [httpx.Response(405), httpx.Response(501), httpx.Response(404, html="<html>Not found</html>")]
)
async def test_a_site_without_a_look_up_is_undecidable(answer: httpx.Response) -> None:
    with pytest.raises(Undecidable):
        await Receiver(answer).run("look_up")


async def test_a_failed_look_up_says_nothing_about_the_page() -> None:
    assert (await failed(httpx.Response(500), "look_up")).fault is Fault.UNAVAILABLE
    assert (await failed(httpx.ReadError("reset"), "look_up")).fault is Fault.UNAVAILABLE


async def test_a_secret_that_is_none_names_its_variable() -> None:
    with pytest.raises(ChannelError, match="HOOK_SECRET") as raised:
        await Receiver(httpx.Response(202)).run("publish", secret="not a secret")
    assert raised.value.fault is Fault.UNAUTHORIZED
