"""The post a site receives: what was approved, with what that kind of site can show."""

import json

import pytest

from activities.posts import Prepared, prepare
from citeloop.channels.ports import Post
from tests.activities.workshop import BRAND, Workshop

BASE = "https://us.example"


async def prepared(workshop: Workshop, part: str, base: str = BASE) -> Post:
    plan = await workshop.article()
    step = await workshop.approved(plan, part)
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        found = await prepare(scope, step, plan, workshop.outside(), base)
    assert isinstance(found, Prepared)
    return found.post


async def test_the_json_ld_names_the_brand_and_the_article(workshop: Workshop) -> None:
    post = await prepared(workshop, "blog")
    article = json.loads(post.json_ld)["@graph"][0]
    assert article["author"] == {"@type": "Organization", "name": BRAND.entity.name, "url": BRAND.homepage}
    assert article["headline"] == "Vectors in files"
    assert article["datePublished"] == post.published_at.isoformat() if post.published_at else None
    assert "mainEntityOfPage" not in article


@pytest.mark.parametrize(("part", "base", "asked"), [("hook", BASE, True), ("hook", "", False), ("blog", BASE, False)])
async def test_only_a_site_that_calls_back_is_told_where(workshop: Workshop, part: str, base: str, asked: bool) -> None:
    post = await prepared(workshop, part, base)
    assert post.callback_url.startswith(f"{BASE}/v1/callbacks/") is asked


async def test_the_sites_tags_categories_and_author_are_on_every_post(workshop: Workshop) -> None:
    await workshop.change_site("hook", tags=("tea",), categories=("Guides",), author="A. Writer")
    post = await prepared(workshop, "hook")
    assert (post.tags, post.categories, post.author) == (("tea",), ("Guides",), "A. Writer")
