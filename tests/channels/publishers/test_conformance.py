"""The conformance suite before every kind of site: WordPress and webhook in the sandbox, folders with real git, and
Ghost, Halo and WeChat as servers on loopback that enforce their documented rules."""

import base64
import contextlib
import html
import re
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import httpx
import pytest

from citeloop.channels.ports import Ability
from citeloop.channels.publishers.ghost import Ghost
from citeloop.channels.publishers.halo import Halo
from citeloop.channels.publishers.webhook import WebhookSite
from citeloop.channels.publishers.wechat import WeChat
from citeloop.channels.publishers.wordpress import WordPress
from citeloop.channels.wire import Wire
from citeloop.models.channel import Generator, SiteKind, SiteSpec
from tests.channels.publishers.conformance import POST, Conformance, Subject
from tests.channels.publishers.projects import Project
from tests.channels.publishers.proxy import Chosen, Proxy, proxied
from tests.channels.publishers.servers import ghost, halo, wechat
from tests.channels.publishers.servers.serving import serve
from tests.channels.settings import call
from tests.fixtures_sandbox import Sandbox

_ADDRESS = re.compile(r'<li><a href="([^"]+)">')


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(trust_env=False, timeout=None) as client:
        yield client


def losing(proxy: Proxy, chosen: Chosen) -> Callable[[], contextlib.AbstractContextManager[None]]:
    @contextlib.contextmanager
    def lossy() -> Iterator[None]:
        with proxy.losing(chosen):
            yield
        assert proxy.lost, "no reply was lost"

    return lossy


async def pages(http: httpx.AsyncClient, front: str) -> list[str]:
    """Every page that the site's front page links to."""
    links = _ADDRESS.findall((await http.get(front)).text)
    return [html.unescape((await http.get(html.unescape(link))).text) for link in links]


class TestWordPress(Conformance):
    shows_credit = False  # the sandbox's theme shows no captions; the real one is tested in tests/journeys

    @pytest.fixture
    async def subject(self, sandbox: Sandbox, http: httpx.AsyncClient) -> AsyncIterator[Subject]:
        password = "sandbox app pass"

        def blog(url: str, secret: str = password) -> WordPress:
            site = SiteSpec(name="blog", kind=SiteKind.WORDPRESS, base_url=url)
            login = base64.b64encode(f"citeloop:{secret}".encode()).decode()
            return WordPress(site, "citeloop", secret, Wire(http, "blog", secrets=(secret, login)))

        async with proxied(f"{sandbox.url}/blog") as proxy:
            yield Subject(
                publisher=blog(proxy.url),
                wrong=blog(proxy.url, "another pass word"),
                shown=lambda: pages(http, f"{sandbox.url}/blog/"),
                lossy=losing(proxy, lambda one: one.method == "POST" and one.target.endswith("/posts")),
                secrets=(password, "another pass word", "Y2l0ZWxvb3A6c2FuZGJveCBhcHAgcGFzcw=="),
                elsewhere=blog,
            )


class TestWebhook(Conformance):
    shows_credit = False

    @pytest.fixture
    async def subject(self, sandbox: Sandbox, http: httpx.AsyncClient) -> AsyncIterator[Subject]:
        secret = "whsec_Y2l0ZWxvb3Agc2FuZGJveCwgMzIgYnl0ZXMgbG9uZyE="
        other = "whsec_YW5vdGhlciBzZWNyZXQgb2YgMzIgYnl0ZXMsIGxvbmc="

        def hook(url: str, key: str = secret) -> WebhookSite:
            site = SiteSpec(name="hook", kind=SiteKind.WEBHOOK, base_url=url)
            return WebhookSite(site, key, Wire(http, "hook", secrets=(key,)))

        async with proxied(f"{sandbox.url}/hook") as proxy:
            yield Subject(
                publisher=hook(proxy.url),
                wrong=hook(proxy.url, other),
                shown=lambda: pages(http, f"{sandbox.url}/hook/"),
                lossy=losing(proxy, lambda one: one.method == "POST"),
                secrets=(secret, other),
                elsewhere=hook,
            )

    async def test_a_withdrawn_post_is_hidden_and_can_be_published_anew(self, subject: Subject) -> None:
        """The sandbox, like any receiver, drops the repeat of a publication under the same id: it stays withdrawn."""
        placed = await subject.publisher.publish(POST, call())
        for _ in ("once", "and again, which changes nothing"):
            await subject.publisher.withdraw(POST, placed.remote_id, call())
            assert await subject.shown() == []
            assert await subject.publisher.look_up(POST, call()) is None


class OfFolders(Conformance):
    generator: Generator
    git: bool = True
    push: bool = False
    adopts = False

    @pytest.fixture
    async def subject(self, tmp_path: Path) -> Subject:
        project = Project(tmp_path, self.generator, git=self.git, push=self.push)
        return Subject(
            publisher=project.publisher(),
            wrong=project.publisher(folder=str(tmp_path / "nowhere")),
            shown=project.shown,
            lossy=project.lossy,
        )


class TestHugo(OfFolders):
    generator = Generator.HUGO


class TestJekyll(OfFolders):
    generator = Generator.JEKYLL


class TestAstro(OfFolders):
    generator = Generator.ASTRO


class TestPlainFolder(OfFolders):
    generator = Generator.HUGO
    git = False


class TestPushedFolder(OfFolders):
    generator = Generator.JEKYLL
    push = True


class TestGhost(Conformance):
    @pytest.fixture
    async def subject(self, http: httpx.AsyncClient) -> AsyncIterator[Subject]:
        server = ghost.GhostServer()
        wrong = f"{ghost.KEY_ID}:{'0' * 64}"

        def site(url: str, key: str = ghost.KEY) -> Ghost:
            spec = SiteSpec(name="ghost", kind=SiteKind.GHOST, base_url=url, secret_env="GHOST_KEY")
            return Ghost(spec, key, Wire(http, "ghost", secrets=(key, key.partition(":")[2])))

        async def shown() -> list[str]:
            return [str(post) for post in server.posts.values() if post["status"] == "published"]

        async with serve(server.app()) as url, proxied(url) as proxy:
            yield Subject(
                publisher=site(proxy.url),
                wrong=site(proxy.url, wrong),
                shown=shown,
                lossy=losing(proxy, lambda one: one.method == "POST" and "/posts/" in one.target),
                secrets=(ghost.SECRET, "0" * 64),
                elsewhere=site,
            )


class TestHalo(Conformance):
    @pytest.fixture
    async def subject(self, http: httpx.AsyncClient) -> AsyncIterator[Subject]:
        server = halo.HaloServer()

        def site(url: str, token: str = halo.TOKEN) -> Halo:
            spec = SiteSpec(name="halo", kind=SiteKind.HALO, base_url=url, secret_env="HALO_TOKEN")
            return Halo(spec, token, Wire(http, "halo", secrets=(token,)))

        async def shown() -> list[str]:
            return [f"{server.posts[name]['spec']} {html.unescape(text)}" for name, text in server.released.items()]

        async with serve(server.app()) as url, proxied(url) as proxy:
            yield Subject(
                publisher=site(proxy.url),
                wrong=site(proxy.url, "pat_another0123456789"),
                shown=shown,
                lossy=losing(proxy, lambda one: one.method == "PUT" and one.target.endswith("/publish")),
                secrets=(halo.TOKEN, "pat_another0123456789"),
                elsewhere=site,
            )


class TestHaloDrafts(TestHalo):
    """The other reply that can be lost: that to the creation. Nothing is public yet, and publishing again finishes."""

    adopts = False

    @pytest.fixture
    async def subject(self, http: httpx.AsyncClient) -> AsyncIterator[Subject]:
        server = halo.HaloServer()

        async def shown() -> list[str]:
            return [f"{server.posts[name]['spec']} {html.unescape(text)}" for name, text in server.released.items()]

        async with serve(server.app()) as url, proxied(url) as proxy:
            spec = SiteSpec(name="halo", kind=SiteKind.HALO, base_url=proxy.url, secret_env="HALO_TOKEN")
            wire = Wire(http, "halo", secrets=(halo.TOKEN,))
            yield Subject(
                publisher=Halo(spec, halo.TOKEN, wire),
                wrong=Halo(spec, "pat_another0123456789", Wire(http, "halo", secrets=("pat_another0123456789",))),
                shown=shown,
                lossy=losing(proxy, lambda one: one.method == "POST" and one.target.endswith("/posts")),
            )


class TestWeChat(Conformance):
    @pytest.fixture
    async def subject(self, http: httpx.AsyncClient) -> AsyncIterator[Subject]:
        server = wechat.WeChatServer()

        def account(url: str, secret: str = wechat.SECRET) -> WeChat:
            spec = SiteSpec(name="wx", kind=SiteKind.WECHAT, base_url=url, secret_env="WX_SECRET")
            return WeChat(spec, wechat.APP_ID, secret, Wire(http, "wx", secrets=(secret,)))

        async def shown() -> list[str]:
            return [f"{draft['title']} {html.unescape(draft['content'])}" for draft in server.drafts.values()]

        async with serve(server.app()) as url, proxied(url) as proxy:
            yield Subject(
                publisher=account(proxy.url),
                wrong=account(proxy.url, "f" * 32),
                shown=shown,
                lossy=losing(proxy, lambda one: "/draft/add" in one.target),
                secrets=(wechat.SECRET, "f" * 32),
                elsewhere=account,
            )


def test_every_kind_of_site_says_what_it_can_do_and_how_well_it_is_known() -> None:
    from citeloop.channels.publishers import ABILITIES, TESTED_AGAINST

    assert set(ABILITIES) == set(TESTED_AGAINST) == set(SiteKind)
    assert all({Ability.PICTURE, Ability.UPDATE, Ability.WITHDRAW} <= known for known in ABILITIES.values())
