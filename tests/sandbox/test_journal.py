"""The ledger's journal, and the one refusal that can be asked for."""

import httpx

from tests.sandbox.running import Sandbox, chat, prompt

DEEPSEEK = "/deepseek/v1/chat/completions"


async def _ask(http: httpx.AsyncClient, purchase_id: str, body: object = None) -> httpx.Response:
    sent = chat(prompt("vector files")) if body is None else body
    return await http.post(DEEPSEEK, json=sent, headers={"x-client-request-id": purchase_id})


async def test_the_journal_tells_of_each_call_whose_it_was_and_whether_it_was_paid(sandbox: Sandbox) -> None:
    async with sandbox.client() as http:
        await _ask(http, "t/a/generate")
        await _ask(http, "t/b/generate", {})
        journal = (await http.get("/_ledger", params={"journal": "1"})).json()["journal"]
    first, second = journal
    assert first[:2] == ["deepseek", "t/a/generate"]
    assert first[2] <= first[3]
    assert (first[4:], second[4:]) == ([False, True], [False, False])
    assert "journal" not in sandbox.ledger(times=True)


async def test_a_refusal_that_was_asked_for_comes_once_and_overdraws_no_bucket(sandbox: Sandbox) -> None:
    async with sandbox.client() as http:
        assert (await http.post("/_limit", json={"deepseek": 10})).is_success
        refused, served = await _ask(http, "t/a/generate"), await _ask(http, "t/a/generate")
    entry = sandbox.ledger()["providers"]["deepseek"]
    assert (refused.status_code, refused.headers["retry-after"], served.status_code) == (429, "10", 200)
    assert (entry["limited"], entry["bucket_violations"]) == (1, 0)


async def test_a_refusal_of_an_unknown_service_or_without_sense_is_told(sandbox: Sandbox) -> None:
    async with sandbox.client() as http:
        assert (await http.post("/_limit", json={"nobody": 10})).status_code == 422
        assert (await http.post("/_limit", content=b"no")).status_code == 422
