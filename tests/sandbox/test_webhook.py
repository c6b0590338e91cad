"""The webhook site: signatures, callbacks twice, late and never, and the lost reply."""

import asyncio
import base64
import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
import pytest_asyncio

from tests.sandbox.running import Sandbox, eventually, get

SECRET = "whsec_Y2l0ZWxvb3Agc2FuZGJveCwgMzIgYnl0ZXMgbG9uZyE="


def signature(message_id: str, timestamp: str, body: bytes) -> str:
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    signed = message_id.encode() + b"." + timestamp.encode() + b"." + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def headers(message_id: str, body: bytes, *, age: int = 0) -> dict[str, str]:
    timestamp = str(int(time.time()) - age)
    return {
        "webhook-id": message_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": signature(message_id, timestamp, body),
        "content-type": "application/json",
    }


@dataclass
class Inbox:
    """A receiver on loopback: keeps what came; answers with the statuses it was given, then 200."""

    url: str = ""
    statuses: list[int] = field(default_factory=list)
    came: list[tuple[float, dict[str, str], bytes]] = field(default_factory=list)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        lines = [line.partition(": ") for line in head.split("\r\n")[1:] if line]
        found = {name.lower(): value for name, _, value in lines}
        body = await reader.readexactly(int(found["content-length"]))
        self.came.append((time.monotonic(), found, body))
        status = self.statuses.pop(0) if self.statuses else 200
        writer.write(f"HTTP/1.1 {status} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode())
        await writer.drain()
        writer.close()


@pytest_asyncio.fixture
async def inbox() -> AsyncIterator[Inbox]:
    box = Inbox()
    server = await asyncio.start_server(box.handle, "127.0.0.1", 0)
    box.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/callback"
    async with server:
        yield box


def event(inbox: Inbox | None = None, **fields: Any) -> bytes:
    data = {
        "publication_id": "p1",
        "marker": "marker-1",
        "title": "A title",
        "slug": "a-title",
        "html": "<p>Words.</p>",
        "excerpt": "",
        "locale": "en",
        "callback_url": inbox.url if inbox else "",
        "picture": None,
        **fields,
    }
    return json.dumps({"type": "article.publish", "timestamp": "2026-01-01T00:00:00Z", "data": data}).encode()


async def send(sandbox: Sandbox, body: bytes, message_id: str = "msg_1") -> httpx.Response:
    async with httpx.AsyncClient(verify=False, base_url=sandbox.url, timeout=5) as client:
        return await client.post("/hook", content=body, headers=headers(message_id, body))


async def look_up(sandbox: Sandbox, marker: str) -> httpx.Response:
    async with httpx.AsyncClient(verify=False, base_url=sandbox.url) as client:
        return await client.get("/hook/lookup", params={"marker": marker}, headers=headers("look", b""))


async def test_a_page_is_accepted_placed_and_confirmed_by_a_signed_callback(sandbox: Sandbox, inbox: Inbox) -> None:
    picture = {"media_type": "image/png", "base64": base64.b64encode(b"png").decode(), "alt": "Alt"}
    reply = await send(sandbox, event(inbox, picture=picture))
    assert reply.status_code == 202
    await eventually(lambda: inbox.came)
    _, found, body = inbox.came[0]
    assert found["webhook-signature"] == signature(found["webhook-id"], found["webhook-timestamp"], body)
    told = json.loads(body)
    url = f"{sandbox.url}/hook/pages/{reply.json()['remote_id']}"
    assert told["type"] == "article.published"
    assert told["data"] == {
        "publication_id": "p1",
        "marker": "marker-1",
        "remote_id": reply.json()["remote_id"],
        "url": url,
    }
    assert "<p>Words.</p>" in get(url).text
    assert get(f"{url}/picture").content == b"png"


async def test_a_doubled_callback_comes_twice_with_one_id(sandbox: Sandbox, inbox: Inbox) -> None:
    sandbox.set("hook", doubled=1.0)
    await send(sandbox, event(inbox))
    await eventually(lambda: len(inbox.came) == 2)
    assert len({found["webhook-id"] for _, found, _ in inbox.came}) == 1
    entry = sandbox.ledger()["sites"]["hook"]
    assert (entry["doubled"], entry["callbacks_sent"]) == (1, 2)


async def test_a_late_callback_is_late(sandbox: Sandbox, inbox: Inbox) -> None:
    sandbox.set("hook", late=1.0, late_seconds=0.6)
    started = time.monotonic()
    await send(sandbox, event(inbox))
    await eventually(lambda: inbox.came)
    assert inbox.came[0][0] - started >= 0.6
    assert sandbox.ledger()["sites"]["hook"]["late"] == 1


async def test_a_callback_that_never_comes_can_be_looked_up(sandbox: Sandbox, inbox: Inbox) -> None:
    sandbox.set("hook", never=1.0)
    await send(sandbox, event(inbox))
    await eventually(lambda: sandbox.ledger()["sites"]["hook"]["never"] == 1)
    assert inbox.came == []
    assert (await look_up(sandbox, "marker-1")).json()["publication_id"] == "p1"


async def test_a_refused_callback_is_repeated_with_the_same_id(sandbox: Sandbox, inbox: Inbox) -> None:
    sandbox.set("hook", retry_waits=[0.05, 0.05])
    inbox.statuses = [503, 500]
    await send(sandbox, event(inbox))
    await eventually(lambda: len(inbox.came) == 3)
    assert len({found["webhook-id"] for _, found, _ in inbox.came}) == 1
    await eventually(lambda: sandbox.ledger()["sites"]["hook"]["callbacks_delivered"] == 1)


async def test_a_lost_reply_leaves_the_page_in_place(sandbox: Sandbox) -> None:
    sandbox.set("hook", lost_reply=1.0)
    with pytest.raises(httpx.RemoteProtocolError):
        await send(sandbox, event())
    found = await look_up(sandbox, "marker-1")
    assert found.status_code == 200
    assert get(found.json()["url"]).status_code == 200
    assert sandbox.ledger()["totals"]["lost_replies"] == 1


async def test_the_same_webhook_id_changes_nothing(sandbox: Sandbox) -> None:
    replies = [(await send(sandbox, event())).json() for _ in range(2)]
    assert replies[0] == replies[1]
    entry = sandbox.ledger()["sites"]["hook"]
    assert (entry["posts"], entry["duplicate_posts"], entry["repeats_recognised"]) == (1, 0, 1)


async def test_the_same_marker_under_another_webhook_id_is_a_duplicate(sandbox: Sandbox) -> None:
    await send(sandbox, event())
    await send(sandbox, event(title="Another title"), "msg_2")
    assert sandbox.ledger()["sites"]["hook"]["duplicate_posts"] == 1


@pytest.mark.parametrize("spoil", ["signature", "age", "body"])
async def test_a_forged_or_old_delivery_is_refused(sandbox: Sandbox, spoil: str) -> None:
    body = event()
    sent = headers("msg_1", body, age=600 if spoil == "age" else 0)
    if spoil == "signature":
        sent["webhook-signature"] = "v1,AAAA"
    async with httpx.AsyncClient(verify=False, base_url=sandbox.url) as client:
        reply = await client.post("/hook", content=body + (b" " if spoil == "body" else b""), headers=sent)
    assert reply.status_code == 401
    assert "hook" not in sandbox.ledger()["sites"]


async def test_an_unknown_marker_is_404_and_an_unsigned_question_401(sandbox: Sandbox) -> None:
    assert (await look_up(sandbox, "nothing")).status_code == 404
    assert get(f"{sandbox.url}/hook/lookup", marker="marker-1").status_code == 401


async def test_a_withdrawn_page_is_gone(sandbox: Sandbox) -> None:
    placed = (await send(sandbox, event())).json()
    body = event().replace(b"article.publish", b"article.withdraw")
    assert (await send(sandbox, body, "msg_2")).status_code == 200
    assert get(f"{sandbox.url}/hook/pages/{placed['remote_id']}").status_code == 404
