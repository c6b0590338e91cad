"""Posting to WordPress: once, findable, and with hosting faults told in words."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import httpx
import pytest

from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.ports import PictureFile, Placed, Post
from citeloop.channels.publishers.wordpress import WordPress
from citeloop.channels.wire import Wire
from citeloop.models.channel import SiteKind, SiteSpec
from tests.channels.publishers.lines import lines_reply
from tests.channels.servers import Peer, raw_server
from tests.channels.settings import call

SITE = SiteSpec(name="blog", kind=SiteKind.WORDPRESS, base_url="https://blog.example")
PICTURE = PictureFile(data=b"\x89PNG", media_type="image/png", width=1, height=1)
POST = Post(marker="m-1234567890", slug="tea-1a2b", title="Tea", html="<p>Tea.</p>")
Answer = Callable[[httpx.Request], httpx.Response]
Row = dict[str, Any]


def row(number: int = 7, *, slug: str = POST.slug, marker: str = POST.marker, status: str = "publish") -> Row:
    content = {"raw": f'<p>Tea.</p><span data-citeloop="{marker}"></span>'}
    return {"id": number, "slug": slug, "status": status, "link": f"https://blog.example/{slug}/", "content": content}


class Site:
    """A WordPress of which the test says what each kind of request answers."""

    def __init__(self, **answers: httpx.Response | Answer) -> None:
        self.answers = answers
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        route = request.url.params.get("rest_route") or request.url.path
        kind = f"{request.method.lower()}_{'media' if '/media' in route else 'posts'}"
        answer = self.answers.get(kind, httpx.Response(200, json=[]))
        return answer(request) if callable(answer) else answer

    async def run(self, verb: str, post: Post = POST) -> Placed | None:
        async with httpx.AsyncClient(transport=httpx.MockTransport(self)) as http:
            blog = WordPress(SITE, "me", "pass word", Wire(http, "blog", secrets=("pass word",)))
            if verb == "publish":
                return await blog.publish(post, call())
            return await blog.look_up(post, call())

    async def error(self, verb: str = "publish", post: Post = POST) -> ChannelError:
        with pytest.raises(ChannelError) as raised:
            await self.run(verb, post)
        return raised.value

    def sent(self, method: str) -> list[httpx.Request]:
        return [one for one in self.requests if one.method == method]


async def test_a_post_is_created_once_with_its_marker_and_slug() -> None:
    site = Site(post_posts=httpx.Response(201, json=row()))
    placed = await site.run("publish")
    assert placed == Placed(remote_id="7", url="https://blog.example/tea-1a2b/", confirmed=True)
    (request,) = site.requests
    fields = json.loads(request.content)
    assert (fields["slug"], fields["status"], fields["title"]) == ("tea-1a2b", "publish", "Tea")
    assert 'data-citeloop="m-1234567890"' in fields["content"]
    assert request.headers["authorization"] == "Basic bWU6cGFzcyB3b3Jk"


async def test_markup_in_a_title_or_excerpt_is_text_to_wordpress() -> None:
    site = Site(post_posts=httpx.Response(201, json=row()))
    title = "Vue <div> & <script>alert(1)</script>"
    await site.run("publish", POST.model_copy(update={"title": title, "excerpt": "<b>Tea</b>"}))
    fields = json.loads(site.requests[-1].content)
    assert fields["title"] == "Vue &lt;div&gt; &amp; &lt;script&gt;alert(1)&lt;/script&gt;"
    assert fields["excerpt"] == "&lt;b&gt;Tea&lt;/b&gt;"


async def test_a_look_up_asks_for_every_status_by_slug() -> None:
    site = Site(get_posts=httpx.Response(200, json=[row()]))
    assert await site.run("look_up") == Placed(remote_id="7", url="https://blog.example/tea-1a2b/")
    params = site.requests[0].url.params
    assert params["slug"] == "tea-1a2b"
    assert params["status"] == "publish,future,draft,pending,private"
    assert params["context"] == "edit"


async def test_a_post_whose_slug_was_changed_is_found_by_its_marker() -> None:
    def search(request: httpx.Request) -> httpx.Response:
        found = [row(9, slug="tea-1a2b-2")] if request.url.params.get("search") == POST.marker else []
        return httpx.Response(200, json=found)

    placed = await Site(get_posts=search).run("look_up")
    assert placed is not None
    assert placed.remote_id == "9"


async def test_a_foreign_post_of_the_same_slug_is_not_taken_for_ours() -> None:
    assert await Site(get_posts=httpx.Response(200, json=[row(marker="m-other-article")])).run("look_up") is None


async def test_a_post_that_is_not_public_yet_is_unconfirmed() -> None:
    placed = await Site(get_posts=httpx.Response(200, json=[row(status="future")])).run("look_up")
    assert placed is not None
    assert not placed.confirmed


async def test_a_second_copy_of_our_own_post_is_removed_and_the_first_one_kept() -> None:
    site = Site(
        post_posts=httpx.Response(201, json=row(8, slug="tea-1a2b-2")),
        get_posts=httpx.Response(200, json=[row(7)]),
        delete_posts=httpx.Response(200, json={"deleted": True}),
    )
    placed = await site.run("publish")
    assert placed is not None
    assert placed.remote_id == "7"
    assert site.sent("DELETE")[0].url.path.endswith("/posts/8")


async def test_a_slug_that_someone_else_holds_is_accepted_as_it_became() -> None:
    site = Site(post_posts=httpx.Response(201, json=row(8, slug="tea-1a2b-2")))
    placed = await site.run("publish")
    assert placed == Placed(remote_id="8", url="https://blog.example/tea-1a2b-2/")
    assert not site.sent("DELETE")


async def test_a_picture_is_uploaded_under_its_digest_and_featured() -> None:
    site = Site(
        post_media=httpx.Response(201, json={"id": 31}),
        post_posts=httpx.Response(201, json=row()),
    )
    await site.run("publish", POST.model_copy(update={"picture": PICTURE, "picture_alt": "a cup"}))
    upload, created = site.sent("POST")
    assert upload.url.params["alt_text"] == "a cup"
    assert upload.headers["content-disposition"].startswith('attachment; filename="citeloop-')
    assert json.loads(created.content)["featured_media"] == 31


async def test_a_picture_that_is_there_already_is_not_uploaded_again() -> None:
    site = Site(
        get_media=httpx.Response(200, json=[{"id": 30}]),
        post_posts=httpx.Response(201, json=row()),
    )
    await site.run("publish", POST.model_copy(update={"picture": PICTURE}))
    (created,) = site.sent("POST")
    assert json.loads(created.content)["featured_media"] == 30


async def test_a_picture_whose_sizes_were_never_made_is_uploaded_anew() -> None:
    """A time-out while PHP was at it: WordPress refuses such a one as a post's picture."""
    site = Site(
        get_media=httpx.Response(200, json=[{"id": 30, "media_details": {}}]),
        post_media=httpx.Response(201, json={"id": 31, "media_details": {"width": 1200}}),
        post_posts=httpx.Response(201, json=row()),
    )
    await site.run("publish", POST.model_copy(update={"picture": PICTURE}))
    assert json.loads(site.sent("POST")[-1].content)["featured_media"] == 31


@pytest.mark.parametrize("line_id", ["wp-media-sideload-500"])
async def test_an_article_survives_a_picture_that_the_site_refuses(line_id: str) -> None:
    site = Site(post_media=lines_reply(line_id), post_posts=httpx.Response(201, json=row()))
    await site.run("publish", POST.model_copy(update={"picture": PICTURE}))
    assert "featured_media" not in json.loads(site.sent("POST")[-1].content)


async def test_a_featured_picture_that_the_site_does_not_know_is_left_out() -> None:
    def create(request: httpx.Request) -> httpx.Response:
        return lines_reply("wp-featured-invalid") if b"featured_media" in request.content else created

    created = httpx.Response(201, json=row())
    site = Site(get_media=httpx.Response(200, json=[{"id": 30}]), post_posts=create)
    placed = await site.run("publish", POST.model_copy(update={"picture": PICTURE}))
    assert placed is not None


async def test_a_passing_fault_of_the_upload_is_told_before_anything_was_posted() -> None:
    site = Site(post_media=httpx.Response(503, text="busy"))
    error = await site.error(post=POST.model_copy(update={"picture": PICTURE}))
    assert error.fault is Fault.OVERLOADED
    assert not [one for one in site.sent("POST") if "/posts" in one.url.path]


JUDGED = {
    "wp-401-header-stripped": (Fault.UNAUTHORIZED, "strips the Authorization header"),
    "wp-403-waf-html": (Fault.INVALID, "firewall"),
    "wp-waf-block-comment": (Fault.INVALID, "firewall"),
    "wp-301-post-to-get": (Fault.INVALID, "set base_url to the final address"),
    "wp-503-maintenance": (Fault.OVERLOADED, "503"),
    "wp-500-fatal": (Fault.UNKNOWN, "may have been published"),
    "wp-empty-content": (Fault.INVALID, "empty_content"),
    "wp-404-plain-permalinks": (Fault.INVALID, "no REST API"),
}


@pytest.mark.parametrize("line_id", JUDGED)
async def test_a_failed_post_is_judged_as_its_line_says(line_id: str) -> None:
    fault, words = JUDGED[line_id]
    error = await Site(post_posts=lambda _request: lines_reply(line_id)).error()
    assert (error.fault, words in error.message) == (fault, True), error
    assert error.delay == (timedelta(minutes=10) if line_id == "wp-503-maintenance" else None)


@pytest.mark.parametrize("line_id", ["wp-bom", "wp-future"])
async def test_an_odd_success_is_a_success(line_id: str) -> None:
    placed = await Site(post_posts=lines_reply(line_id)).run("publish")
    assert placed is not None
    assert placed.confirmed is (line_id == "wp-bom")


async def test_a_draft_of_the_same_slug_is_accepted_as_line_wp_draft_slug_dup_says() -> None:
    placed = await Site(post_posts=lines_reply("wp-draft-slug-dup")).run("publish")
    assert placed == Placed(remote_id="9", confirmed=False)


async def test_a_missed_schedule_is_a_post_that_is_not_public_yet() -> None:
    found = json.loads(lines_reply("wp-missed-schedule").content) | {"content": row()["content"]}
    placed = await Site(get_posts=httpx.Response(200, json=[found])).run("look_up")
    assert placed == Placed(remote_id="7", url="https://s.example/?p=7", confirmed=False)


async def test_notices_of_php_before_the_json_are_forgiven() -> None:
    body = b"<br />\n<b>Notice</b>: Undefined index [x] in {y} on line 3<br />\n" + json.dumps(row()).encode()
    placed = await Site(post_posts=httpx.Response(201, content=body, headers={"content-type": "text/html"})).run(
        "publish"
    )
    assert placed is not None
    assert placed.remote_id == "7"


async def test_plain_permalinks_are_found_out_and_remembered() -> None:
    def only_plain(request: httpx.Request) -> httpx.Response:
        if "rest_route" not in request.url.params:
            return lines_reply("wp-404-plain-permalinks")
        return httpx.Response(201, json=row()) if request.method == "POST" else httpx.Response(200, json=[row()])

    site = Site(post_posts=only_plain, get_posts=only_plain)
    async with httpx.AsyncClient(transport=httpx.MockTransport(site)) as http:
        blog = WordPress(SITE, "me", "pw", Wire(http, "blog"))
        await blog.publish(POST, call())
        await blog.look_up(POST, call())
    assert [one.url.params.get("rest_route") for one in site.requests] == [None, "/wp/v2/posts", "/wp/v2/posts"]
    assert site.requests[2].url.params["slug"] == "tea-1a2b"


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (httpx.Response(200, json=[]), Fault.UNKNOWN),
        (httpx.Response(201, text="oops"), Fault.UNKNOWN),
        (httpx.Response(502, text="bad gateway"), Fault.UNKNOWN),
        (httpx.Response(504, text=""), Fault.UNKNOWN),
        (httpx.Response(503, text="busy"), Fault.UNKNOWN),
        (httpx.Response(429, json={"code": "too_many", "message": "slow"}), Fault.RATE_LIMITED),
        (httpx.Response(400, json={"code": "rest_invalid_param", "message": "no"}), Fault.INVALID),
        (httpx.Response(403, json={"code": "rest_cannot_create", "message": "no"}), Fault.UNAUTHORIZED),
    ],
    ids=["a list", "no json", "502", "504", "503", "429", "400", "403"],
)
async def test_only_a_reply_that_leaves_it_open_is_unknown(answer: httpx.Response, fault: Fault) -> None:
    assert (await Site(post_posts=answer).error()).fault is fault


async def _published_at(base_url: str) -> ChannelError:
    async with httpx.AsyncClient(trust_env=False) as http:
        site = SITE.model_copy(update={"base_url": base_url})
        with pytest.raises(ChannelError) as raised:
            await WordPress(site, "me", "pw", Wire(http, "blog")).publish(POST, call(first_byte=0.5, total=2))
    return raised.value


async def test_a_reply_lost_after_the_post_was_sent_is_unknown() -> None:
    async def loses(peer: Peer) -> None:
        peer.writer.transport.abort()

    async with raw_server(loses) as server:
        assert (await _published_at(server.url)).fault is Fault.UNKNOWN


async def test_a_reply_that_does_not_come_in_time_is_unknown() -> None:
    async def hangs(peer: Peer) -> None:
        await peer.closed.wait()

    async with raw_server(hangs) as server:
        assert (await _published_at(server.url)).fault is Fault.UNKNOWN


async def test_a_connection_that_was_refused_is_certainly_no_post() -> None:
    assert (await _published_at("http://127.0.0.1:1")).fault is Fault.UNAVAILABLE
