import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest

from citeloop.models.channel import Catalog
from citeloop.store.database import Database
from citeloop.store.repositories import allowances, channels, pacing
from citeloop.store.repositories.allowances import Taken
from citeloop.store.repositories.pacing import Closed, Slot
from citeloop.store.statements import text
from starter.embedded.postgres import EmbeddedPostgres
from tests.store.channel_material import known, row, spec

NOON = datetime.now(UTC) - timedelta(hours=12)
DAY = (NOON, NOON + timedelta(days=1))
NEXT = (DAY[1], DAY[1] + timedelta(days=1))


@pytest.fixture
async def second(postgres: EmbeddedPostgres) -> AsyncIterator[Database]:
    opened = Database(postgres.url("app"))
    yield opened
    await opened.close()


async def take(
    database: Database, channel: str, tokens: int, day: tuple[datetime, datetime] = DAY, calls: int = 1
) -> Taken | Closed:
    async with database.operator() as op:
        return await allowances.take(op, channel, tokens=tokens, day=day, calls=calls)


async def settle(database: Database, channel: str, taken: Taken | Closed, tokens: int) -> None:
    assert isinstance(taken, Taken)
    async with database.operator() as op:
        await allowances.settle(op, channel, taken, tokens)


async def age(database: Database, channel: str, seconds: float) -> None:
    """As if everything taken had been taken so much earlier."""
    earlier = text("UPDATE channel_takings SET at = at - CAST(:span AS interval) WHERE name = :name")
    async with database.operator() as op:
        await op.sql.execute(earlier, {"name": channel, "span": timedelta(seconds=seconds)})


async def test_no_minute_holds_more_tokens_than_allowed_whoever_takes_them(
    database: Database, second: Database
) -> None:
    channel = await known(database, None, tokens_per_minute=1000)
    taken = await asyncio.gather(*(take((database, second)[n % 2], channel, 90) for n in range(30)))
    assert len([one for one in taken if isinstance(one, Taken)]) == 11
    assert (await row(database, channel)).tokens_last_minute == 990


async def test_what_was_not_used_is_free_again_and_what_was_used_beyond_counts(database: Database) -> None:
    channel = await known(database, None, tokens_per_minute=1000)
    first = await take(database, channel, 900)
    assert isinstance(await take(database, channel, 200), Closed)
    await settle(database, channel, first, 300)
    second = await take(database, channel, 700)
    assert isinstance(second, Taken)
    await settle(database, channel, second, 900)
    assert isinstance(await take(database, channel, 1), Closed)
    assert (await row(database, channel)).tokens_last_minute == 1200


async def test_a_task_waits_until_enough_has_fallen_out_of_the_minute(database: Database) -> None:
    channel = await known(database, None, tokens_per_minute=1000)
    await take(database, channel, 600)
    await age(database, channel, 20)
    await take(database, channel, 400)
    soon, later = await take(database, channel, 500), await take(database, channel, 900)
    assert isinstance(soon, Closed)
    assert isinstance(later, Closed)
    assert soon.until is not None
    assert later.until is not None
    assert round((soon.until - datetime.now(UTC)).total_seconds()) == 40
    assert round((later.until - datetime.now(UTC)).total_seconds()) == 60
    await age(database, channel, 40)
    assert isinstance(await take(database, channel, 500), Taken)


async def test_a_call_that_may_take_more_than_a_minutes_tokens_takes_the_minute(database: Database) -> None:
    channel = await known(database, None, tokens_per_minute=1000)
    taken = await take(database, channel, 5000)
    assert isinstance(taken, Taken)
    assert taken.tokens == 1000


async def test_a_days_calls_are_exact_and_the_channel_waits_for_the_reset(database: Database, second: Database) -> None:
    channel = await known(database, None, calls_per_day=7)
    taken = await asyncio.gather(*(take((database, second)[n % 2], channel, 10) for n in range(20)))
    closed = [one for one in taken if isinstance(one, Closed)]
    standing = await row(database, channel)
    async with database.operator() as op:
        look = await pacing.reserve(op, channel, max_wait=timedelta(seconds=1))
    assert (len(closed), {one.until for one in closed}) == (13, {DAY[1]})
    assert isinstance(look, Closed)
    assert look.until == DAY[1]
    assert (standing.effective_rate, standing.calls_of_quota, standing.drains) == (Fraction(0), 7, False)
    assert standing.why.startswith("quota: used up until")
    assert "7 of 7 calls a day" in standing.why
    assert isinstance(await take(database, channel, 10, NEXT), Taken)


async def test_tokens_of_a_day_are_counted_as_they_were_used(database: Database) -> None:
    channel = await known(database, None, tokens_per_day=1000)
    first = await take(database, channel, 800)
    await settle(database, channel, first, 100)
    second = await take(database, channel, 800)
    await settle(database, channel, second, 850)
    assert isinstance(await take(database, channel, 100), Closed)
    assert (await row(database, channel)).tokens_of_quota == 950


async def test_a_larger_quota_in_the_file_opens_the_channel(database: Database) -> None:
    channel = await known(database, None, calls_per_day=1)
    await take(database, channel, 1)
    assert isinstance(await take(database, channel, 1), Closed)
    async with database.operator() as op:
        await channels.sync(op, Catalog(channels=(spec(channel, None, calls_per_day=2),)))
        look = await pacing.reserve(op, channel, max_wait=timedelta(seconds=1))
    assert isinstance(look, Slot)
    assert isinstance(await take(database, channel, 1), Taken)


async def test_a_dispatch_of_several_calls_takes_as_many_of_the_day(database: Database) -> None:
    channel = await known(database, None, calls_per_day=8)
    taken = [await take(database, channel, 1, calls=3) for _ in range(3)]
    assert [isinstance(one, Taken) for one in taken] == [True, True, False]


async def test_a_clock_that_lags_at_midnight_neither_takes_the_new_day_back_nor_empties_it(database: Database) -> None:
    channel = await known(database, None, calls_per_day=5)
    await take(database, channel, 10, DAY)
    taken = [await take(database, channel, 10, day) for day in (NEXT, DAY, NEXT, DAY, NEXT)]
    assert [one.since for one in taken if isinstance(one, Taken)] == [NEXT[0]] * 5
    assert isinstance(await take(database, channel, 10, NEXT), Closed)
    assert isinstance(await take(database, channel, 10, DAY), Closed)
    assert (await row(database, channel)).quota_until == NEXT[1]
