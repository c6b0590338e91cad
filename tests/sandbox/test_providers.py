"""Chat providers: manners, errors in their own words, luck, limits and the ledger."""

import asyncio
import time

import httpx
import pytest

from tests.sandbox.running import Sandbox, chat, outcome, prompt, running, streamed

DEEPSEEK = "/deepseek/v1/chat/completions"
FAULTS = {"http_500": 0.1, "http_503": 0.1, "reset": 0.1, "truncated": 0.1, "empty": 0.1, "html": 0.1}


async def test_a_stream_tells_the_same_text_as_the_whole_and_ends_with_usage(sandbox: Sandbox) -> None:
    async with sandbox.client() as client:
        whole = (await client.post(DEEPSEEK, json=chat(prompt("vector files")))).json()
        raw = (await client.post(DEEPSEEK, json=chat(prompt("vector files"), stream=True))).text
    text, chunks = streamed(raw)
    assert text == whole["choices"][0]["message"]["content"]
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"] == whole["usage"]
    assert raw.rstrip().endswith("data: [DONE]")


async def test_a_queued_stream_sends_comments_first(sandbox: Sandbox) -> None:
    sandbox.set("deepseek", keep_alive=1.0)
    async with sandbox.client() as client:
        raw = (await client.post(DEEPSEEK, json=chat("hi", stream=True))).text
    assert raw.startswith(": keep-alive\n\n")


@pytest.mark.parametrize(
    ("provider", "fields", "status", "word"),
    [
        ("deepseek", {"key": "other"}, 401, "Authentication Fails"),
        ("doubao", {"key": "other"}, 401, "AuthenticationError"),
        ("qwen", {"key": "other"}, 401, "invalid_api_key"),
        ("deepseek", {"exhausted": True}, 402, "Insufficient Balance"),
        ("doubao", {"exhausted": True}, 403, "AccountOverdueError"),
        ("qwen", {"exhausted": True}, 400, "Arrearage"),
        ("deepseek", {"refuse": ["SECRET plan"]}, 400, "Content Exists Risk"),
        ("doubao", {"refuse": ["SECRET plan"]}, 400, "InputTextRiskDetection"),
        ("qwen", {"refuse": ["SECRET plan"]}, 400, "data_inspection_failed"),
    ],
)
async def test_errors_come_in_the_providers_own_words(
    sandbox: Sandbox, provider: str, fields: dict[str, object], status: int, word: str
) -> None:
    sandbox.set(provider, **fields)
    async with sandbox.client() as client:
        reply = await client.post(f"/{provider}/v1/chat/completions", json=chat("the secret plan"))
    assert reply.status_code == status
    assert word in reply.text


async def test_a_refused_keyword_stands_in_the_ledger(sandbox: Sandbox) -> None:
    sandbox.set("qwen", refuse=["agent memory"])
    async with sandbox.client() as client:
        await client.post("/qwen/v1/chat/completions", json=chat(prompt("Agent Memory stores")))
    assert sandbox.ledger()["totals"]["refused"] == ["Agent Memory stores"]


async def test_a_malformed_request_is_told_what_is_wrong(sandbox: Sandbox) -> None:
    async with sandbox.client() as client:
        reply = await client.post(DEEPSEEK, json={"model": "x", "messages": []})
    assert reply.status_code == 400
    assert "messages" in reply.json()["error"]["message"]


async def test_max_tokens_cuts_the_text_and_says_so(sandbox: Sandbox) -> None:
    async with sandbox.client() as client:
        assert await outcome(client, DEEPSEEK, chat(prompt("vector files"), max_tokens=5)) == "length"
    assert sandbox.ledger()["providers"]["deepseek"]["ok"] == 0


async def _fates(seed: int, at_once: int) -> dict[str, list[str]]:
    """What befell each of 40 prompts, asked twice in a row, with so many calls at once."""
    with running(seed=seed) as sandbox:
        sandbox.set("doubao", **FAULTS)
        gate = asyncio.Semaphore(at_once)
        fates: dict[str, list[str]] = {}

        async def ask(client: httpx.AsyncClient, keyword: str) -> None:
            async with gate:
                body = chat(prompt(keyword))
                fates[keyword] = [await outcome(client, "/doubao/v1/chat/completions", body) for _ in range(2)]

        async with sandbox.client() as client:
            await asyncio.gather(*(ask(client, f"keyword {n}") for n in range(40)))
    return fates


async def test_luck_is_the_same_for_the_same_seed_whatever_the_concurrency() -> None:
    alone, together, other = await _fates(11, 1), await _fates(11, 20), await _fates(12, 20)
    assert alone == together
    assert alone != other
    assert {"500", "503", "502", "cut", "length", "empty", "stop"} == {f for pair in alone.values() for f in pair}


async def test_the_bucket_never_lets_more_through_than_burst_and_rate(sandbox: Sandbox) -> None:
    rate, burst = 20.0, 5
    sandbox.set("qwen", rate=rate, burst=burst)
    started = time.monotonic()
    async with sandbox.client() as client:

        async def press() -> list[str]:
            found = []
            while time.monotonic() - started < 2:
                found.append(await outcome(client, "/qwen/v1/chat/completions", chat("hi")))
            return found

        fates = [fate for found in await asyncio.gather(*(press() for _ in range(6))) for fate in found]
    elapsed = time.monotonic() - started
    entry = sandbox.ledger(times=True)["providers"]["qwen"]
    admitted = sorted(set(entry["times"]) - set(entry["limited_times"]))
    assert entry["ok"] == fates.count("stop") <= burst + rate * elapsed
    assert entry["limited"] == fates.count("429") > 0
    windows = [(a, b) for i, a in enumerate(admitted) for b in admitted[i:]]
    assert all(admitted.index(b) - admitted.index(a) + 1 <= burst + rate * (b - a) + 1.01 for a, b in windows), (
        "some window let more through"
    )
    assert fates.count("stop") >= rate * 1.5


async def test_a_429_says_how_long_to_wait(sandbox: Sandbox) -> None:
    sandbox.set("deepseek", rate=0.25, burst=1)
    async with sandbox.client() as client:
        await client.post(DEEPSEEK, json=chat("one"))
        reply = await client.post(DEEPSEEK, json=chat("two"))
    assert (reply.status_code, reply.headers["retry-after"]) == (429, "4")
    assert sandbox.ledger()["providers"]["deepseek"]["bucket_violations"] == 1


async def test_calls_above_the_concurrency_are_turned_away(sandbox: Sandbox) -> None:
    sandbox.set("doubao", concurrency=3, first_byte=(0.3, 0.3))
    async with sandbox.client() as client:
        calls = (outcome(client, "/doubao/v1/chat/completions", chat(f"{n}")) for n in range(8))
        fates = await asyncio.gather(*calls)
    entry = sandbox.ledger()["providers"]["doubao"]
    assert (fates.count("stop"), fates.count("429")) == (3, 5)
    assert (entry["max_concurrent"], entry["bucket_violations"]) == (3, 0)


async def test_a_second_paid_reply_for_one_purchase_is_counted(sandbox: Sandbox) -> None:
    async with sandbox.client() as client:
        for purchase in ("a", "b", "a"):
            await client.post(DEEPSEEK, json=chat("hi"), headers={"x-client-request-id": purchase})
        await client.post("/qwen/v1/chat/completions", json=chat("hi"), headers={"x-client-request-id": "b"})
    totals = sandbox.ledger()["totals"]
    assert totals["bought_twice"] == 2
    assert totals["bought_twice_ids"] == ["a", "b"]


async def test_an_abandoned_stream_is_not_paid(sandbox: Sandbox) -> None:
    sandbox.set("deepseek", mid_stream_silence=30)
    purchase = {"x-client-request-id": "once"}
    async with sandbox.client() as client:
        with pytest.raises(httpx.ReadTimeout):
            await client.post(DEEPSEEK, json=chat("hi", stream=True), headers=purchase, timeout=0.4)
        sandbox.set("deepseek", mid_stream_silence=0)
        await client.post(DEEPSEEK, json=chat("hi", stream=True), headers=purchase)
    entry = sandbox.ledger()["providers"]["deepseek"]
    assert (entry["abandoned"], entry["ok"], entry["bought_twice"]) == (1, 1, 0)


async def test_a_faulty_reply_is_not_paid(sandbox: Sandbox) -> None:
    async with sandbox.client() as client:
        for kind in ("truncated", "empty", "reset", "html", "http_500"):
            sandbox.set("qwen", **{**dict.fromkeys(FAULTS, 0.0), kind: 1.0})
            await outcome(client, "/qwen/v1/chat/completions", chat("hi"))
    entry = sandbox.ledger()["providers"]["qwen"]
    assert entry["ok"] == 0
    assert entry["faults"] == dict.fromkeys(("truncated", "empty", "reset", "html", "http_500"), 1)


async def _read(client: httpx.AsyncClient, body: dict[str, object], received: list[bytes]) -> None:
    async with client.stream("POST", DEEPSEEK, json=body) as reply:
        async for piece in reply.aiter_bytes():
            received.append(piece)  # noqa: PERF401 - what came before the reset is the point


async def test_a_reset_arrives_in_the_middle_of_the_stream(sandbox: Sandbox) -> None:
    sandbox.set("deepseek", reset=1.0, per_chunk=(0.01, 0.01))
    received: list[bytes] = []
    async with sandbox.client() as client:
        with pytest.raises(httpx.TransportError):
            await _read(client, chat(prompt("x"), stream=True), received)
    assert b'"content":' in b"".join(received)
    assert b"[DONE]" not in b"".join(received)


async def test_a_hanging_call_is_silent_and_then_cut(sandbox: Sandbox) -> None:
    sandbox.set("deepseek", hang=1.0, hang_seconds=0.5)
    started = time.monotonic()
    async with sandbox.client() as client:
        assert await outcome(client, DEEPSEEK, chat("hi")) == "cut"
    assert time.monotonic() - started >= 0.5
    assert sandbox.ledger()["providers"]["deepseek"]["abandoned"] == 0


async def test_models_are_free_and_unlimited_but_need_the_key(sandbox: Sandbox) -> None:
    sandbox.set("qwen", rate=0.1, burst=1)
    async with sandbox.client() as client:
        statuses = {(await client.get("/qwen/v1/models")).status_code for _ in range(5)}
        denied = await client.get("/qwen/v1/models", headers={"authorization": "Bearer wrong"})
    assert statuses == {200}
    assert denied.status_code == 401
    assert "qwen" not in sandbox.ledger()["providers"]
