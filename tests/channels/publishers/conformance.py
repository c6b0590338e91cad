"""What every publisher must do, whatever the site: subclass `Conformance`, give it a `subject`, and it is tested."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.illustrators.card import TitleCard
from citeloop.channels.ports import Ability, PictureBrief, Placed, Post, Publisher
from tests.channels.publishers.servers.serving import serve
from tests.channels.settings import call

MARKER = "citeloop-0123456789abcdef01234567"
PICTURE = (
    TitleCard(brand="Acme")
    .draw(PictureBrief(prompt="", title="Tea", alt=""))
    .model_copy(update={"credit": "Photo: A. Photographer"})
)
POST = Post(
    marker=MARKER,
    slug="green-tea-1a2b3c4d",
    title="Green tea, brewed cold 冷泡绿茶",
    html="<h2>Why cold?</h2>\n<p>Cold water draws less bitterness 冷水.</p>\n",
    excerpt="Cold water draws less bitterness.",
    picture=PICTURE,
    picture_alt="a cup of green tea",
)
UNABLE: dict[Ability, dict[str, Any]] = {
    Ability.TAGS: {"tags": ("tea",)},
    Ability.CATEGORIES: {"categories": ("Guides",)},
    Ability.AUTHOR: {"author": "A. Writer"},
    Ability.CANONICAL: {"canonical_url": "https://original.example/tea"},
    Ability.JSON_LD: {"json_ld": '{"@graph": []}'},
    Ability.CALLBACK: {"callback_url": "https://us.example/v1/callbacks/token"},
}


class Lossy(Protocol):
    """Enters a time in which the site does what it is asked, and its answer to a publication is lost."""

    def __call__(self) -> contextlib.AbstractContextManager[None]: ...


@dataclass
class Subject:
    """One publisher before one site, and how a test sees what the site shows.

    shown: every page that readers (of a draft box: its owners) find there, as text with title, body and picture.
    wrong: the same site with credentials that it refuses.
    elsewhere: the same publisher before another address; None for a site that is no server.
    """

    publisher: Publisher
    wrong: Publisher
    shown: Callable[[], Awaitable[list[str]]]
    lossy: Lossy
    secrets: tuple[str, ...] = ()
    elsewhere: Callable[[str], Publisher] | None = None


async def careful(publisher: Publisher, post: Post) -> Placed:
    """As the product does it: never sent before somebody has looked."""
    return await publisher.look_up(post, call()) or await publisher.publish(post, call())


class Conformance:
    adopts: ClassVar[bool] = True
    """Whether a lost reply leaves a post that the look-up finds; else publishing again finishes it."""
    shows_credit: ClassVar[bool] = True

    async def test_a_post_that_was_never_published_is_not_there(self, subject: Subject) -> None:
        assert await subject.publisher.look_up(POST, call()) is None
        assert await subject.shown() == []

    async def test_a_published_post_is_shown_and_found(self, subject: Subject) -> None:
        placed = await subject.publisher.publish(POST, call())
        (page,) = await subject.shown()
        assert POST.title in page
        assert "Cold water draws less bitterness 冷水." in page
        found = await subject.publisher.look_up(POST, call())
        assert found is not None
        assert found.remote_id == placed.remote_id

    async def test_its_picture_has_alt_text_and_credit(self, subject: Subject) -> None:
        placed = await subject.publisher.publish(POST, call())
        assert not [note for note in placed.notes if "picture" in note]
        (page,) = await subject.shown()
        assert POST.picture_alt in page
        assert ("Photo: A. Photographer" in page) is self.shows_credit

    async def test_publishing_twice_with_a_look_up_between_makes_one(self, subject: Subject) -> None:
        first = await careful(subject.publisher, POST)
        second = await careful(subject.publisher, POST)
        assert second.remote_id == first.remote_id
        assert len(await subject.shown()) == 1

    async def test_two_articles_are_two_posts(self, subject: Subject) -> None:
        other = POST.model_copy(
            update={"marker": f"{MARKER[:-1]}8", "slug": "black-tea-9z8y7x6w", "title": "Black tea"}
        )
        await careful(subject.publisher, POST)
        await careful(subject.publisher, other)
        assert len(await subject.shown()) == 2
        found = await subject.publisher.look_up(other, call())
        assert found != await subject.publisher.look_up(POST, call())

    async def test_a_lost_reply_leaves_one_post_that_is_adopted(self, subject: Subject) -> None:
        with subject.lossy(), pytest.raises(ChannelError) as raised:
            await subject.publisher.publish(POST, call())
        assert not raised.value.fault.final
        if self.adopts:
            assert raised.value.fault is Fault.UNKNOWN
            assert await subject.publisher.look_up(POST, call()) is not None
        await careful(subject.publisher, POST)
        assert len(await subject.shown()) == 1

    async def test_a_correction_changes_the_same_post(self, subject: Subject) -> None:
        assert Ability.UPDATE in subject.publisher.abilities
        placed = await subject.publisher.publish(POST, call())
        corrected = POST.model_copy(update={"title": "Green tea, corrected", "html": "<p>Eight hours.</p>"})
        changed = await subject.publisher.update(corrected, placed.remote_id, call())
        assert changed.remote_id == placed.remote_id
        (page,) = await subject.shown()
        assert "Green tea, corrected" in page
        assert "Eight hours." in page
        assert "bitterness 冷水" not in page
        found = await subject.publisher.look_up(corrected, call())
        assert found is not None
        assert found.remote_id == placed.remote_id

    async def test_a_withdrawn_post_is_hidden_and_can_be_published_anew(self, subject: Subject) -> None:
        assert Ability.WITHDRAW in subject.publisher.abilities
        placed = await subject.publisher.publish(POST, call())
        for _ in ("once", "and again, which changes nothing"):
            await subject.publisher.withdraw(POST, placed.remote_id, call())
            assert await subject.shown() == []
            assert await subject.publisher.look_up(POST, call()) is None
        await subject.publisher.publish(POST, call())
        assert len(await subject.shown()) == 1

    @pytest.mark.parametrize("ability", sorted(UNABLE))
    async def test_what_the_site_cannot_do_is_refused_before_anything_is_sent(
        self, subject: Subject, ability: Ability
    ) -> None:
        post = POST.model_copy(update=UNABLE[ability])
        if ability in subject.publisher.abilities:
            await subject.publisher.publish(post, call())
            return
        with pytest.raises(ChannelError, match=f"no {ability}") as raised:
            await subject.publisher.publish(post, call())
        assert raised.value.fault is Fault.INVALID
        assert await subject.shown() == []

    async def test_a_site_in_order_has_no_problems(self, subject: Subject) -> None:
        report = await subject.publisher.check(call())
        assert report.problems == ()
        assert await subject.shown() == []

    async def test_wrong_credentials_are_refused_in_words(self, subject: Subject) -> None:
        for attempt in (subject.wrong.publish(POST, call()), subject.wrong.look_up(POST, call())):
            with pytest.raises(ChannelError) as raised:
                await attempt
            assert raised.value.fault in {Fault.UNAUTHORIZED, Fault.INVALID}
            assert raised.value.message
            _check_secrets(subject, str(raised.value))
        report = await subject.wrong.check(call())
        assert report.problems
        _check_secrets(subject, " ".join(report.problems))
        assert await subject.shown() == []

    @pytest.mark.parametrize("status", [200, 400, 401, 500])
    async def test_a_reply_that_repeats_our_request_shows_no_secret(self, subject: Subject, status: int) -> None:
        if subject.elsewhere is None:
            assert not subject.secrets
            return
        async with _parrot(status) as url:
            publisher = subject.elsewhere(url)
            report = await publisher.check(call())
            _check_secrets(subject, " ".join((*report.problems, *report.notes)))
            try:
                told = str(await publisher.publish(POST, call()))
            except ChannelError as error:
                told = f"{error} {error.args} {error.request_id}"
            _check_secrets(subject, told)


def _check_secrets(subject: Subject, told: str) -> None:
    for secret in subject.secrets:
        assert secret not in told


@contextlib.asynccontextmanager
async def _parrot(status: int) -> AsyncIterator[str]:
    """A server that says back whatever it was sent, headers, body and address."""

    async def say(request: Request) -> Response:
        heard = f"{dict(request.headers)} {request.url} {(await request.body())[:4000].decode('utf-8', 'replace')}"
        told = {"message": heard, "error": heard, "errcode": 1, "errmsg": heard, "errors": [{"message": heard}]}
        return JSONResponse(
            told, status_code=status, headers={"x-request-id": request.headers.get("authorization", "")}
        )

    methods = ["GET", "POST", "PUT", "DELETE"]
    async with serve(Starlette(routes=[Route("/{path:path}", say, methods=methods)])) as url:
        yield url
