"""Submitting is one write, answered before Temporal is asked, and never lost after."""

import asyncio

import pytest
from temporalio.client import Client

from activities.reconciling import Reconciler
from citeloop.models import ids
from citeloop.store.database import Database
from citeloop.store.repositories import articles
from citeloop.store.statements import text
from tests.starter.api.conftest import Door

AGE_ARTICLES = text("UPDATE articles SET submitted_at = submitted_at - interval '11 seconds' WHERE tenant_id = :tenant")
AGE_CAMPAIGNS = text("UPDATE campaigns SET created_at = created_at - interval '11 seconds' WHERE tenant_id = :tenant")


async def test_a_campaign_is_accepted_as_a_whole_and_named_by_its_location(door: Door) -> None:
    body = {
        "name": "autumn",
        "brand": await door.brand(),
        "keywords": [{"keyword": "b"}, {"keyword": "a", "locale": "zh-CN", "kind": "faq", "priority": 1}],
    }
    answer = await door.http.post("/v1/campaigns", json=body)
    accepted = answer.json()
    assert (answer.status_code, answer.headers["location"]) == (202, f"/v1/campaigns/{accepted['id']}")
    campaign = await door.get(accepted["href"])
    assert (campaign["state"], campaign["counts"], campaign["total"]) == ("submitted", {"submitted": 2}, 2)
    lines = await door.get(f"{accepted['href']}/keywords")
    assert [(line["keyword"], line["locale"], line["kind"], line["priority"]) for line in lines["items"]] == [
        ("b", "en", "article", 3),
        ("a", "zh-CN", "faq", 1),
    ]


@pytest.mark.parametrize("path", ["/v1/campaigns", "/v1/articles"])
async def test_the_same_key_and_request_give_the_same_answer_and_nothing_new(door: Door, path: str) -> None:
    brand = await door.brand()
    one = {"brand": brand, "keyword": "once"}
    many = {"brand": brand, "name": "autumn", "keywords": [{"keyword": "once"}]}
    body = many if path == "/v1/campaigns" else one
    headers = {"Idempotency-Key": "order-7"}
    first = await door.http.post(path, json=body, headers=headers)
    await door.http.put(f"/v1/brands/{brand}/rivals", json=[])
    second = await door.http.post(path, json=dict(reversed(body.items())), headers=headers)
    assert (first.status_code, second.status_code) == (202, 202)
    assert (second.json(), second.headers["location"]) == (first.json(), first.headers["location"])
    assert len(await door.every("/v1/articles")) == 1


async def test_a_key_used_for_another_request_is_a_conflict_that_writes_nothing(door: Door) -> None:
    brand = await door.brand()
    headers = {"Idempotency-Key": "order-8"}
    body = {"brand": brand, "keyword": "first"}
    assert (await door.http.post("/v1/articles", json=body, headers=headers)).status_code == 202
    other = {"brand": brand, "name": "n", "keywords": [{"keyword": "second"}]}
    for path, asked in (("/v1/articles", {**body, "keyword": "second"}), ("/v1/campaigns", other)):
        answer = await door.http.post(path, json=asked, headers=headers)
        assert (answer.status_code, answer.json()["field"]) == (409, "idempotency key")
        assert answer.json()["remedy"] == "choose a new key"
    assert [row["keyword"] for row in await door.every("/v1/articles")] == ["first"]
    assert await door.every("/v1/campaigns") == []


async def test_one_key_from_ten_callers_at_once_makes_one_article(door: Door) -> None:
    body = {"brand": await door.brand(), "keyword": "raced"}
    headers = {"Idempotency-Key": "order-9"}
    answers = await asyncio.gather(*(door.http.post("/v1/articles", json=body, headers=headers) for _ in range(10)))
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert len(await door.every("/v1/articles")) == 1


async def test_two_tenants_may_use_the_same_key(door: Door, stranger: Door) -> None:
    headers = {"Idempotency-Key": "shared"}
    for one in (door, stranger):
        body = {"brand": await one.brand(), "keyword": f"of {one.tenant.id}"}
        assert (await one.http.post("/v1/articles", json=body, headers=headers)).status_code == 202


async def test_what_was_accepted_without_temporal_is_started_by_the_sweeper(
    door: Door, database: Database, client: Client
) -> None:
    article_id = await door.article("swept")
    campaign_id = await door.campaign("swept too")
    assert (await door.get(f"/v1/articles/{article_id}"))["started_at"] is None
    async with database.tenant(door.tenant.id) as scope:
        for aged in (AGE_ARTICLES, AGE_CAMPAIGNS):
            await scope.sql.execute(aged, {"tenant": door.tenant.id})
    await Reconciler(client, database).sweep()
    assert (await door.get(f"/v1/articles/{article_id}"))["started_at"] is not None
    assert (await door.get(f"/v1/campaigns/{campaign_id}"))["state"] == "running"
    for workflow in (
        ids.workflow_id(door.tenant.id, article_id),
        ids.campaign_workflow_id(door.tenant.id, campaign_id),
    ):
        assert (await client.get_workflow_handle(workflow).describe()).close_time is None


async def test_a_campaign_paused_before_its_start_still_starts_after_its_resume(
    door: Door, database: Database, client: Client
) -> None:
    campaign_id = await door.campaign("paused early")
    assert (await door.http.post(f"/v1/campaigns/{campaign_id}/pause")).status_code == 503
    assert (await door.http.post(f"/v1/campaigns/{campaign_id}/resume")).status_code == 503
    async with database.tenant(door.tenant.id) as scope:
        await scope.sql.execute(AGE_CAMPAIGNS, {"tenant": door.tenant.id})
    await Reconciler(client, database).sweep()
    described = await client.get_workflow_handle(ids.campaign_workflow_id(door.tenant.id, campaign_id)).describe()
    assert described.close_time is None


async def test_an_unknown_brand_and_an_unknown_site_are_named(door: Door) -> None:
    answer = await door.http.post("/v1/articles", json={"brand": "nobody", "keyword": "k"})
    assert (answer.status_code, answer.json()["field"]) == (404, "brand")
    body = {"brand": await door.brand(), "keyword": "k", "sites": ["blogg"]}
    answer = await door.http.post("/v1/articles", json=body)
    assert (answer.status_code, answer.json()["field"], answer.json()["remedy"]) == (
        422,
        "sites",
        "did you mean blog?",
    )


async def test_video_is_refused_in_words(door: Door) -> None:
    answer = await door.http.post("/v1/articles", json={"brand": "milvus", "keyword": "k", "kind": "video"})
    assert (answer.status_code, answer.json()["field"]) == (422, "kind")
    assert "video is not supported" in answer.json()["detail"]


async def test_a_schedule_is_frozen_into_the_plans(door: Door) -> None:
    campaign_id = await door.campaign("first", "second", publish_at="2090-01-02T03:04:05Z", publish_every="PT2H")
    lone = await door.article("alone", publish_at="2090-01-02T03:04:05+08:00")
    async with door.database.tenant(door.tenant.id) as scope:
        plans = await articles.startable(scope, campaign_id, 2)
        single = await articles.plan(scope, lone)
    assert [plan.publish_at.isoformat() for plan in plans if plan.publish_at] == [
        "2090-01-02T03:04:05+00:00",
        "2090-01-02T05:04:05+00:00",
    ]
    assert single.publish_at is not None
    assert single.publish_at.isoformat() == "2090-01-02T03:04:05+08:00"


async def test_a_time_without_its_zone_is_refused(door: Door) -> None:
    body = {"brand": await door.brand(), "keyword": "when", "publish_at": "2090-01-02T03:04:05"}
    answer = await door.http.post("/v1/articles", json=body)
    assert (answer.status_code, answer.json()["field"]) == (422, "publish_at")
