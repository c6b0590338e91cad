"""Dialects by name, keys from the environment, and what a probe says."""

import base64
from collections.abc import AsyncIterator, Awaitable, Callable

import httpx
import pytest

from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.outside import ChannelGone, Outside
from citeloop.channels.ports import Post
from citeloop.models.channel import Catalog, ChannelSpec, Role, SiteKind, SiteSpec
from tests.channels.servers import Peer, raw_server
from tests.channels.settings import KEY, MESSAGES, call, chat_body, spec

SECRET = "whsec_" + base64.b64encode(b"a" * 32).decode()
ENVIRON = {"KEY": f" {KEY}\n", "USER": "me", "PASSWORD": "pw", "HOOK": SECRET}


def catalog(base_url: str = "http://127.0.0.1:1", *more: ChannelSpec, private: bool = True) -> Catalog:
    images = spec(base_url, name="images", roles=frozenset({Role.ILLUSTRATE}), dialect="openai_images")
    blog = SiteSpec(name="blog", kind=SiteKind.WORDPRESS, base_url=base_url, user_env="USER", secret_env="PASSWORD")
    hook = SiteSpec(name="hook", kind=SiteKind.WEBHOOK, base_url=base_url, secret_env="HOOK")
    return Catalog(channels=(spec(base_url), images, *more), sites=(blog, hook), allow_private_addresses=private)


@pytest.fixture
async def open_outside() -> AsyncIterator[Callable[..., Outside]]:
    opened: list[Outside] = []

    def build(known: Catalog, environ: dict[str, str] | None = None) -> Outside:
        opened.append(Outside(known, ENVIRON if environ is None else environ))
        return opened[-1]

    yield build
    for outside in opened:
        await outside.close()


Opener = Callable[..., Outside]


async def test_every_role_is_found_by_name(open_outside: Opener) -> None:
    outside = open_outside(catalog())
    assert outside.writer("deepseek")
    assert outside.engine("deepseek")
    assert outside.illustrator("images")
    assert outside.publisher("blog")
    assert outside.publisher("hook") is outside.publisher("hook")
    assert outside.channel("deepseek").model == "deepseek-flash"
    assert outside.site("blog").kind is SiteKind.WORDPRESS
    assert outside.signing_secret("hook") == SECRET
    assert outside.signing_secret("blog") is None


async def test_what_is_not_in_the_catalogue_is_gone(open_outside: Opener) -> None:
    outside = open_outside(catalog())
    for ask in (outside.writer, outside.engine, outside.illustrator, outside.channel, outside.site):
        with pytest.raises(ChannelGone, match="nobody is not in"):
            ask("nobody")
    with pytest.raises(ChannelGone, match="images does not write"):
        outside.writer("images")


@pytest.mark.parametrize("value", [{}, {"KEY": "  "}, {"KEY": "sk-\u4e2d"}])
async def test_a_key_that_is_missing_or_none_names_its_variable(open_outside: Opener, value: dict[str, str]) -> None:
    with pytest.raises(ChannelError, match="KEY") as raised:
        open_outside(catalog(), value).writer("deepseek")
    assert raised.value.fault is Fault.UNAUTHORIZED


async def test_a_call_goes_all_the_way_with_the_key_trimmed(open_outside: Opener) -> None:
    async def answers(peer: Peer) -> None:
        await peer.reply(200, chat_body())

    async with raw_server(answers) as server:
        done = await open_outside(catalog(server.url)).writer("deepseek").write(MESSAGES, call())
        assert done.text == "hello"
        assert f"bearer {KEY}\r\n" in server.peers[0].head.lower()


async def test_a_site_on_a_private_address_is_refused_unless_that_is_allowed(open_outside: Opener) -> None:
    async def answers(peer: Peer) -> None:
        await peer.reply(200, b"[]")

    post = Post(marker="m-1", slug="s", title="T", html="<p>x</p>")
    async with raw_server(answers) as server:
        with pytest.raises(ChannelError, match="private address"):
            await open_outside(catalog(server.url, private=False)).publisher("blog").look_up(post, call())
        assert await open_outside(catalog(server.url)).publisher("blog").look_up(post, call()) is None


def _saying(status: int, body: bytes = b"{}") -> Callable[[Peer], Awaitable[None]]:
    async def behaviour(peer: Peer) -> None:
        await peer.reply(status, body)

    return behaviour


@pytest.mark.parametrize("status", [200, 404, 405])
async def test_a_channel_that_answers_is_fine(open_outside: Opener, status: int) -> None:
    async with raw_server(_saying(status, b'{"data":[]}')) as server:
        probe = await open_outside(catalog(server.url)).probe("deepseek")
        assert probe.ok
        assert server.peers[0].head.startswith("GET /models HTTP/1.1")


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (401, b"{}", "refuses the key (HTTP 401); check KEY"),
        (403, b"{}", "refuses the key (HTTP 403); check KEY"),
        (402, b'{"error":{"message":"Insufficient Balance"}}', "Insufficient Balance"),
        (503, b"busy", "HTTP 503"),
    ],
)
async def test_a_probe_explains_what_is_wrong(open_outside: Opener, status: int, body: bytes, told: str) -> None:
    async with raw_server(_saying(status, body)) as server:
        probe = await open_outside(catalog(server.url)).probe("deepseek")
    assert not probe.ok
    assert told in probe.problem
    assert "\n" not in probe.problem


async def test_a_probe_of_a_place_that_cannot_be_reached_says_so(open_outside: Opener) -> None:
    probe = await open_outside(catalog()).probe("deepseek")
    assert not probe.ok
    assert "cannot reach http://127.0.0.1:1" in probe.problem


async def test_a_probe_without_a_key_names_the_variable_and_asks_nobody(open_outside: Opener) -> None:
    probe = await open_outside(catalog(), {}).probe("deepseek")
    assert probe.problem == "deepseek: KEY is not set; export it, start again, then `citeloop channels resume deepseek`"


async def test_a_client_that_was_passed_in_is_left_open() -> None:
    async with httpx.AsyncClient() as http:
        await Outside(catalog(), ENVIRON, http).close()
        assert not http.is_closed
