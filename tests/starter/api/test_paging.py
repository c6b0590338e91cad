"""Pages hold everything once, whatever is added meanwhile; filters are checked."""

from datetime import UTC, datetime, timedelta

import pytest

from citeloop.models import ids
from citeloop.models.measure import Reading
from citeloop.models.work import PublicationState, SampleStatus, SampleStep
from citeloop.store.repositories import article_views, publications, samples
from tests.starter.api.conftest import Door


async def test_all_articles_of_a_campaign_come_once_in_its_order(door: Door) -> None:
    keywords = [f"k{number:03}" for number in range(23)]
    campaign_id = await door.campaign(*keywords)
    await door.article("alone")
    for limit in (1, 5, 23, 200):
        listed = await door.every("/v1/articles", campaign=campaign_id, limit=limit)
        assert [row["keyword"] for row in listed] == keywords
        lines = await door.every(f"/v1/campaigns/{campaign_id}/keywords", limit=limit)
        assert [line["keyword"] for line in lines] == keywords


async def test_what_is_submitted_between_two_pages_shifts_nothing(door: Door) -> None:
    made = [await door.article(f"a{number}") for number in range(6)]
    first = await door.get("/v1/articles", limit=3)
    await door.article("newcomer")
    second = await door.get("/v1/articles", limit=3, after=first["next"])
    assert [row["id"] for row in (*first["items"], *second["items"])] == made[::-1]
    assert second["next"] is None


async def test_campaigns_and_brands_are_paged_too(door: Door) -> None:
    made = [await door.campaign(f"w{number}", name=f"c{number}") for number in range(5)]
    for handle in ("zeta", "alpha", "beta-2"):
        await door.brand(handle)
    assert [row["id"] for row in await door.every("/v1/campaigns", limit=2)] == made[::-1]
    brands = await door.every("/v1/brands", limit=1)
    assert [row["handle"] for row in brands] == ["alpha", "beta-2", "milvus", "zeta"]


async def test_articles_are_filtered_by_state_stage_and_locale(door: Door) -> None:
    body = [{"keyword": "en"}, {"keyword": "zh", "locale": "zh-CN"}]
    answer = await door.http.post("/v1/campaigns", json={"name": "n", "brand": await door.brand(), "keywords": body})
    campaign = answer.json()["id"]
    for query, expected in (
        ({"locale": "zh-CN"}, ["zh"]),
        ({"state": "submitted", "stage": "generate"}, ["en", "zh"]),
        ({"state": "parked"}, []),
        ({"stage": "publish"}, []),
    ):
        listed = await door.every("/v1/articles", campaign=campaign, **query)
        assert [row["keyword"] for row in listed] == expected
        alone = await door.every("/v1/articles", **query)
        assert sorted(row["keyword"] for row in alone) == expected


async def test_all_samples_come_once_and_say_under_which_manifest(door: Door) -> None:
    campaign_id = await door.campaign("one", "two")
    (one, two) = (await door.get("/v1/articles", campaign=campaign_id))["items"]
    began = datetime(2026, 11, 1, tzinfo=UTC)
    async with door.database.tenant(door.tenant.id) as scope:
        article = await article_views.get(scope, one["id"])
        assert article is not None
        for keyword in ("one", "two"):
            for day in range(3):
                for replicate in range(2):
                    step = SampleStep(
                        tenant_id=door.tenant.id,
                        campaign_id=campaign_id,
                        article_id=None,
                        manifest_id=article.manifest_id,
                        prompt_id=ids.prompt_id(keyword, "en"),
                        engine="perplexity",
                        window="after" if day else "baseline",
                        window_start=began + timedelta(days=day),
                        replicate=replicate,
                    )
                    await samples.put(scope, step, Reading(status=SampleStatus.OK), None)
    everything = await door.every(f"/v1/campaigns/{campaign_id}/samples", limit=200)
    for limit in (1, 5, 12):
        assert await door.every(f"/v1/campaigns/{campaign_id}/samples", limit=limit) == everything
    assert len(everything) == 12
    own = await door.every(f"/v1/articles/{two['id']}/samples", limit=4, window="after")
    assert [(row["keyword"], row["window"]) for row in own] == [("two", "after")] * 4
    page = await door.get(f"/v1/articles/{two['id']}/samples")
    assert page["manifest_id"] == article.manifest_id == page["items"][0]["manifest_id"]


async def test_publications_are_paged_and_filtered_and_never_show_their_token(door: Door) -> None:
    campaign_id = await door.campaign("p1", "p2")
    rows = (await door.get("/v1/articles", campaign=campaign_id))["items"]
    async with door.database.tenant(door.tenant.id) as scope:
        for row in rows:
            for site in ("blog", "hook"):
                made = await publications.reserve(
                    scope, article_id=row["id"], site=site, kind="webhook", marker="m", digest="d"
                )
        await publications.advance(
            scope, made.id, expected=[PublicationState.RESERVED], to=PublicationState.PUBLISHED, url="http://p"
        )
    listed = await door.every("/v1/publications", campaign=campaign_id, limit=1)
    assert len({row["id"] for row in listed}) == 4
    assert made.token not in str(listed)
    (done,) = await door.every("/v1/publications", state="published")
    assert (done["site"], done["url"], done["keyword"]) == ("hook", "http://p", "p2")
    assert len(await door.every("/v1/publications", article=rows[0]["id"])) == 2
    assert len(await door.every("/v1/publications", site="blog")) == 2


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/v1/articles?limit=0", "limit"),
        ("/v1/articles?limit=201", "limit"),
        ("/v1/articles?limit=99999999999999999999999", "limit"),
        ("/v1/articles?state=lost", "state"),
        ("/v1/articles?stage=", "stage"),
        ("/v1/articles?locale=%00", "locale"),
        ("/v1/articles?campaign=autumn", "campaign"),
        ("/v1/articles?after='--", "after"),
        ("/v1/articles/not-an-id", "article_id"),
        ("/v1/articles/01KB8M3Z5T8W4Q2N6J7R9V0XY%00", "article_id"),
        ("/v1/articles/01KB8M3Z5T8W4Q2N6J7R9V0XYA/events?after=99999999999999999999999", "after"),
        ("/v1/publications?site=../etc", "site"),
        ("/v1/brands?after=UPPER", "after"),
    ],
)
async def test_a_filter_that_cannot_be_meant_is_named(door: Door, path: str, field: str) -> None:
    answer = await door.http.get(path)
    assert (answer.status_code, answer.json()["field"]) == (422, field)


async def test_a_samples_page_that_was_never_given_out_is_named(door: Door) -> None:
    campaign_id = await door.campaign("x")
    for forged in ("abc", "e30", "eyJ3aW5kb3dfc3RhcnQiOiAxfQ"):
        answer = await door.http.get(f"/v1/campaigns/{campaign_id}/samples", params={"after": forged})
        assert (answer.status_code, answer.json()["field"]) == (422, "after")
