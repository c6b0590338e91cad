"""Halo: a name of our own choice, and two requests of which either may be lost."""

from collections.abc import AsyncIterator

import httpx
import pytest

from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.publishers.halo import Halo, post_name
from citeloop.channels.wire import Wire
from citeloop.models.channel import SiteKind, SiteSpec
from tests.channels.publishers.conformance import MARKER, POST
from tests.channels.publishers.servers.halo import TOKEN, HaloServer
from tests.channels.publishers.servers.serving import serve
from tests.channels.settings import call

Place = tuple[HaloServer, Halo]


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    server = HaloServer()
    async with serve(server.app()) as url, httpx.AsyncClient(trust_env=False, timeout=None) as http:
        spec = SiteSpec(name="halo", kind=SiteKind.HALO, base_url=url, secret_env="HALO_TOKEN")
        yield server, Halo(spec, TOKEN, Wire(http, "halo", secrets=(TOKEN,)))


def test_the_name_of_an_article_is_the_same_in_every_process() -> None:
    assert post_name(MARKER) == post_name(MARKER) != post_name("citeloop-another")
    assert len(post_name(MARKER)) == 36


async def test_creating_is_idempotent_and_the_picture_is_uploaded_once(place: Place) -> None:
    server, halo = place
    first = await halo.publish(POST, call())
    second = await halo.publish(POST, call())
    assert first.remote_id == second.remote_id == post_name(MARKER)
    assert (len(server.posts), len(server.attachments)) == (1, 1)


async def test_what_the_sites_people_set_survives_a_correction(place: Place) -> None:
    server, halo = place
    placed = await halo.publish(POST, call())
    spec = server.posts[placed.remote_id]["spec"]
    spec |= {"pinned": True, "slug": "moved-by-hand", "tags": ["tag-1"]}
    await halo.update(POST.model_copy(update={"title": "Corrected"}), placed.remote_id, call())
    after = server.posts[placed.remote_id]["spec"]
    assert (after["title"], after["pinned"], after["slug"], after["tags"]) == (
        "Corrected", True, "moved-by-hand", ["tag-1"],
    )  # fmt: skip
    assert after["publish"] is True


async def test_a_rate_limit_in_the_words_of_a_quota_is_a_rate_limit(place: Place) -> None:
    server, halo = place
    server.limit_next = True
    with pytest.raises(ChannelError) as raised:
        await halo.publish(POST.model_copy(update={"picture": None}), call())
    assert raised.value.fault is Fault.RATE_LIMITED
    assert not server.posts


async def test_a_post_that_waits_for_approval_is_there_but_not_public(place: Place) -> None:
    server, halo = place
    placed = await halo.publish(POST, call())
    server.posts[placed.remote_id]["status"] = {"phase": "PENDING_APPROVAL"}
    found = await halo.look_up(POST, call())
    assert found is not None
    assert not found.confirmed


async def test_a_correction_of_what_is_gone_is_refused(place: Place) -> None:
    with pytest.raises(ChannelError, match="publish it anew"):
        await place[1].update(POST, post_name(MARKER), call())
