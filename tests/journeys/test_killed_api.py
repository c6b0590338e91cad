"""The API dies between the rows it answered for and the workflows they stand for."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator

import httpx
import pytest

from citeloop.models.plan import State
from citeloop.store.repositories.api_keys import KeyRole
from citeloop.store.statements import text
from starter import files, keys, simulated
from tests.installation import Installation, eventually
from tests.journeys.conftest import Installing, Tell

pytestmark = [pytest.mark.journey, pytest.mark.timeout(240)]

ARTICLES = 60
_STANDING = text(
    "SELECT count(*) AS rows, count(started_at) AS started, count(*) FILTER (WHERE state = :done) AS done "
    "FROM articles WHERE tenant_id = :tenant"
)


async def test_what_was_accepted_before_the_api_was_killed_is_done_all_the_same(
    installing: Installing, tell: Tell
) -> None:
    """Started by the sweeper, except those that the API started in time."""
    async with installing() as journey, _door(journey) as http:
        accepted: set[str] = set()
        submissions = [asyncio.create_task(_submit(http, number, accepted)) for number in range(ARTICLES)]
        await eventually(lambda: _some(accepted), within=20, every=0.005)
        os.kill(journey.stack.endpoints.pids["api"], signal.SIGKILL)
        await asyncio.gather(*submissions)
        rows, started, _ = await _standing(journey)
        await eventually(lambda: _all_done(journey), within=120, every=0.5)
        known = {article_id for article_id in accepted if (await journey.article(article_id)).state is State.DONE}
        totals = (await journey.sandbox.ledger())["totals"]
    assert started < rows, "the API was quicker than the kill: nothing was left to lose"
    assert accepted
    assert known == accepted
    assert totals["bought_twice"] == 0
    tell(answered_202=len(accepted), committed=rows, started_before_the_kill=started, done=rows)


@contextlib.asynccontextmanager
async def _door(journey: Installation) -> AsyncIterator[httpx.AsyncClient]:
    made = await keys.create(journey.database, journey.tenant, "journey", KeyRole.OPERATOR)
    headers = {"authorization": f"Bearer {made.key}", "content-type": "application/json"}
    async with httpx.AsyncClient(base_url=journey.stack.api_url or "", headers=headers, trust_env=False) as http:
        content = files.read_brand(simulated.BRAND).model_dump_json()
        (await http.put("/v1/brands/milvus", content=content)).raise_for_status()
        yield http


async def _submit(http: httpx.AsyncClient, number: int, accepted: set[str]) -> None:
    body = {"brand": "milvus", "keyword": f"killed door {number}", "stages": ["generate"]}
    with contextlib.suppress(httpx.TransportError):
        answer = await http.post("/v1/articles", json=body)
        assert answer.status_code == httpx.codes.ACCEPTED, answer.text
        accepted.add(answer.json()["id"])


async def _some(accepted: set[str]) -> bool:
    return len(accepted) >= ARTICLES // 3


async def _standing(journey: Installation) -> tuple[int, int, int]:
    async with journey.database.tenant(journey.tenant.id) as scope:
        values = {"tenant": journey.tenant.id, "done": State.DONE}
        row = (await scope.sql.execute(_STANDING, values)).one()
        return int(row.rows), int(row.started), int(row.done)


async def _all_done(journey: Installation) -> bool:
    rows, _, done = await _standing(journey)
    return rows == done
