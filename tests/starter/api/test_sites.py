import base64
import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from citeloop import sealing
from citeloop.channels.signing import signed_headers
from citeloop.models.work import PublicationState
from citeloop.store.repositories import publications, sites
from starter.api import examples
from tests.starter.api.conftest import Door

SIGNING = "whsec_" + base64.b64encode(b"k" * 32).decode()
BODY = {**examples.SITE_BODY, "base_url": "https://own.example.com"}


@pytest.fixture(autouse=True)
def key(door: Door) -> None:
    wiring = door.app.state.wiring
    if wiring.secret_key is None:
        key = sealing.new_key()
        wiring.outside._environ[sealing.VARIABLE] = key
        door.app.state.wiring = replace(wiring, secret_key=key)


async def put(door: Door, name: str = "own", **changes: Any) -> httpx.Response:
    return await door.http.put(f"/v1/sites/{name}", json={**BODY, **changes})


async def test_a_site_is_put_shown_changed_and_removed_and_its_secret_never_comes_back(door: Door) -> None:
    made = await put(door)
    shown = await door.http.get("/v1/sites/own")
    changed = await door.http.patch("/v1/sites/own", json={"rate": "", "labels": ["tea"], "state": "paused"})
    listed = await door.http.get("/v1/sites")
    assert [made.status_code, shown.status_code, changed.status_code] == [201, 200, 200]
    assert (changed.json()["rate"], changed.json()["labels"], changed.json()["state"]) == (None, ["tea"], "paused")
    for answer in (made, shown, changed, listed):
        assert str(BODY["secret"]) not in answer.text
        assert "secret" not in answer.text
        assert "sealed" not in answer.text
    assert (await door.http.delete("/v1/sites/own")).status_code == 204
    assert (await door.http.get("/v1/sites/own")).status_code == 404
    assert (await door.http.delete("/v1/sites/own")).status_code == 404


async def test_put_again_without_the_secret_keeps_it(door: Door) -> None:
    await put(door)
    again = await put(door, secret="", rate="6/min")
    assert (again.status_code, again.json()["rate"], again.json()["revision"]) == (200, "6/min", 2)


@pytest.mark.parametrize(
    "change", [{"base_url": "https://elsewhere.example.com"}, {"base_url": "http://own.example.com"}]
)
async def test_another_address_needs_the_secret_again(door: Door, change: dict[str, str]) -> None:
    await put(door)
    answer = await door.http.patch("/v1/sites/own", json=change)
    assert (answer.status_code, answer.json()["field"]) == (422, "secret")
    given = await door.http.patch("/v1/sites/own", json={**change, "secret": "again again again"})
    assert given.status_code == 200
    moved = await door.http.patch("/v1/sites/own", json={"base_url": change["base_url"] + "/blog"})
    assert moved.status_code == 200, "the same place, another path"


@pytest.mark.parametrize(
    ("change", "field", "told"),
    [
        ({"rate": "often"}, "rate", "is no rate"),
        ({"kind": "folder"}, "kind", "worker's machine"),
        ({"secret": ""}, "secret", "is missing"),
        ({"user": ""}, "user", "is missing"),
        ({"kind": "webhook", "secret": "whsec_short"}, "secret", "no base64"),
        ({"base_url": "https://ann:pw@own.example.com"}, "base_url", "neither a password"),
        ({"base_url": "{env:HOME}"}, "base_url", "is not set"),
        ({"settings": {"folder": "/etc"}}, "folder", "is no known setting"),
        ({"settings": {"timeouts": {"total": "11m"}}}, "timeouts.total", "up to 10m"),
        ({"rate": "1e999999999"}, "rate", "is no rate"),
        ({"rate": "0.000001/day"}, "rate", "0 pauses"),
        ({"settings": {"timeouts": {"total": "soon"}}}, "timeouts.total", "is no duration"),
        ({"kind": "halo", "settings": {"tags": ["Tea"]}}, "tags", "takes no tags"),
        ({"labels": ["Not A Label"]}, "labels[0]", "pattern"),
        ({"concurrency": 11}, "concurrency", "10"),
    ],
)
async def test_what_is_wrong_is_named_with_its_field(door: Door, change: dict[str, Any], field: str, told: str) -> None:
    answer = await put(door, **change)
    assert answer.status_code == 422
    assert answer.json()["field"] == field
    assert told in answer.json()["detail"] + answer.json()["remedy"]
    assert (await door.get("/v1/sites"))["items"] == []


async def test_a_private_address_is_refused_unless_the_operator_allows_it(door: Door) -> None:
    wiring = door.app.state.wiring
    strict = wiring.catalog.model_copy(update={"allow_private_addresses": False})
    door.app.state.wiring = replace(wiring, catalog=strict)
    try:
        for url in (
            "http://127.0.0.1:8080",
            "http://10.1.2.3",
            "http://[::1]",
            "http://localhost",
            "http://2130706433",
        ):
            answer = await put(door, base_url=url)
            assert (answer.status_code, answer.json()["field"]) == (422, "base_url"), url
    finally:
        door.app.state.wiring = wiring
    assert (await put(door, base_url="http://127.0.0.1:8080")).status_code == 201


async def test_the_name_of_an_operators_site_is_taken(door: Door) -> None:
    answer = await put(door, "blog")
    assert (answer.status_code, answer.json()["field"]) == (409, "name")


async def test_pages_go_on_by_name_kind_and_label(door: Door) -> None:
    for n in range(7):
        await put(door, f"s{n}", labels=["even"] if n % 2 == 0 else [])
    names = [site["name"] for site in await door.every("/v1/sites", limit=3)]
    even = [site["name"] for site in await door.every("/v1/sites", limit=2, label="even")]
    assert (names, even) == ([f"s{n}" for n in range(7)], ["s0", "s2", "s4", "s6"])
    assert (await door.get("/v1/sites", kind="ghost"))["items"] == []


async def test_another_tenant_sees_changes_and_checks_none_of_it(door: Door, stranger: Door) -> None:
    await put(door)
    assert (await stranger.get("/v1/sites"))["items"] == []
    for method, path in (("GET", "/own"), ("PATCH", "/own"), ("DELETE", "/own"), ("POST", "/own/check")):
        answer = await stranger.http.request(method, f"/v1/sites{path}", json={} if method == "PATCH" else None)
        assert answer.status_code == 404, method


async def test_a_viewer_may_look_and_change_nothing(door: Door, viewer: Door) -> None:
    await put(door)
    assert (await viewer.http.get("/v1/sites/own")).status_code == 200
    assert (await put(viewer)).status_code == 403
    for method in ("PATCH", "DELETE"):
        assert (await viewer.http.request(method, "/v1/sites/own")).status_code == 403


async def test_a_check_says_what_is_wrong(door: Door) -> None:
    await put(door, base_url="http://127.0.0.1:1")
    answer = await door.http.post("/v1/sites/own/check")
    assert answer.status_code == 200
    assert answer.json()["ok"] is False
    assert "connect" in answer.json()["problems"][0].lower() or "refused" in answer.json()["problems"][0].lower()


async def test_a_campaign_may_name_a_registered_site_and_an_unknown_one_is_refused(door: Door) -> None:
    await put(door)
    campaign = await door.campaign(sites=["own", "blog"], stages=["generate", "review", "publish"])
    (article, *_) = await door.every("/v1/articles", campaign=campaign)
    assert article["state"] == "submitted"
    lines = [{"keyword": "tea"}]
    answer = await door.http.post(
        "/v1/campaigns", json={"name": "n", "brand": await door.brand(), "keywords": lines, "sites": ["nowhere"]}
    )
    assert (answer.status_code, answer.json()["field"]) == (422, "sites")


async def test_a_registered_webhook_sites_callback_is_believed_by_its_own_secret(door: Door) -> None:
    await put(door, "hook", kind="webhook", user="", secret=SIGNING, settings={})
    article_id = await door.article(sites=["hook"], stages=["generate", "review", "publish"])
    async with door.database.tenant(door.tenant.id) as scope:
        row = await publications.reserve(
            scope, article_id=article_id, site="hook", kind="webhook", marker="m", digest="d", slug="s"
        )
        await publications.advance(scope, row.id, expected={PublicationState.RESERVED}, to=PublicationState.SENT)
    event = json.dumps({"type": "article.published", "data": {"url": "https://own.example.com/a"}}).encode()
    statuses = []
    for secret in ("whsec_" + base64.b64encode(b"x" * 32).decode(), SIGNING):
        headers = signed_headers(secret, "event-1", datetime.now(UTC), event)
        answer = await door.http.post(f"/v1/callbacks/{row.token}", content=event, headers=headers)
        statuses.append(answer.status_code)
    assert statuses[0] == 401
    assert statuses[1] in {200, 503}, "kept; Temporal is away here"
    async with door.database.tenant(door.tenant.id) as scope:
        assert await sites.count(scope) == 1


@pytest.mark.parametrize("path", ["/v1/campaigns", "/v1/articles"])
async def test_the_same_key_and_request_give_the_same_answer_after_their_site_is_gone(door: Door, path: str) -> None:
    await put(door)
    one = {"brand": await door.brand(), "keyword": "kept", "sites": ["own"]}
    many = {"brand": "milvus", "name": "autumn", "keywords": [{"keyword": "kept"}], "sites": ["own"]}
    body = many if path == "/v1/campaigns" else one
    headers = {"Idempotency-Key": "order-7"}
    first = await door.http.post(path, json=body, headers=headers)
    assert (await door.http.delete("/v1/sites/own")).status_code == 204
    again = await door.http.post(path, json=body, headers=headers)
    assert (first.status_code, again.status_code, again.json()) == (202, 202, first.json())
    other = await door.http.post(path, json=body, headers={"Idempotency-Key": "order-8"})
    assert (other.status_code, other.json()["field"]) == (422, "sites")
    assert (await door.http.post(path, json=body, headers=headers)).json() == first.json()
