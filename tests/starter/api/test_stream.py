"""Server-sent events over real HTTP: in order, each once, resumed where they broke off, ended when all has ended."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import httpx

from citeloop.models.plan import Stage, State
from citeloop.models.work import Progress
from citeloop.store.repositories import articles, event_feed
from citeloop.store.statements import text
from tests.starter.api.conftest import Door

NOTE = text(
    "INSERT INTO article_events (tenant_id, article_id, kind, stage, state, detail) "
    "VALUES (:tenant, :article, 'note', 'generate', 'running', :detail)"
)


@dataclass(frozen=True)
class Told:
    id: str
    event: str
    data: dict[str, Any]


@asynccontextmanager
async def watched(door: Door, path: str, last: str = "") -> AsyncIterator[AsyncIterator[Told]]:
    headers = {"Last-Event-ID": last} if last else {}
    async with door.http.stream("GET", path, headers=headers, timeout=20) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield _told(answer)


async def _told(answer: httpx.Response) -> AsyncIterator[Told]:
    fields: dict[str, str] = {}
    async for line in answer.aiter_lines():
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "data" in fields:
            yield Told(fields.get("id", ""), fields["event"], json.loads(fields["data"]))
            fields = {}


async def read(door: Door, path: str, number: int, last: str = "") -> list[Told]:
    found: list[Told] = []
    async with watched(door, path, last) as events, asyncio.timeout(20):
        async for one in events:
            found.append(one)
            if len(found) == number:
                break
    return found


async def article_ids(door: Door, campaign_id: str) -> list[str]:
    return [line["article_id"] for line in await door.every(f"/v1/campaigns/{campaign_id}/keywords")]


async def note(door: Door, article_id: str, state: State, stage: Stage = Stage.GENERATE, reason: str = "") -> None:
    async with door.database.tenant(door.tenant.id) as scope:
        await articles.note(scope, article_id, Progress(state=state, stage=stage, reason=reason))


async def test_a_campaign_is_watched_from_its_beginning_to_its_end(served: Door) -> None:
    campaign_id = await served.campaign("w1", "w2")
    first, second = await article_ids(served, campaign_id)
    path = f"/v1/campaigns/{campaign_id}/events"
    await note(served, first, State.RUNNING)
    seen: list[Told] = []
    async with watched(served, path) as events, asyncio.timeout(20):
        async for one in events:
            seen.append(one)
            if len(seen) == 1:
                await note(served, second, State.RUNNING)
            if len(seen) == 2:
                await note(served, second, State.DONE)
                await note(served, first, State.CANCELLED, reason="enough")
    assert [(one.event, one.data.get("keyword"), one.data.get("state")) for one in seen] == [
        ("note", "w1", "running"),
        ("note", "w2", "running"),
        ("note", "w2", "done"),
        ("note", "w1", "cancelled"),
        ("end", None, None),
    ]
    assert seen[3].data["detail"] == "enough"


async def test_a_reader_that_comes_back_misses_nothing_and_sees_nothing_twice(served: Door) -> None:
    article_id = await served.article("resumed")
    path = f"/v1/articles/{article_id}/events/stream"
    for number in range(7):
        await note(served, article_id, State.RUNNING, reason=f"r{number}")
    seen: list[Told] = []
    while len(seen) < 7:
        seen.extend(await read(served, path, 2, last=seen[-1].id if seen else ""))
        if len(seen) == 6:
            await note(served, article_id, State.CANCELLED, reason="r7")
    assert [one.data["detail"] for one in seen] == [f"r{number}" for number in range(8)]
    assert [one.data["seq"] for one in seen] == sorted(one.data["seq"] for one in seen)
    rest = await read(served, path, 5, last=seen[5].id)
    assert [one.data.get("detail") for one in rest] == ["r6", "r7", None]


async def test_after_the_end_a_reader_that_has_it_all_is_told_to_stop(served: Door) -> None:
    article_id = await served.article("over")
    path = f"/v1/articles/{article_id}/events/stream"
    await note(served, article_id, State.CANCELLED)
    seen = await read(served, path, 5)
    assert [one.event for one in seen] == ["note", "end"]
    again = await served.http.get(path, headers={"Last-Event-ID": seen[0].id})
    assert again.status_code == 204


async def test_an_event_that_commits_late_is_not_skipped(served: Door) -> None:
    """Its number is lower than that of an event that was committed, and could have been told, before it."""
    campaign_id = await served.campaign("slow", "fast")
    slow, fast = await article_ids(served, campaign_id)
    tenant = served.tenant.id
    path = f"/v1/campaigns/{campaign_id}/events"
    async with served.database.tenant(tenant) as late:
        await late.sql.execute(NOTE, {"tenant": tenant, "article": slow, "detail": "first number"})
        async with served.database.tenant(tenant) as early:
            await early.sql.execute(NOTE, {"tenant": tenant, "article": fast, "detail": "second number"})
        reading = asyncio.create_task(read(served, path, 2))
        await asyncio.sleep(1.5)
        assert not reading.done()
    seen = await reading
    assert [one.data["detail"] for one in seen] == ["first number", "second number"]


async def test_more_events_than_a_page_come_in_order(served: Door) -> None:
    article_id = await served.article("talkative")
    number = event_feed.PAGE * 2 + 7
    many = text(
        "INSERT INTO article_events (tenant_id, article_id, kind, stage, state, detail) "
        "SELECT :tenant, :article, 'note', 'generate', 'running', n::text FROM generate_series(1, :number) n"
    )
    async with served.database.tenant(served.tenant.id) as scope:
        values = {"tenant": served.tenant.id, "article": article_id, "number": number}
        await scope.sql.execute(many, values)
    path = f"/v1/articles/{article_id}/events/stream"
    seen = await read(served, path, number)
    assert [one.data["detail"] for one in seen] == [str(n + 1) for n in range(number)]
    rest = await read(served, path, 10, last=seen[number - 11].id)
    assert [one.data["detail"] for one in rest] == [one.data["detail"] for one in seen[-10:]]


async def test_a_quiet_stream_gives_a_sign_of_life(served: Door) -> None:
    article_id = await served.article("quiet")
    there = served.app.state.wiring
    served.app.state.wiring = replace(there, heartbeat=timedelta(milliseconds=100))
    try:
        async with served.http.stream("GET", f"/v1/articles/{article_id}/events/stream", timeout=10) as answer:
            async for line in answer.aiter_lines():
                if line == ": nothing new":
                    break
    finally:
        served.app.state.wiring = there


async def test_an_id_that_was_never_given_out_is_refused(served: Door) -> None:
    article_id = await served.article("forged")
    for forged in ("7", "x-y-z", "1-2-3-4", "9" * 59):
        answer = await served.http.get(f"/v1/articles/{article_id}/events/stream", headers={"Last-Event-ID": forged})
        assert (answer.status_code, answer.json()["field"]) == (422, "Last-Event-ID")


async def test_events_from_before_a_restore_are_told_too(served: Door) -> None:
    """A database restored from a dump counts its transactions anew: the kept numbers lie in the future."""
    article_id = await served.article("restored")
    old = text(
        "INSERT INTO article_events (tenant_id, article_id, kind, stage, state, detail, written_in) "
        "VALUES (:tenant, :article, 'note', 'generate', 'running', 'before', 4000000000000)"
    )
    async with served.database.tenant(served.tenant.id) as scope:
        await scope.sql.execute(old, {"tenant": served.tenant.id, "article": article_id})
    await note(served, article_id, State.CANCELLED, reason="after")
    seen = await read(served, f"/v1/articles/{article_id}/events/stream", 3)
    assert [one.data.get("detail") for one in seen] == ["before", "after", None]
