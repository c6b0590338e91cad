"""One tenant's key sees nothing of another's, by whatever id."""

from datetime import UTC, datetime

from citeloop.models import ids
from citeloop.models.measure import Reading
from citeloop.models.plan import Stage
from citeloop.models.work import Draft, SampleStatus, SampleStep
from citeloop.store.repositories import article_views, drafts, publications, samples
from tests.starter.api.conftest import Door


async def furnished(door: Door) -> tuple[str, str, str]:
    """A campaign with an article that has a draft, a publication and a sample: its ids."""
    campaign_id = await door.campaign("secret plans")
    (line,) = (await door.get(f"/v1/campaigns/{campaign_id}/keywords"))["items"]
    draft = Draft(
        id=ids.new_id(), digest="d" * 64, stage=Stage.REWRITE, round=0, channel="deepseek", title="T", chars=4
    )
    async with door.database.tenant(door.tenant.id) as scope:
        await drafts.add(scope, line["article_id"], draft, "body")
        await publications.reserve(
            scope, article_id=line["article_id"], site="blog", kind="wordpress", marker="m", digest="d"
        )
        article = await article_views.get(scope, line["article_id"])
        assert article is not None
        step = SampleStep(
            tenant_id=door.tenant.id,
            campaign_id=campaign_id,
            article_id=None,
            manifest_id=article.manifest_id,
            prompt_id=ids.prompt_id("secret plans", "en"),
            engine="perplexity",
            window="baseline",
            window_start=datetime.now(UTC),
        )
        await samples.put(scope, step, Reading(status=SampleStatus.OK, named=True), None)
    return campaign_id, line["article_id"], draft.id


def everything(campaign_id: str, article_id: str, draft_id: str) -> list[str]:
    campaign, article = f"/v1/campaigns/{campaign_id}", f"/v1/articles/{article_id}"
    return [
        campaign,
        f"{campaign}/keywords",
        f"{campaign}/samples",
        f"{campaign}/metrics",
        f"{campaign}/events",
        article,
        f"{article}/events",
        f"{article}/events/stream",
        f"{article}/drafts",
        f"{article}/decisions",
        f"{article}/samples",
        f"/v1/drafts/{draft_id}",
    ]


async def test_the_owner_finds_it_all(door: Door) -> None:
    for path in everything(*await furnished(door)):
        if "events" not in path:
            await door.get(path)


async def test_a_stranger_finds_nothing_of_it(door: Door, stranger: Door) -> None:
    found = await furnished(door)
    for path in (*everything(*found), "/v1/brands/milvus", "/v1/brands/milvus/facts"):
        answer = await stranger.http.get(path)
        assert (path, answer.status_code) == (path, 404)
        assert "secret" not in answer.text


async def test_a_strangers_lists_are_empty(door: Door, stranger: Door) -> None:
    campaign_id, article_id, _ = await furnished(door)
    for path in ("/v1/brands", "/v1/campaigns", "/v1/articles", "/v1/publications", "/v1/dead-letters"):
        assert await stranger.every(path) == []
    assert await stranger.every("/v1/articles", campaign=campaign_id) == []
    assert await stranger.every("/v1/publications", article=article_id) == []


async def test_a_stranger_steers_nothing_of_it(door: Door, stranger: Door) -> None:
    campaign_id, article_id, _ = await furnished(door)
    for what in (f"/v1/articles/{article_id}", f"/v1/campaigns/{campaign_id}"):
        for word in ("pause", "resume", "cancel"):
            assert (await stranger.http.post(f"{what}/{word}")).status_code == 404
        assert (await stranger.http.put(f"{what}/priority", json={"priority": 1})).status_code == 404
    deciding = {"action": "approve", "draft_digest": "d" * 64}
    assert (await stranger.http.post(f"/v1/articles/{article_id}/retry")).status_code == 404
    assert (await stranger.http.post(f"/v1/articles/{article_id}/decisions", json=deciding)).status_code == 404
    article = await door.get(f"/v1/articles/{article_id}")
    assert (article["hold"], article["priority"], article["state"]) == (None, 3, "submitted")
