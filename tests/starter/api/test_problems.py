"""Every error is a problem document that names what is wrong and what to do; none is a 500."""

from collections.abc import AsyncIterator
from dataclasses import replace

import httpx
import pytest

from citeloop.store.database import Database
from starter.api import examples
from starter.api.app import MAX_BODY
from starter.embedded import ports
from tests.starter.api.conftest import Door

GHOST = examples.ARTICLE_ID


def problem_of(answer: httpx.Response, status: int) -> dict[str, object]:
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    told: dict[str, object] = answer.json()
    assert told["status"] == status
    assert set(told) == {"type", "title", "status", "detail", "field", "remedy", "request_id", "errors"}
    assert ("retry-after" in answer.headers) is (status == 503)
    assert told["detail"]
    assert told["remedy"]
    return told


async def test_what_is_not_there_is_404(door: Door) -> None:
    for path in (f"/v1/articles/{GHOST}", f"/v1/campaigns/{GHOST}", f"/v1/drafts/{GHOST}", "/v1/channels/none"):
        problem_of(await door.http.get(path), 404)
    problem_of(await door.http.get("/v1/no-such-thing"), 404)
    problem_of(await door.http.get("/elsewhere"), 404)


async def test_a_wrong_method_is_405_and_names_the_right_ones(door: Door) -> None:
    answer = await door.http.delete(f"/v1/articles/{GHOST}")
    problem_of(answer, 405)
    assert answer.headers["allow"] == "GET"
    assert (await door.http.delete("/v1/articles")).headers["allow"] == "GET, POST"
    assert (await door.http.post("/docs")).headers["allow"] == "GET"


async def test_a_body_over_the_limit_is_413(door: Door) -> None:
    problem_of(await door.http.post("/v1/campaigns", content=b" " * (MAX_BODY + 1)), 413)

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b" " * 65_536

    answer = await door.http.post("/v1/campaigns", content=endless(), headers={"Content-Type": "application/json"})
    problem_of(answer, 413)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b'{"a": "\xc3"}', b"[" * 100_000])
async def test_a_body_that_is_no_json_is_refused(door: Door, content: bytes) -> None:
    answer = await door.http.post("/v1/articles", content=content, headers={"Content-Type": "application/json"})
    problem_of(answer, 422 if content == b"" else 400)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"keyword": ""}, "keyword"),
        ({"keyword": "   "}, "keyword"),
        ({"keyword": 7}, "keyword"),
        ({"priority": 10**30}, "priority"),
        ({"surprise": 1}, "surprise"),
        ({"stages": ["publish"]}, "stages"),
        ({"monitor": {"replicates": 10**9}}, "monitor.replicates"),
        ({"monitor": {"day": "P99999999D"}}, "monitor.day"),
        ({"monitor": {"offsets": [-1]}}, "monitor.offsets[0]"),
        ({"review": {"mode": "maybe"}}, "review.mode"),
        ({"brand": "Not A Handle"}, "brand"),
        ({"locale": "x" * 36}, "locale"),
    ],
)
async def test_the_field_that_is_wrong_is_named(door: Door, change: dict[str, object], field: str) -> None:
    await door.brand()
    answer = await door.http.post("/v1/articles", json={"brand": "milvus", "keyword": "k", **change})
    assert problem_of(answer, 422)["field"] == field


@pytest.mark.parametrize("digest", ["", "0123abcd", "G" * 64, "0" * 65])
async def test_a_decision_names_the_whole_digest_of_the_text_that_was_read(door: Door, digest: str) -> None:
    article_id = await door.article("unread")
    deciding = {"action": "approve", "draft_digest": digest}
    told = problem_of(await door.http.post(f"/v1/articles/{article_id}/decisions", json=deciding), 422)
    assert (told["field"], told["remedy"]) == ("draft_digest", "Correct the field that is named.")


async def test_all_faults_of_a_body_are_listed(door: Door) -> None:
    answer = await door.http.post("/v1/campaigns", json={"name": "", "brand": "milvus", "keywords": [{}, {}]})
    told = problem_of(answer, 422)
    errors = told["errors"]
    assert isinstance(errors, list)
    assert [one["field"] for one in errors][:3] == ["name", "keywords[0].keyword", "keywords[1].keyword"]


@pytest.mark.parametrize("escape", ["\\u0000", "a\\u0000b", "\\\\\\u0000"])
async def test_a_nul_character_is_refused_before_it_reaches_the_store(door: Door, escape: str) -> None:
    await door.brand()
    written = f'{{"brand": "milvus", "keyword": "{escape}"}}'.encode()
    answer = await door.http.post("/v1/articles", content=written, headers={"Content-Type": "application/json"})
    assert problem_of(answer, 422)["detail"] == "holds a NUL character"


async def test_a_backslash_before_u0000_is_a_text_like_any_other(door: Door) -> None:
    await door.brand()
    written = b'{"brand": "milvus", "keyword": "C:\\\\u0000"}'
    answer = await door.http.post("/v1/articles", content=written, headers={"Content-Type": "application/json"})
    article = await door.get(answer.json()["href"])
    assert article["keyword"] == "C:\\u0000"


async def test_a_lone_surrogate_is_refused_and_not_echoed(door: Door) -> None:
    written = b'{"brand": "milvus", "keyword": "\\ud800", "\\udfff": 1}'
    answer = await door.http.post("/v1/articles", content=written, headers={"Content-Type": "application/json"})
    problem_of(answer, 422)


async def test_a_brand_without_facts_or_too_long_is_refused(door: Door) -> None:
    handle = await door.brand()
    assert problem_of(await door.http.put(f"/v1/brands/{handle}/facts", json=[]), 422)["field"] == "body"
    long = {**examples.BRAND, "voice": "v" * 10_001}
    assert problem_of(await door.http.put(f"/v1/brands/{handle}", json=long), 422)["field"] == "brand.voice"
    assert (await door.get(f"/v1/brands/{handle}"))["brand"]["voice"] == ""


async def test_a_rate_that_would_take_forever_to_read_is_refused(door: Door) -> None:
    answer = await door.http.put("/v1/channels/deepseek/rate", json={"rate": "1e999999999/s"})
    assert problem_of(answer, 422)["field"] == "rate"


async def test_the_callers_request_id_is_kept_and_a_strange_one_is_not(door: Door) -> None:
    answer = await door.http.get(f"/v1/articles/{GHOST}", headers={"X-Request-Id": "mine-7"})
    assert (answer.headers["x-request-id"], answer.json()["request_id"]) == ("mine-7", "mine-7")
    answer = await door.http.get(f"/v1/articles/{GHOST}", headers={"X-Request-Id": "a b<script>"})
    assert answer.headers["x-request-id"] == answer.json()["request_id"] != "a b<script>"
    assert len(answer.json()["request_id"]) == 26


async def test_a_store_that_does_not_answer_is_503_and_says_when_to_come_back(door: Door) -> None:
    (port,) = ports.free(1)
    away = Database(f"postgresql://citeloop_app:x@127.0.0.1:{port}/citeloop")
    there = door.app.state.wiring
    door.app.state.wiring = replace(there, database=away)
    try:
        for answer in (await door.http.get("/v1/articles"), await door.http.get("/readyz")):
            problem_of(answer, 503)
    finally:
        door.app.state.wiring = there
        await away.close()
    assert (await door.http.get("/healthz")).json() == {"status": "ok"}


async def test_a_word_while_temporal_is_away_is_recorded_and_503(door: Door) -> None:
    article_id = await door.article("waiting")
    answer = await door.http.post(f"/v1/articles/{article_id}/pause", json={"reason": "stocktaking"})
    assert "recorded" in str(problem_of(answer, 503)["detail"])
    assert (await door.get(f"/v1/articles/{article_id}"))["hold"] == "stocktaking"
    problem_of(await door.http.get("/readyz"), 503)
