"""WeChat drafts: one token for all, pictures of its own, and what its people did in the console."""

import asyncio
import logging
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import httpx
import pytest

from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.outside import Outside
from citeloop.channels.ports import Post, Undecidable
from citeloop.channels.publishers.wechat import WeChat
from citeloop.channels.wire import Wire
from citeloop.models.channel import Catalog, SiteKind, SiteSpec
from tests.channels.publishers.conformance import POST
from tests.channels.publishers.servers.serving import serve
from tests.channels.publishers.servers.wechat import APP_ID, SECRET, WeChatServer
from tests.channels.settings import call

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)


class Place:
    def __init__(self, server: WeChatServer, url: str, http: httpx.AsyncClient) -> None:
        self.server = server
        self.spec = SiteSpec(name="wx", kind=SiteKind.WECHAT, base_url=url, user_env="WX_ID", secret_env="WX_SECRET")
        self._http = http

    def worker(self) -> WeChat:
        """One process's publisher."""
        return WeChat(self.spec, APP_ID, SECRET, Wire(self._http, "wx", secrets=(SECRET,)))


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    server = WeChatServer()
    async with serve(server.app()) as url, httpx.AsyncClient(trust_env=False, timeout=None) as http:
        yield Place(server, url, http)


def numbered(number: int) -> Post:
    return POST.model_copy(update={"marker": f"citeloop-{number:024}", "title": f"Tea {number}"})


async def test_workers_share_one_token_and_each_asks_for_it_once(place: Place) -> None:
    one, other = place.worker(), place.worker()
    await asyncio.gather(*(one.look_up(numbered(n), call()) for n in range(5)), other.look_up(POST, call()))
    assert (place.server.grants, place.server.asked) == (1, 2)


async def test_a_token_that_ended_early_is_renewed_once_for_all_who_found_it_so(place: Place) -> None:
    worker = place.worker()
    await worker.look_up(POST, call())
    place.server.expire()
    await asyncio.gather(*(worker.look_up(numbered(n), call()) for n in range(8)))
    assert (place.server.grants, place.server.asked) == (2, 2)


async def test_the_token_appears_in_no_log(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    environ = {"WX_ID": APP_ID, "WX_SECRET": SECRET}
    caplog.set_level(logging.INFO)
    outside = Outside(Catalog(sites=(place.spec,), allow_private_addresses=True), environ)
    await outside.publisher("wx").publish(POST, call())
    await outside.close()
    assert place.server.drafts
    assert "access_token" not in caplog.text
    assert SECRET not in caplog.text


async def test_the_draft_has_its_own_picture_and_a_permanent_cover_uploaded_once(place: Place) -> None:
    worker = place.worker()
    await worker.publish(POST, call())
    await worker.publish(numbered(1), call())
    assert len(place.server.materials) == 1
    first = next(iter(place.server.drafts.values()))
    assert "https://mmbiz.qpic.cn/" in first["content"]
    assert first["thumb_media_id"] in place.server.materials


async def test_a_cover_that_was_deleted_is_uploaded_again(place: Place) -> None:
    worker = place.worker()
    await worker.publish(POST, call())
    place.server.lose_materials()
    await worker.publish(numbered(1), call())
    assert len(place.server.drafts) == 2


async def test_pictures_of_other_sites_are_left_out_and_counted(place: Place) -> None:
    text = '<p>a</p><p><img src="https://elsewhere.example/a.png" alt="a"></p>'
    placed = await place.worker().publish(POST.model_copy(update={"html": text}), call())
    assert "without 1 pictures of other sites" in placed.notes
    (draft,) = place.server.drafts.values()
    assert "elsewhere.example" not in draft["content"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"picture": None}, "without a cover picture"),
        ({"title": "茶" * 65}, "longer than 64"),
        ({"html": f"<p>{'茶' * 20_000}</p>"}, "longer than 20000"),
    ],
    ids=["no picture", "title", "text"],
)
async def test_what_wechat_would_cut_or_refuse_is_refused_before_it_is_sent(
    place: Place, change: dict[str, object], words: str
) -> None:
    with pytest.raises(ChannelError, match=words) as raised:
        await place.worker().publish(POST.model_copy(update=change), call())
    assert raised.value.fault is Fault.INVALID
    assert not place.server.drafts


async def test_what_the_accounts_people_published_is_found_withdrawn_and_not_corrected(place: Place) -> None:
    worker = place.worker()
    draft = await worker.publish(POST, call())
    article_id = place.server.release(draft.remote_id)
    found = await worker.look_up(POST, call())
    assert found is not None
    assert found.remote_id == article_id
    with pytest.raises(ChannelError, match="withdraw it"):
        await worker.update(POST, draft.remote_id, call())
    await worker.withdraw(POST, draft.remote_id, call())
    assert not place.server.published


async def test_an_account_that_may_not_publish_by_api_can_still_be_asked_for_drafts(place: Place) -> None:
    place.server.may_publish = False
    worker = place.worker()
    assert await worker.look_up(POST, call()) is None
    await worker.publish(POST, call())
    assert await worker.look_up(POST, call()) is not None


async def test_beyond_two_hundred_drafts_absence_cannot_be_told(place: Place) -> None:
    worker = place.worker()
    await worker.publish(POST, call())
    (draft,) = place.server.drafts.values()
    for number in range(200):
        place.server.drafts[f"of_people_{number}"] = draft | {"content": "<p>by hand</p>"}
    with pytest.raises(Undecidable):
        await worker.look_up(POST, call())


async def test_a_release_is_asked_about_until_it_is_out(place: Place) -> None:
    worker = place.worker()
    draft = await worker.publish(POST, call())
    place.server.release_state = 1
    publish_id = await worker.release(draft.remote_id, call())
    assert await worker.released(publish_id, call()) is None
    place.server.release_state = 0
    await worker.release(draft.remote_id, call())
    out = await worker.released(publish_id, call())
    assert out is not None
    assert out.url.startswith("https://mp.weixin.qq.com/s/")
    assert publish_id == "2247483655"


@pytest.mark.parametrize(("state", "fault"), [(2, Fault.INVALID), (3, Fault.INVALID), (4, Fault.REFUSED)])
async def test_a_release_that_failed_says_why(place: Place, state: int, fault: Fault) -> None:
    place.server.release_state = state
    with pytest.raises(ChannelError, match="not published") as raised:
        await place.worker().released("1", call())
    assert raised.value.fault is fault


async def test_a_busy_wechat_leaves_a_draft_in_doubt_and_a_refusal_does_not(place: Place) -> None:
    for number, fault in ((-1, Fault.UNKNOWN), (45002, Fault.REFUSED), (99999, Fault.INVALID)):
        worker = place.worker()
        await worker.look_up(POST, call())
        place.server._problem = lambda *_, n=number: {"errcode": n, "errmsg": "x"}  # type: ignore[method-assign]
        with pytest.raises(ChannelError) as raised:
            await worker.publish(POST, call())
        assert raised.value.fault is fault
