"""The WordPress-compatible site: its rules, its slips, and what the ledger says of them."""

import asyncio
import base64
from typing import Any

import httpx
import pytest

from tests.sandbox.running import BLOG, Sandbox, eventually

POSTS = "/blog/wp-json/wp/v2/posts"
MEDIA = "/blog/wp-json/wp/v2/media"


def site(sandbox: Sandbox) -> httpx.AsyncClient:
    return httpx.AsyncClient(verify=False, base_url=sandbox.url, auth=BLOG, timeout=10)


def post(title: str = "A title", **fields: Any) -> dict[str, Any]:
    return {"title": title, "content": f"<p>About {title}.</p>", "status": "publish", **fields}


async def test_a_post_gets_201_a_location_and_a_public_page(sandbox: Sandbox) -> None:
    async with site(sandbox) as client:
        reply = await client.post(POSTS, json=post(slug="a-title"))
        page = await client.get(reply.json()["link"])
    assert reply.status_code == 201
    assert reply.headers["location"].endswith(f"{POSTS}/{reply.json()['id']}")
    assert page.status_code == 200
    assert "<p>About A title.</p>" in page.text
    assert "simulated" in page.text


async def test_a_taken_slug_gets_a_number_and_counts_as_a_duplicate(sandbox: Sandbox) -> None:
    async with site(sandbox) as client:
        slugs = [(await client.post(POSTS, json=post(slug="same"))).json()["slug"] for _ in range(2)]
    assert slugs == ["same", "same-2"]
    entry = sandbox.ledger()["sites"]["blog"]
    assert (entry["posts"], entry["duplicate_posts"]) == (2, 1)


async def test_the_same_marker_under_another_title_is_a_duplicate_too(sandbox: Sandbox) -> None:
    marked = '<p data-citeloop="01ABCDEFGH">text</p>'
    async with site(sandbox) as client:
        await client.post(POSTS, json=post("One", slug="one", content=marked))
        await client.post(POSTS, json=post("Two", slug="two", content=marked + "<p>more</p>"))
        await client.post(POSTS, json=post("Three", slug="three"))
    assert sandbox.ledger()["totals"]["duplicate_posts"] == 1


async def test_a_withdrawn_post_may_be_posted_again(sandbox: Sandbox) -> None:
    async with site(sandbox) as client:
        first = (await client.post(POSTS, json=post(slug="again"))).json()
        await client.delete(f"{POSTS}/{first['id']}")
        gone = await client.get(first["link"])
        second = (await client.post(POSTS, json=post(slug="again"))).json()
    assert gone.status_code == 404
    assert second["slug"] == "again"
    assert sandbox.ledger()["sites"]["blog"]["duplicate_posts"] == 0


@pytest.mark.parametrize(
    ("auth", "code"),
    [((), "rest_cannot_create"), (("citeloop", "wrong"), "incorrect_password"), (("no", "x"), "invalid_username")],
)
async def test_whoever_may_not_post_gets_401(sandbox: Sandbox, auth: tuple[str, ...], code: str) -> None:
    async with httpx.AsyncClient(
        verify=False, base_url=sandbox.url, auth=httpx.BasicAuth(*auth) if auth else None
    ) as client:
        reply = await client.post(POSTS, json=post())
    assert (reply.status_code, reply.json()["code"]) == (401, code)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "empty_content"),
        (post(id=3), "rest_post_exists"),
        (post(featured_media=99), "rest_invalid_featured_media"),
        (post(status="odd"), "rest_invalid_param"),
        (post(tags=["word"]), "rest_invalid_param"),
    ],
)
async def test_bad_posts_get_wordpress_codes(sandbox: Sandbox, body: dict[str, Any], code: str) -> None:
    async with site(sandbox) as client:
        reply = await client.post(POSTS, json=body)
    assert (reply.status_code, reply.json()["code"]) == (400, code)


async def test_posts_are_found_by_slug_status_and_search(sandbox: Sandbox) -> None:
    async with site(sandbox) as client:
        await client.post(POSTS, json=post("Open", slug="open"))
        await client.post(POSTS, json=post("Hidden", slug="hidden", status="draft", content="<!-- marker-77 -->"))
        public = await client.get(POSTS)
        everything = {"status": "publish,future,draft,pending,private", "context": "edit"}
        by_slug = await client.get(POSTS, params={"slug": "hidden", **everything})
        by_search = await client.get(POSTS, params={"search": "marker-77", **everything})
        denied = await client.get(POSTS, params=everything, auth=("no", "x"))
    assert [found["slug"] for found in public.json()] == ["open"]
    assert public.headers["x-wp-total"] == "1"
    assert by_slug.json()[0]["content"]["raw"] == "<!-- marker-77 -->"
    assert [found["slug"] for found in by_search.json()] == ["hidden"]
    assert denied.status_code == 401


async def test_a_lost_reply_leaves_the_post_in_place(sandbox: Sandbox) -> None:
    sandbox.set("blog", lost_reply=1.0)
    async with site(sandbox) as client:
        with pytest.raises(httpx.RemoteProtocolError):
            await client.post(POSTS, json=post(slug="lost"))
        found = await client.get(POSTS, params={"slug": "lost"})
    assert len(found.json()) == 1
    entry = sandbox.ledger()["sites"]["blog"]
    assert (entry["posts"], entry["lost_replies"]) == (1, 1)


async def test_a_slow_insert_happens_after_the_caller_has_gone(sandbox: Sandbox) -> None:
    sandbox.set("blog", slow_insert=1.0, slow_insert_seconds=0.6)
    async with site(sandbox) as client:
        with pytest.raises(httpx.ReadTimeout):
            await client.post(POSTS, json=post(slug="slow"), timeout=0.2)
        early = await client.get(POSTS, params={"slug": "slow"})
    assert early.json() == []
    await eventually(lambda: httpx.get(verify=False, url=f"{sandbox.url}{POSTS}", params={"slug": "slow"}).json())


@pytest.mark.parametrize(("kind", "status"), [("http_500", 500), ("html_403", 403)])
async def test_a_failure_before_the_insert_leaves_nothing(sandbox: Sandbox, kind: str, status: int) -> None:
    sandbox.set("blog", **{kind: 1.0})
    async with site(sandbox) as client:
        reply = await client.post(POSTS, json=post())
    assert reply.status_code == status
    assert sandbox.ledger()["sites"]["blog"]["posts"] == 0


async def test_a_picture_is_uploaded_found_shown_and_featured(sandbox: Sandbox) -> None:
    headers = {"content-type": "image/png", "content-disposition": 'attachment; filename="cover.png"'}
    async with site(sandbox) as client:
        medium = (await client.post(MEDIA, content=b"\x89PNG fake", headers=headers)).json()
        await client.post(f"{MEDIA}/{medium['id']}", json={"alt_text": "A cover"})
        found = (await client.get(MEDIA, params={"slug": "cover"})).json()
        placed = (await client.post(POSTS, json=post(slug="with", featured_media=medium["id"]))).json()
        page = await client.get(placed["link"])
        data = await client.get(medium["source_url"])
    assert [one["id"] for one in found] == [medium["id"]]
    assert data.content == b"\x89PNG fake"
    assert f'<img src="{medium["source_url"]}" alt="A cover">' in page.text


async def test_an_upload_without_a_name_is_refused(sandbox: Sandbox) -> None:
    async with site(sandbox) as client:
        reply = await client.post(MEDIA, content=b"x", headers={"content-type": "image/png"})
    assert reply.json()["code"] == "rest_upload_no_content_disposition"


async def test_a_known_tag_is_told_with_its_id(sandbox: Sandbox) -> None:
    path = "/blog/wp-json/wp/v2/tags"
    async with site(sandbox) as client:
        first = (await client.post(path, json={"name": "向量"})).json()
        second = (await client.post(path, json={"name": "向量"})).json()
    assert (second["code"], second["data"]["term_id"]) == ("term_exists", first["id"])


async def test_the_connection_test_of_a_publisher_works(sandbox: Sandbox) -> None:
    async with site(sandbox) as client:
        index = (await client.get("/blog/wp-json/")).json()
        me = (await client.get("/blog/wp-json/wp/v2/users/me", params={"context": "edit"})).json()
    assert "wp/v2" in index["namespaces"]
    assert "application-passwords" in index["authentication"]
    assert me["capabilities"]["publish_posts"]


async def test_what_the_site_lets_a_user_do_is_granted(sandbox: Sandbox) -> None:
    async with site(sandbox) as client:
        me = (await client.get("/blog/wp-json/wp/v2/users/me", params={"context": "edit"})).json()
        placed = (await client.post(POSTS, json=post(slug="brief"))).json()
        withdrawn = await client.delete(f"{POSTS}/{placed['id']}")
        made = await client.post("/blog/wp-json/wp/v2/categories", json={"name": "news"})
    assert (withdrawn.status_code, made.status_code) == (200, 201)
    assert me["capabilities"]["delete_published_posts"]
    assert me["capabilities"]["manage_categories"]


async def test_an_update_changes_the_page_and_needs_no_second_post(sandbox: Sandbox) -> None:
    async with site(sandbox) as client:
        placed = (await client.post(POSTS, json=post(slug="mend"))).json()
        await client.post(f"{POSTS}/{placed['id']}", json={"content": "<p>Mended.</p>"})
        page = await client.get(placed["link"])
    assert "Mended." in page.text
    assert sandbox.ledger()["sites"]["blog"]["posts"] == 1


async def test_credentials_with_and_without_spaces_are_the_same(sandbox: Sandbox) -> None:
    given = base64.b64encode(b"citeloop:sandboxapppass").decode()
    async with httpx.AsyncClient(verify=False, base_url=sandbox.url) as client:
        reply = await client.post(POSTS, json=post(), headers={"authorization": f"Basic {given}"})
    assert reply.status_code == 201


async def test_many_posts_at_once_are_each_kept(sandbox: Sandbox) -> None:
    async with site(sandbox) as client:
        await asyncio.gather(*(client.post(POSTS, json=post(f"Title {n}", slug=f"t-{n}")) for n in range(30)))
        listed = await client.get(POSTS, params={"per_page": 100})
    assert len(listed.json()) == 30
    assert sandbox.ledger()["sites"]["blog"]["duplicate_posts"] == 0
