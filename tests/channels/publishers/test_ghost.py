"""Ghost: tokens, markers in the head, and what happens when somebody else edits."""

import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.publishers.ghost import Ghost, admin_token
from citeloop.channels.wire import Wire
from citeloop.models.channel import SiteKind, SiteSpec
from tests.channels.publishers.conformance import MARKER, POST
from tests.channels.publishers.servers.ghost import KEY, KEY_ID, SECRET, GhostServer
from tests.channels.publishers.servers.serving import serve
from tests.channels.settings import call

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
Place = tuple[GhostServer, str, httpx.AsyncClient]


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    server = GhostServer()
    async with serve(server.app()) as url, httpx.AsyncClient(trust_env=False, timeout=None) as http:
        yield server, url, http


def site(place: Place, key: str = KEY) -> Ghost:
    _, url, http = place
    spec = SiteSpec(name="ghost", kind=SiteKind.GHOST, base_url=url, secret_env="GHOST_KEY")
    return Ghost(spec, key, Wire(http, "ghost", secrets=(key,)))


def test_a_token_is_a_jwt_of_five_minutes_signed_with_the_decoded_secret() -> None:
    header, claims, signature = admin_token(KEY, NOW).split(".")
    told = [json.loads(base64.urlsafe_b64decode(part + "==")) for part in (header, claims)]
    assert told[0] == {"alg": "HS256", "kid": KEY_ID, "typ": "JWT"}
    issued = int(NOW.timestamp())
    assert told[1] == {"iat": issued, "exp": issued + 300, "aud": "/admin/"}
    expected = hmac.new(bytes.fromhex(SECRET), f"{header}.{claims}".encode(), hashlib.sha256).digest()
    assert base64.urlsafe_b64decode(signature + "==") == expected


@pytest.mark.parametrize("key", ["", "nocolon", "id:", "id:xyz", ":abcd"])
async def test_what_is_no_key_names_its_variable_and_asks_nobody(place: Place, key: str) -> None:
    with pytest.raises(ChannelError, match="GHOST_KEY") as raised:
        await site(place, key).publish(POST, call())
    assert raised.value.fault is Fault.UNAUTHORIZED


async def test_an_expired_token_is_renewed_once_and_the_post_is_made_once(place: Place) -> None:
    server, *_ = place
    ghost = site(place)
    await ghost.look_up(POST, call())
    server.expire_next = True
    await ghost.publish(POST, call())
    assert (server.refused_tokens, len(server.posts)) == (1, 1)


async def test_a_token_is_used_again_until_a_minute_before_its_end(place: Place) -> None:
    moment = NOW
    _, url, http = place
    spec = SiteSpec(name="ghost", kind=SiteKind.GHOST, base_url=url)
    ghost = Ghost(spec, KEY, Wire(http, "ghost"), lambda: moment)
    first = ghost._current_token()
    moment = NOW + timedelta(minutes=3, seconds=59)
    assert ghost._current_token() == first
    moment = NOW + timedelta(minutes=4)
    assert ghost._current_token() != first


async def test_a_post_of_somebody_else_with_our_slug_is_neither_adopted_nor_touched(place: Place) -> None:
    server, *_ = place
    ghost = site(place)
    stranger = await ghost.publish(POST.model_copy(update={"marker": "citeloop-of-another"}), call())
    assert await ghost.look_up(POST, call()) is None
    ours = await ghost.publish(POST, call())
    assert server.posts[ours.remote_id]["slug"] == f"{POST.slug}-2"
    found = await ghost.look_up(POST, call())
    assert found is not None
    assert found.remote_id == ours.remote_id
    for attempt in (ghost.update(POST, stranger.remote_id, call()), ghost.withdraw(POST, stranger.remote_id, call())):
        with pytest.raises(ChannelError, match="does not bear our marker"):
            await attempt


async def test_marker_and_json_ld_stand_in_the_head_and_tags_and_canonical_are_sent(place: Place) -> None:
    server, *_ = place
    json_ld = json.dumps({"@graph": [{"@type": "Article", "headline": "x"}]})
    post = POST.model_copy(
        update={"json_ld": json_ld, "tags": ("Tea",), "canonical_url": "https://original.example/tea"}
    )
    placed = await site(place).publish(post, call())
    made = server.posts[placed.remote_id]
    assert f'content="{MARKER}"' in made["codeinjection_head"]
    assert "application/ld+json" in made["codeinjection_head"]
    assert (made["tags"], made["canonical_url"]) == ([{"name": "Tea"}], "https://original.example/tea")
    assert "citeloop-" in next(iter(server.images))


async def test_an_edit_by_somebody_else_meanwhile_is_tried_again_with_their_version(place: Place) -> None:
    server, *_ = place
    ghost = site(place)
    placed = await ghost.publish(POST, call())
    honest = server.posts[placed.remote_id]
    server.posts[placed.remote_id] = StaleOnce(honest)
    with pytest.raises(ChannelError) as raised:
        await ghost.update(POST, placed.remote_id, call())
    assert (raised.value.fault, raised.value.status) == (Fault.UNAVAILABLE, 409)
    assert (await ghost.update(POST, placed.remote_id, call())).remote_id == placed.remote_id


class StaleOnce(dict[str, object]):
    """Between our reading and our writing, somebody saves once."""

    def __getitem__(self, name: str) -> object:
        if name == "updated_at" and not self.get("saved"):
            self["saved"] = True
            return "2026-11-29T13:00:00.000Z"
        return super().__getitem__(name)


async def test_a_post_that_is_gone_cannot_be_corrected(place: Place) -> None:
    with pytest.raises(ChannelError, match="publish it anew") as raised:
        await site(place).update(POST, "000000000000000000000000", call())
    assert raised.value.fault is Fault.INVALID
