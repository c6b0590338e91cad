"""Handing an article to a webhook site, and asking it what became of it."""

import base64
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import httpx
import pytest

from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.ports import Heard, PictureFile, Placed, Post, SiteReport, Undecidable
from citeloop.channels.publishers.webhook import WebhookSite
from citeloop.channels.signing import SignatureError, signed_headers, verify
from citeloop.channels.wire import Wire
from citeloop.models.channel import SiteKind, SiteSpec
from tests.channels.publishers.lines import lines_reply
from tests.channels.settings import call

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
SECRET = "whsec_" + base64.b64encode(b"a" * 32).decode()
SITE = SiteSpec(name="hook", kind=SiteKind.WEBHOOK, base_url="https://site.example/hook", secret_env="HOOK_SECRET")
POST = Post(
    marker="m-1234567890", slug="tea", title="茶", html="<p>Tea.</p>", callback_url="https://us.example/cb/token"
)
T = TypeVar("T")
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

    async def use(self, work: Callable[[WebhookSite], Awaitable[T]]) -> T:
        async with httpx.AsyncClient(transport=httpx.MockTransport(self)) as http:
            return await work(WebhookSite(SITE, SECRET, Wire(http, "hook", secrets=(SECRET,)), lambda: NOW))

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
        (lines_reply("wh-3xx"), Fault.UNAVAILABLE),
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


async def test_what_a_post_has_besides_is_told_and_what_it_lacks_is_left_out() -> None:
    receiver = Receiver(httpx.Response(202))
    credited = PICTURE.model_copy(update={"credit": "A. Photographer"})
    extras = {"tags": ("tea",), "canonical_url": "https://o.example", "json_ld": "{}", "picture": credited}
    await receiver.run("publish", POST.model_copy(update=extras))
    data = json.loads(receiver.requests[0].content)["data"]
    assert (data["tags"], data["canonical_url"], data["json_ld"]) == (["tea"], "https://o.example", "{}")
    assert data["picture"]["credit"] == "A. Photographer"
    assert "categories" not in data


async def test_a_correction_is_an_event_with_an_id_of_its_own_that_its_repeat_keeps() -> None:
    receiver = Receiver(httpx.Response(202, json={"remote_id": "41", "url": "https://site.example/41"}))
    corrected = POST.model_copy(update={"html": "<p>Corrected.</p>"})

    async def correct(site: WebhookSite) -> Placed:
        await site.update(POST, "41", call())
        await site.update(corrected, "41", call())
        return await site.update(corrected, "41", call())

    placed = await receiver.use(correct)
    assert placed == Placed(remote_id="41", url="https://site.example/41", confirmed=True)
    ids = [verify([SECRET], one.headers, one.content, NOW) for one in receiver.requests]
    assert len(set(ids)) == 2
    assert ids[1] == ids[2]
    assert all(one.startswith("m-1234567890.update.") for one in ids)
    assert json.loads(receiver.requests[0].content)["type"] == "article.update"


async def test_a_withdrawal_names_the_marker_and_no_text() -> None:
    receiver = Receiver(httpx.Response(200))
    await receiver.use(lambda site: site.withdraw(POST, "41", call()))
    payload = json.loads(receiver.requests[0].content)
    assert payload["type"] == "article.withdraw"
    assert payload["data"] == {"publication_id": "tenant/article/generate/0", "marker": "m-1234567890"}


async def test_what_the_site_does_not_know_is_withdrawn_already_and_cannot_be_corrected() -> None:
    receiver = Receiver(httpx.Response(404, json={"error": "no page with this marker"}))
    await receiver.use(lambda site: site.withdraw(POST, "41", call()))
    with pytest.raises(ChannelError, match="publish it anew") as raised:
        await receiver.use(lambda site: site.update(POST, "41", call()))
    assert raised.value.fault is Fault.INVALID


@pytest.mark.parametrize(
    ("answer", "ok", "words"),
    [
        (httpx.Response(404, json={"error": "none"}), True, ""),
        (httpx.Response(405), True, "a person has to decide"),
        (httpx.Response(401, json={"error": "signature"}), False, "the same secret"),
        (httpx.Response(500), False, "500"),
        (httpx.ConnectError("refused"), False, "cannot reach"),
    ],
)
async def test_a_check_asks_for_a_marker_that_cannot_exist(
    answer: httpx.Response | Exception, ok: bool, words: str
) -> None:
    report: SiteReport = await Receiver(answer).use(lambda site: site.check(call()))
    assert report.ok is ok
    assert words in " ".join((*report.problems, *report.notes))


async def heard(headers: dict[str, str], body: bytes, now: datetime = NOW) -> Heard:
    async def read(site: WebhookSite) -> Heard:
        return site.read_callback(headers, body, now)

    return await Receiver(httpx.Response(200)).use(read)


CALLBACK = json.dumps(
    {"type": "article.published", "data": {"remote_id": "41", "url": "https://site.example/41", "more": 1}}
).encode()


async def test_a_genuine_callback_is_heard() -> None:
    headers = signed_headers(SECRET, "msg_7", NOW, CALLBACK)
    assert await heard(headers, CALLBACK) == Heard(
        event_id="msg_7", type="article.published", remote_id="41", url="https://site.example/41"
    )


@pytest.mark.parametrize(
    ("change", "body", "later"),
    [
        ({"webhook-signature": "v1,AAAA"}, CALLBACK, timedelta(0)),
        ({"webhook-id": "msg_8"}, CALLBACK, timedelta(0)),
        ({}, CALLBACK + b" ", timedelta(0)),
        ({}, CALLBACK, timedelta(minutes=6)),
        ({}, CALLBACK, timedelta(minutes=-6)),
        ({"webhook-timestamp": ""}, CALLBACK, timedelta(0)),
    ],
    ids=["forged", "another id", "another body", "old", "from the future", "no timestamp"],
)
async def test_a_callback_that_is_not_genuine_is_not_believed(
    change: dict[str, str], body: bytes, later: timedelta
) -> None:
    headers = signed_headers(SECRET, "msg_7", NOW, CALLBACK) | change
    with pytest.raises(SignatureError):
        await heard(headers, body, NOW + later)


async def test_a_genuine_callback_that_is_no_json_is_not_believed_either() -> None:
    with pytest.raises(SignatureError, match="no JSON"):
        await heard(signed_headers(SECRET, "msg_7", NOW, b"hello"), b"hello")
