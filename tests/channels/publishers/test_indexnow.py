"""IndexNow pings: what is sent, and what each answer means."""

import json
from datetime import timedelta

import httpx
import pytest

from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.publishers.indexnow import IndexNow, Pinged
from citeloop.channels.wire import Wire
from tests.channels.publishers.scripted import BASE, Scripted
from tests.channels.settings import call

KEY = "a1b2c3d4e5f6"


async def ping(reply: httpx.Response, *urls: str, key: str = KEY) -> tuple[Pinged, Scripted]:
    site = Scripted([("POST", "/indexnow", [reply])])
    async with site.client() as http:
        return await IndexNow(BASE, key, Wire(http, "blog")).ping(urls or (f"{BASE}/tea/",), call()), site


async def test_a_ping_names_host_key_and_addresses() -> None:
    pinged, site = await ping(httpx.Response(200), f"{BASE}/tea/", f"{BASE}/coffee/")
    assert pinged == Pinged()
    (request,) = site.requests
    assert str(request.url) == "https://api.indexnow.org/indexnow"
    assert json.loads(request.content) == {
        "host": "site.example",
        "key": KEY,
        "keyLocation": f"{BASE}/{KEY}.txt",
        "urlList": [f"{BASE}/tea/", f"{BASE}/coffee/"],
    }


async def test_a_key_that_is_still_to_be_checked_is_noted() -> None:
    pinged, _ = await ping(httpx.Response(202))
    assert f"{BASE}/{KEY}.txt" in pinged.note


@pytest.mark.parametrize(
    ("reply", "fault", "words"),
    [
        (httpx.Response(400), Fault.INVALID, "shape"),
        (httpx.Response(403), Fault.INVALID, f"{KEY}.txt"),
        (httpx.Response(405), Fault.INVALID, "no pings"),
        (httpx.Response(422), Fault.INVALID, "not those of this host"),
        (httpx.Response(429), Fault.RATE_LIMITED, "too many"),
        (httpx.Response(503, text="busy"), Fault.OVERLOADED, "503"),
        (httpx.Response(302, headers={"location": "https://x.example"}), Fault.INVALID, "x.example"),
        (httpx.Response(204), Fault.UNAVAILABLE, "204"),
    ],
    ids=lambda value: str(value.status_code) if isinstance(value, httpx.Response) else None,
)
async def test_each_answer_is_told_in_words(reply: httpx.Response, fault: Fault, words: str) -> None:
    with pytest.raises(ChannelError, match=words) as raised:
        await ping(reply)
    assert raised.value.fault is fault


async def test_too_many_pings_name_the_delay() -> None:
    with pytest.raises(ChannelError) as raised:
        await ping(httpx.Response(429, headers={"retry-after": "7"}))
    assert raised.value.delay == timedelta(seconds=7)


@pytest.mark.parametrize(
    ("urls", "key"),
    [
        (("https://other.example/tea/",), KEY),
        (tuple(f"{BASE}/{n}" for n in range(10_001)), KEY),
        ((f"{BASE}/tea/",), "short"),
        ((f"{BASE}/tea/",), "with spaces in it"),
    ],
    ids=["another host", "too many", "short key", "key"],
)
async def test_what_would_be_refused_is_not_sent(urls: tuple[str, ...], key: str) -> None:
    site = Scripted()
    async with site.client() as http:
        with pytest.raises(ChannelError) as raised:
            await IndexNow(BASE, key, Wire(http, "blog")).ping(urls, call())
    assert raised.value.fault is Fault.INVALID
    assert not site.requests
