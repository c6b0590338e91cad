"""Steering over HTTP a real installation: its worker, its Temporal, its sandbox."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from citeloop.store.database import Database
from citeloop.store.repositories.api_keys import KeyRole
from starter import files, keys, simulated
from starter.connecting import tenant_of
from starter.stack import Stack
from tests.starter.api.test_stream import _told

SECOND = {"offsets": [1], "day": "PT1S"}
WAIT = 60


@pytest.fixture(scope="module")
async def api(stack: Stack) -> AsyncIterator[httpx.AsyncClient]:
    database = Database(stack.database_url, pool_size=2)
    made = await keys.create(database, await tenant_of(database, stack.parts.tenant), "editor", KeyRole.OPERATOR)
    await database.close()
    headers = {"Authorization": f"Bearer {made.key}"}
    async with httpx.AsyncClient(base_url=stack.api_url or "", headers=headers, trust_env=False, timeout=20) as http:
        brand = files.read_brand(Path(simulated.BRAND))
        put = await http.put(
            "/v1/brands/milvus", content=brand.model_dump_json(), headers={"Content-Type": "application/json"}
        )
        assert put.status_code in {200, 201}, put.text
        yield http


async def submit(api: httpx.AsyncClient, keyword: str, **more: Any) -> str:
    body = {"brand": "milvus", "keyword": keyword, "review": {"mode": "human"}, "monitor": SECOND, **more}
    answer = await api.post("/v1/articles", json=body)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["href"])


async def until(api: httpx.AsyncClient, href: str, *states: str, round_: int = 0) -> dict[str, Any]:
    async with asyncio.timeout(WAIT):
        while True:
            article: dict[str, Any] = (await api.get(href)).json()
            if article["state"] in states and article["round"] >= round_:
                return article
            await asyncio.sleep(0.1)


async def waiting(api: httpx.AsyncClient, href: str) -> dict[str, Any]:
    """The draft that waits for a decision."""
    drafts = (await api.get(f"{href}/drafts")).json()["items"]
    draft: dict[str, Any] = (await api.get(f"/v1/drafts/{drafts[-1]['id']}")).json()
    return draft


async def decide(api: httpx.AsyncClient, href: str, action: str, digest: str, notes: str = "") -> httpx.Response:
    return await api.post(f"{href}/decisions", json={"action": action, "draft_digest": digest, "notes": notes})


async def test_an_article_is_sent_back_approved_published_and_measured(api: httpx.AsyncClient) -> None:
    href = await submit(api, "vector database over http")
    await until(api, href, "review")
    first = await waiting(api, href)
    sent_back = await decide(api, href, "send_back", first["digest"], "name the licence")
    assert (sent_back.status_code, sent_back.json()["recorded"]) == (200, True)
    await until(api, href, "review", round_=1)
    second = await waiting(api, href)
    assert (second["round"], second["digest"] != first["digest"], len(second["body"]) > 500) == (1, True, True)
    assert (await decide(api, href, "approve", second["digest"])).status_code == 200
    article = await until(api, href, "measured", "parked", "failed")
    assert (article["state"], len(article["done"])) == ("measured", 6)
    assert {page["state"] for page in article["pages"]} == {"published"}
    said = (await api.get(f"{href}/decisions")).json()["items"]
    assert [(one["action"], one["by"], one["notes"]) for one in said] == [
        ("send_back", "editor", "name the licence"),
        ("approve", "editor", ""),
    ]
    samples = (await api.get(f"{href}/samples")).json()
    assert {one["window"] for one in samples["items"]} == {"baseline", "after"}
    assert samples["manifest_id"] == article["manifest_id"]
    kinds = [one["kind"] for one in (await api.get(f"{href}/events")).json()["items"]]
    assert kinds.count("decision") == 2


async def test_a_decision_on_another_text_and_a_second_decision_are_conflicts(api: httpx.AsyncClient) -> None:
    href = await submit(api, "decided once")
    early = await decide(api, href, "approve", "0" * 64)
    assert early.status_code == 409
    await until(api, href, "review")
    digest = (await waiting(api, href))["digest"]
    stale = await decide(api, href, "approve", "0" * 64)
    assert (stale.status_code, stale.json()["detail"]) == (409, "the text has changed since it was read")
    first = await decide(api, href, "reject", digest, "not ours")
    assert first.status_code == 200
    other = await decide(api, href, "approve", digest)
    assert other.status_code == 409
    article = await until(api, href, "rejected")
    assert article["reason"] == "not ours"


async def test_a_decision_repeated_after_its_answer_was_lost_is_no_conflict(api: httpx.AsyncClient) -> None:
    href = await submit(api, "decided twice alike")
    await until(api, href, "review")
    digest = (await waiting(api, href))["digest"]
    for _ in range(2):
        assert (await decide(api, href, "reject", digest)).status_code == 200
    assert len((await api.get(f"{href}/decisions")).json()["items"]) == 1


async def test_pause_priority_resume_cancel_and_retry(api: httpx.AsyncClient) -> None:
    href = await submit(api, "steered over http")
    await until(api, href, "review")
    paused = await api.post(f"{href}/pause", json={"reason": "prices change"})
    assert (paused.status_code, paused.json()["recorded"]) == (200, True)
    assert (await api.get(href)).json()["hold"] == "prices change"
    ranked = await api.put(f"{href}/priority", json={"priority": 1})
    assert (ranked.status_code, ranked.json()["message"]) == (200, "done")
    assert (await api.post(f"{href}/resume")).status_code == 200
    assert (await api.post(f"{href}/retry")).status_code == 409
    assert (await api.post(f"{href}/cancel", json={"reason": "wrong product"})).status_code == 200
    ended = await until(api, href, "cancelled")
    assert (ended["reason"], ended["priority"]) == ("wrong product", 1)
    assert (await api.post(f"{href}/pause")).status_code == 409
    assert (await api.post(f"{href}/retry")).status_code in {200, 202}
    again = await until(api, href, "review")
    assert again["attempts"] == ended["attempts"]
    await api.post(f"{href}/cancel")


async def test_a_campaign_is_watched_paused_resumed_and_measured(api: httpx.AsyncClient) -> None:
    body = {
        "name": "over http",
        "brand": "milvus",
        "keywords": [{"keyword": f"vector database campaign {number}"} for number in range(3)],
        "review": {"mode": "auto", "max_rounds": 0},
        "monitor": SECOND,
    }
    accepted = (await api.post("/v1/campaigns", json=body)).json()
    href = accepted["href"]
    seen = []
    async with api.stream("GET", accepted["events"], timeout=90) as answer, asyncio.timeout(90):
        paused = await api.post(f"{href}/pause", json={"reason": "stocktaking"})
        assert paused.status_code in {200, 202}
        assert (await api.get(href)).json()["hold"] == "stocktaking"
        assert (await api.post(f"{href}/resume")).status_code in {200, 202}
        async for one in _told(answer):
            seen.append(one)
            if one.event == "note" and one.data["state"] == "parked":
                await api.post(f"/v1/articles/{one.data['article_id']}/cancel")
    assert seen[-1].event == "end"
    assert len({one.id for one in seen}) == len(seen)
    ends = [one.data["state"] for one in seen if one.event == "note" and one.data["state"] in {"measured", "cancelled"}]
    assert len(ends) == 3
    campaign = (await api.get(href)).json()
    assert campaign["counts"].get("measured", 0) == ends.count("measured") > 0
    metrics = (await api.get(f"{href}/metrics")).json()
    assert {one["window"] for one in metrics["windows"]} == {"baseline", "after"}
    for window in metrics["windows"]:
        named = next(figure for figure in window["figures"] if figure["name"] == "mention rate")
        assert named["n"] == window["samples"], (await api.get(f"{href}/samples")).text
        assert named["low"] <= named["value"] <= named["high"]
        assert "÷" in named["definition"]


async def test_a_channel_is_slowed_paused_and_put_back(api: httpx.AsyncClient) -> None:
    slowed = await api.put("/v1/channels/images/rate", json={"rate": "90/min"})
    assert (slowed.status_code, slowed.json()["effective_rate"], slowed.json()["why"]) == (
        200,
        1.5,
        "set by the operator",
    )
    paused = await api.post("/v1/channels/images/pause", json={"reason": "no money"})
    assert (paused.json()["effective_rate"], paused.json()["why"]) == (0.0, "paused: no money")
    await api.post("/v1/channels/images/resume")
    back = await api.put("/v1/channels/images/rate", json={"rate": None})
    listed = (await api.get("/v1/channels")).json()["items"]
    assert back.json() in listed
    assert (back.json()["operator_rate"], back.json()["paused"]) == (None, False)
    assert json.dumps(listed).count('"name": "images"') == 1


async def test_a_channels_concurrency_is_set_and_everything_is_put_back_at_once(api: httpx.AsyncClient) -> None:
    await api.put("/v1/channels/images/rate", json={"rate": "2/s"})
    narrowed = await api.put("/v1/channels/images/concurrency", json={"concurrency": 2})
    refused = await api.put("/v1/channels/images/concurrency", json={"concurrency": 0})
    back = (await api.post("/v1/channels/images/reset")).json()
    assert (narrowed.json()["concurrency"], narrowed.json()["operator_concurrency"]) == (2, 2)
    assert refused.status_code == 422
    assert (back["operator_rate"], back["operator_concurrency"], back["why"]) == (None, None, "channels.toml")


async def test_a_parked_article_is_a_dead_letter_until_it_is_retried_or_cancelled(api: httpx.AsyncClient) -> None:
    href = await submit(api, "parked over http", review={"mode": "human", "max_rounds": 0})
    await until(api, href, "review")
    digest = (await waiting(api, href))["digest"]
    await decide(api, href, "send_back", digest, "never good enough")
    await until(api, href, "parked")
    letters = (await api.get("/v1/dead-letters")).json()["items"]
    assert [one["reason"] for one in letters if one["keyword"] == "parked over http"] == [
        "sent back 1 times; last notes: never good enough"
    ]
    await api.post(f"{href}/cancel")
    await until(api, href, "cancelled")
    assert all(one["keyword"] != "parked over http" for one in (await api.get("/v1/dead-letters")).json()["items"])
