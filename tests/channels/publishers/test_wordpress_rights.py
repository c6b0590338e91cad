"""What WordPress lets an account do: terms, scripts, corrections, withdrawals, and what a check makes of hosting."""

import json
from typing import Any

import httpx
import pytest

from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.ports import Placed, Post, SiteReport
from citeloop.models.channel import SiteKind
from tests.channels.publishers.conformance import POST
from tests.channels.publishers.lines import lines_reply
from tests.channels.publishers.scripted import BASE, Reply, Scripted, good, publisher, wordpress_row
from tests.channels.settings import call

LD = '{"@context": "https://schema.org", "@graph": [{"@type": "Article", "headline": "x"}]}'
BARE = POST.model_copy(update={"picture": None})
EVERY_RIGHT = dict.fromkeys(
    ("edit_posts", "publish_posts", "upload_files", "unfiltered_html", "edit_published_posts",
     "delete_published_posts", "manage_categories"),
    True,
)  # fmt: skip
INDEX = {"namespaces": ["wp/v2"], "url": BASE, "authentication": {"application-passwords": {"endpoints": {}}}}


def ok(content: object, status: int = 200) -> httpx.Response:
    return httpx.Response(status, json=content)


def no(status: int, code: str, **data: object) -> httpx.Response:
    return ok({"code": code, "message": "no", "data": {"status": status, **data}}, status)


async def published(site: Scripted, post: Post = BARE) -> Placed:
    async with site.client() as http:
        return await publisher(SiteKind.WORDPRESS, http).publish(post, call())


def created(site: Scripted) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(site.sent("POST", "wp/v2/posts")[0].content)
    return fields


async def test_terms_that_exist_are_used_others_are_made_and_doubles_are_resolved() -> None:
    site = good(SiteKind.WORDPRESS)
    site.first("GET", "/tags", ok([{"id": 3, "name": "R&amp;D"}, {"id": 4, "name": "R&D more"}]), ok([]), ok([]))
    site.first("POST", "/tags", ok({"id": 5}, 201), no(400, "term_exists", term_id=6))
    site.first("POST", "/categories", ok({"id": 9}, 201))
    post = BARE.model_copy(update={"tags": ("r&d", "Tea", "Cold"), "categories": ("Guides",)})
    assert (await published(site, post)).notes == ()
    assert (created(site)["tags"], created(site)["categories"]) == ([3, 5, 6], [9])


async def test_a_term_is_asked_for_once_in_a_process() -> None:
    site = good(SiteKind.WORDPRESS).first("POST", "/tags", ok({"id": 5}, 201))
    async with site.client() as http:
        blog = publisher(SiteKind.WORDPRESS, http)
        for _ in range(2):
            await blog.publish(BARE.model_copy(update={"tags": ("Tea",)}), call())
    assert len(site.sent("POST", "/tags")) == 1


async def test_a_term_that_the_account_may_not_make_is_left_out_and_told() -> None:
    site = good(SiteKind.WORDPRESS).first("POST", "/categories", no(403, "rest_cannot_create"))
    placed = await published(site, BARE.model_copy(update={"categories": ("Guides",)}))
    assert placed.notes[0].startswith("without categories 'Guides'")
    assert created(site)["categories"] == []


@pytest.mark.parametrize("capable", [True, False])
async def test_json_ld_is_sent_only_where_the_account_keeps_scripts(capable: bool) -> None:
    site = good(SiteKind.WORDPRESS)
    site.first("GET", "users/me", ok({"capabilities": {"unfiltered_html": capable}}))
    kept = wordpress_row(content={"raw": '<script type="application/ld+json">{}</script>'})
    site.first("POST", "wp/v2/posts", ok(kept, 201))
    placed = await published(site, BARE.model_copy(update={"json_ld": LD}))
    assert ("application/ld+json" in created(site)["content"]) is capable
    assert bool(placed.notes) is not capable


async def test_where_rights_cannot_be_read_json_ld_is_left_out_and_told() -> None:
    site = good(SiteKind.WORDPRESS).first("GET", "users/me", httpx.Response(403, text="<html>no</html>"))
    placed = await published(site, BARE.model_copy(update={"json_ld": LD}))
    assert "is not known" in placed.notes[0]
    assert "ld+json" not in created(site)["content"]


async def test_a_script_that_a_multisite_stripped_all_the_same_leaves_no_text_behind() -> None:
    site = good(SiteKind.WORDPRESS).first("GET", "users/me", ok({"capabilities": {"unfiltered_html": True}}))
    async with site.client() as http:
        blog = publisher(SiteKind.WORDPRESS, http)
        placed = await blog.publish(BARE.model_copy(update={"json_ld": LD}), call())
        (repair,) = site.sent("POST", "wp/v2/posts/7")
        assert "ld+json" not in json.loads(repair.content)["content"]
        assert "unfiltered_html" in placed.notes[0]
        await blog.publish(BARE.model_copy(update={"json_ld": LD, "slug": "next"}), call())
    assert "ld+json" not in json.loads(site.sent("POST", "wp/v2/posts")[-1].content)["content"]


async def test_line_breaks_of_the_text_do_not_become_breaks_of_the_page() -> None:
    site = good(SiteKind.WORDPRESS)
    await published(site, BARE.model_copy(update={"html": "<p>a\nb</p>\n<pre><code>x\n\ny</code></pre>\n<p>c</p>"}))
    assert created(site)["content"].startswith("<p>a b</p> <pre><code>x\n\ny</code></pre> <p>c</p>")


async def test_the_credit_becomes_the_pictures_caption() -> None:
    site = good(SiteKind.WORDPRESS)
    await published(site, POST)
    (upload,) = site.sent("POST", "media")
    assert upload.url.params["caption"] == "Photo: A. Photographer"


def standing(reply: Reply) -> Scripted:
    return good(SiteKind.WORDPRESS).first("GET", "posts/7", reply)


async def test_a_correction_keeps_slug_and_status() -> None:
    site = standing(ok(wordpress_row())).first("POST", "posts/7", ok(wordpress_row()))
    async with site.client() as http:
        placed = await publisher(SiteKind.WORDPRESS, http).update(BARE, "7", call())
    fields = json.loads(site.sent("POST", "posts/7")[0].content)
    assert fields.keys() == {"title", "content", "excerpt"}
    assert placed.remote_id == "7"


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (no(404, "rest_post_invalid_id"), "publish it anew"),
        (ok(wordpress_row(status="trash")), "publish it anew"),
        (ok(wordpress_row(content={"raw": "by hand"})), "does not bear our marker"),
    ],
    ids=["gone", "in the trash", "rewritten by hand"],
)
async def test_only_what_is_there_and_ours_is_corrected(reply: httpx.Response, words: str) -> None:
    site = standing(reply)
    async with site.client() as http:
        with pytest.raises(ChannelError, match=words) as raised:
            await publisher(SiteKind.WORDPRESS, http).update(BARE, "7", call())
    assert raised.value.fault is Fault.INVALID
    assert not site.sent("POST", "posts/7")


@pytest.mark.parametrize(
    ("reply", "removals"),
    [
        (ok(wordpress_row(status="trash")), 1),
        (no(410, "rest_already_trashed"), 1),
        (no(501, "rest_trash_not_supported"), 2),
    ],
    ids=["into the trash", "there already", "no trash"],
)
async def test_a_withdrawal_goes_to_the_trash_and_without_one_deletes(reply: httpx.Response, removals: int) -> None:
    site = standing(ok(wordpress_row())).first("DELETE", "posts/7", reply, ok({"deleted": True}))
    async with site.client() as http:
        await publisher(SiteKind.WORDPRESS, http).withdraw(BARE, "7", call())
    assert [one.url.params.get("force") for one in site.sent("DELETE", "posts/7")] == [None, "true"][:removals]


async def test_a_withdrawal_that_is_refused_is_told() -> None:
    site = standing(ok(wordpress_row())).first("DELETE", "posts/7", no(403, "rest_cannot_delete"))
    async with site.client() as http:
        with pytest.raises(ChannelError) as raised:
            await publisher(SiteKind.WORDPRESS, http).withdraw(BARE, "7", call())
    assert raised.value.fault is Fault.UNAUTHORIZED


async def checked(**replies: Reply) -> tuple[SiteReport, Scripted]:
    site = good(SiteKind.WORDPRESS)
    site.first("GET", "/wp-json/", replies.get("index", ok(INDEX)))
    site.first("GET", "users/me", replies.get("me", ok({"capabilities": EVERY_RIGHT})))
    if "draft" in replies:
        site.first("POST", "wp/v2/posts", replies["draft"])
    async with site.client() as http:
        return await publisher(SiteKind.WORDPRESS, http).check(call()), site


async def test_a_check_makes_a_draft_and_deletes_it() -> None:
    report, site = await checked()
    assert (report.problems, report.notes) == ((), ())
    (draft,) = site.sent("POST", "wp/v2/posts")
    assert json.loads(draft.content)["status"] == "draft"
    assert site.sent("DELETE", "posts/7?force=true")


@pytest.mark.parametrize(
    ("replies", "words"),
    [
        ({"me": no(401, "rest_not_logged_in")}, "strips the Authorization header"),
        ({"me": no(401, "incorrect_password")}, "check user and application password"),
        ({"draft": lines_reply("wp-403-waf-html")}, "firewall"),
        ({"index": lines_reply("wp-403-waf-html")}, "firewall"),
        ({"index": ok({"namespaces": ["wp/v2"], "authentication": []})}, "application passwords are switched off"),
        ({"index": ok({**INDEX, "namespaces": ["oembed/1.0"]})}, "without wp/v2"),
        ({"me": ok({"capabilities": {"edit_posts": True}})}, "may not publish posts"),
        ({"index": lines_reply("wp-301-post-to-get")}, "final address"),
        ({"index": httpx.ConnectError("refused")}, "cannot reach"),
        ({"index": httpx.Response(200, text="<html>hello</html>")}, "expected JSON"),
    ],
    ids=[
        "header stripped", "wrong password", "firewall on POST", "firewall", "no application passwords", "no wp/v2",
        "contributor", "redirect", "unreachable", "no API",
    ],
)  # fmt: skip
async def test_a_check_explains_what_hosting_does(replies: dict[str, Reply], words: str) -> None:
    report, _ = await checked(**replies)
    assert any(words in problem for problem in report.problems), report


async def test_a_check_of_an_http_address_that_leads_to_https_says_what_to_write() -> None:
    site = Scripted([("GET", "wp-json", [httpx.Response(301, headers={"location": "https://site.example/wp-json/"})])])
    async with site.client() as http:
        blog = publisher(SiteKind.WORDPRESS, http)
        from citeloop.channels.publishers.wordpress import WordPress

        assert isinstance(blog, WordPress)
        blog._site = blog._site.model_copy(update={"base_url": "http://site.example"})
        report = await blog.check(call())
    assert "with https://" in report.problems[0]


async def test_a_check_notes_missing_rights_and_another_address() -> None:
    rights = {"edit_posts": True, "publish_posts": True}
    index = {**INDEX, "url": "https://www.site.example"}
    report, _ = await checked(me=ok({"capabilities": rights}), index=ok(index))
    assert report.ok
    told = " ".join(report.notes)
    for words in ("without pictures", "without JSON-LD", "corrections", "withdrawals", "https://www.site.example"):
        assert words in told
