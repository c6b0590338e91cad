import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest

from citeloop.models.throttling import Adaptation, Breaker, Cause
from citeloop.store.database import Database
from citeloop.store.repositories import channels, pacing, throttling
from citeloop.store.repositories.pacing import Closed, Slot
from citeloop.store.statements import text
from starter.embedded.postgres import EmbeddedPostgres
from tests.store.channel_material import known, row

HOUR = timedelta(hours=1)
FRESH = timedelta()
OLD = timedelta(seconds=30)
QUICK = Adaptation(step_every=timedelta(0))


@pytest.fixture
async def second(postgres: EmbeddedPostgres) -> AsyncIterator[Database]:
    """Another process's pool."""
    opened = Database(postgres.url("app"))
    yield opened
    await opened.close()


async def reserve(database: Database, channel: str) -> Slot | Closed:
    async with database.operator() as op:
        return await pacing.reserve(op, channel, max_wait=HOUR)


async def limited(database: Database, channel: str, *, delay: timedelta | None, age: timedelta = FRESH) -> timedelta:
    async with database.operator() as op:
        return await throttling.met_limit(op, channel, delay=delay, reason="429", age=age)


async def called(database: Database, channel: str) -> None:
    async with database.operator() as op:
        await throttling.counted(op, channel, calls=1, well=True)


async def end_hold(database: Database, channel: str) -> None:
    async with database.operator() as op:
        await op.sql.execute(text("UPDATE channels SET hold_until = NULL WHERE name = :name"), {"name": channel})


async def end_opening(database: Database, channel: str) -> None:
    """As if the breaker had been open long enough."""
    async with database.operator() as op:
        passed = text("UPDATE channels SET breaker_until = clock_timestamp() WHERE name = :name")
        await op.sql.execute(passed, {"name": channel})


async def test_a_429_holds_the_channel_and_lowers_its_rate(database: Database) -> None:
    channel = await known(database, Fraction(10))
    held = await limited(database, channel, delay=timedelta(seconds=3))
    during = await row(database, channel)
    await end_hold(database, channel)
    after = await row(database, channel)
    assert held == timedelta(seconds=3)
    assert (during.effective_rate, during.why.startswith("held until")) == (Fraction(0), True)
    assert (after.effective_rate, after.why) == (Fraction(7), "adaptive: cut after a 429, coming back to 10/s")
    first, then = await reserve(database, channel), await reserve(database, channel)
    assert isinstance(first, Slot)
    assert isinstance(then, Slot)
    assert timedelta(seconds=1 / 7 - 0.001) < then.fire_at - first.fire_at < timedelta(seconds=1 / 7 + 0.001)


async def test_of_calls_made_together_only_the_first_429_cuts(database: Database, second: Database) -> None:
    channel = await known(database, Fraction(10))
    replies = [limited((database, second)[n % 2], channel, delay=timedelta(seconds=1), age=OLD) for n in range(8)]
    await asyncio.gather(*replies)
    assert (await row(database, channel)).adaptive_rate == Fraction(7)
    await limited(database, channel, delay=timedelta(seconds=1), age=FRESH)
    assert (await row(database, channel)).adaptive_rate == Fraction(49, 10)


async def test_no_cut_goes_below_the_floor_and_the_operators_rate_is_cut_from(database: Database) -> None:
    channel = await known(database, Fraction(10))
    async with database.operator() as op:
        await channels.set_rate(op, channel, Fraction(2))
    for _ in range(12):
        await limited(database, channel, delay=timedelta(0))
    assert (await row(database, channel)).adaptive_rate == Fraction(1, 5)


async def test_a_cut_rate_rises_in_steps_after_calls_without_a_429(database: Database) -> None:
    channel = await known(database, Fraction(10))
    await limited(database, channel, delay=timedelta(0))
    rates = []
    async with database.operator() as op:
        await throttling.recover(op, adaptation=QUICK)
    rates.append((await row(database, channel)).adaptive_rate)
    for _ in range(3):
        await called(database, channel)
        async with database.operator() as op:
            await throttling.recover(op, adaptation=QUICK)
        rates.append((await row(database, channel)).adaptive_rate)
    assert rates == [Fraction(7), Fraction(8), Fraction(9), None]
    back = await row(database, channel)
    assert (back.effective_rate, back.why) == (Fraction(10), "channels.toml")


async def test_it_does_not_rise_before_its_time(database: Database) -> None:
    channel = await known(database, Fraction(10))
    await limited(database, channel, delay=timedelta(0))
    await called(database, channel)
    async with database.operator() as op:
        await throttling.recover(op)
    assert (await row(database, channel)).adaptive_rate == Fraction(7)


async def test_a_429_without_a_delay_holds_an_unlimited_channel_longer_each_time(database: Database) -> None:
    channel = await known(database, None)
    held = [await limited(database, channel, delay=None) for _ in range(4)]
    assert [one.total_seconds() for one in held] == [5, 10, 20, 40]
    standing = await row(database, channel)
    assert standing.hold_until is not None
    assert timedelta(seconds=38) < standing.hold_until - datetime.now(UTC) <= timedelta(seconds=40)
    assert standing.adaptive_rate is None


async def test_a_quiet_while_ends_the_streak(database: Database) -> None:
    channel = await known(database, None)
    quiet = Adaptation(quiet=timedelta(0))
    async with database.operator() as op:
        held = [
            await throttling.met_limit(op, channel, delay=None, reason="429", age=FRESH, adaptation=quiet)
            for _ in range(3)
        ]
    assert held == [timedelta(seconds=5)] * 3


async def test_faults_in_a_row_are_counted_and_a_good_call_forgives_them(database: Database) -> None:
    channel = await known(database, None)

    async def fault() -> int:
        async with database.operator() as op:
            return await throttling.counted(op, channel, calls=1, faults=1, struck=True)

    first = [await fault() for _ in range(3)]
    await called(database, channel)
    assert (first, await fault()) == ([1, 2, 3], 1)
    async with database.operator() as op:
        slow = Breaker(within=timedelta(0))
        assert await throttling.counted(op, channel, struck=True, breaker=slow) == 1


async def test_an_open_breaker_closes_the_channel_for_all(database: Database, second: Database) -> None:
    channel = await known(database, None)
    async with database.operator() as op:
        await throttling.open_breaker(op, channel, "5 faults in a row")
        await throttling.open_breaker(op, channel, "again")
    closed = await reserve(second, channel)
    standing = await row(database, channel)
    assert isinstance(closed, Closed)
    assert (closed.cause, closed.reason) == (Cause.BREAKER, "5 faults in a row")
    assert closed.until is not None
    assert timedelta(seconds=8) < closed.until - datetime.now(UTC) <= timedelta(seconds=10)
    assert (standing.effective_rate, standing.drains) == (Fraction(0), True)
    assert standing.why.startswith("breaker: open until")


@pytest.mark.parametrize("rate", [None, Fraction(5)])
async def test_a_half_open_breaker_gives_one_probe_to_the_whole_fleet(
    database: Database, second: Database, rate: Fraction | None
) -> None:
    channel = await known(database, rate)
    async with database.operator() as op:
        await throttling.open_breaker(op, channel, "overloaded")
    await end_opening(database, channel)
    assert "half open" in (await row(database, channel)).why
    looks = await asyncio.gather(*(reserve((database, second)[n % 2], channel) for n in range(20)))
    probes = [one for one in looks if isinstance(one, Slot)]
    assert [one.probe for one in probes] == [True]
    assert all(one.cause is Cause.BREAKER for one in looks if isinstance(one, Closed))
    async with database.operator() as op:
        await throttling.keep_probe(op, channel, span=HOUR)
    assert isinstance(await reserve(second, channel), Closed)
    async with database.operator() as op:
        await throttling.give_up_probe(op, channel)
    again = await reserve(second, channel)
    assert isinstance(again, Slot)
    assert again.probe


async def test_a_probe_that_fails_opens_it_for_longer_and_one_that_passes_closes_it(database: Database) -> None:
    channel = await known(database, None)
    spans = []
    async with database.operator() as op:
        await throttling.open_breaker(op, channel, "overloaded")
    for _ in range(3):
        await end_opening(database, channel)
        assert isinstance(await reserve(database, channel), Slot)
        async with database.operator() as op:
            await throttling.reopen_breaker(op, channel, "the probe failed")
        opened = (await row(database, channel)).breaker_until
        assert opened is not None
        spans.append(round((opened - datetime.now(UTC)).total_seconds()))
    assert spans == [20, 40, 80]
    async with database.operator() as op:
        await channels.close_breaker(op, channel)
    slot = await reserve(database, channel)
    assert isinstance(slot, Slot)
    assert not slot.probe


async def test_resuming_closes_the_breaker_and_forgets_its_strikes(database: Database) -> None:
    channel = await known(database, None)
    async with database.operator() as op:
        await throttling.counted(op, channel, struck=True)
        await throttling.open_breaker(op, channel, "overloaded")
        await channels.resume(op, channel)
        assert await throttling.counted(op, channel, struck=True) == 1
    assert (await row(database, channel)).breaker_until is None


async def test_a_persons_pause_is_not_overwritten_by_a_providers(database: Database) -> None:
    channel = await known(database, None)
    async with database.operator() as op:
        await channels.pause(op, channel, "no money", Cause.EXHAUSTED)
    drained = (await row(database, channel)).drains
    async with database.operator() as op:
        await channels.pause(op, channel, "maintenance")
        await channels.pause(op, channel, "no money", Cause.EXHAUSTED)
    standing = await row(database, channel)
    assert drained
    assert (standing.pause_cause, standing.pause_reason, standing.drains) == ("operator", "maintenance", False)


async def test_a_quota_that_the_provider_calls_used_up_lets_work_move_on(database: Database) -> None:
    channel = await known(database, None)
    until = datetime.now(UTC) + HOUR
    async with database.operator() as op:
        await throttling.exhaust(op, channel, until=until, reason="daily quota")
    closed = await reserve(database, channel)
    assert closed == Closed(until=until, reason="daily quota", cause=Cause.EXHAUSTED)
    assert (await row(database, channel)).drains


async def test_a_dispatch_of_several_calls_takes_their_time(database: Database) -> None:
    channel = await known(database, Fraction(10), calls_per_dispatch=4)
    slots = [await reserve(database, channel) for _ in range(3)]
    waits = [round(slot.wait.total_seconds(), 1) for slot in slots if isinstance(slot, Slot)]
    assert waits == [0, 0.4, 0.8]
    assert (await row(database, channel)).effective_rate == Fraction(10)


async def test_a_persons_concurrency_stands_before_the_files_until_it_is_reset(database: Database) -> None:
    channel = await known(database, Fraction(2), concurrency=8)
    async with database.operator() as op:
        await channels.set_concurrency(op, channel, 3)
        await channels.set_rate(op, channel, Fraction(1))
        lowered = (await channels.slots(op))[f"channel.{channel}"]
    await limited(database, channel, delay=timedelta(0))
    standing = await row(database, channel)
    async with database.operator() as op:
        await channels.reset(op, channel)
        back = (await channels.slots(op))[f"channel.{channel}"]
    after = await row(database, channel)
    assert (lowered, standing.concurrency, back) == (3, 3, 8)
    assert (standing.effective_rate, after.effective_rate) == (Fraction(7, 10), Fraction(2))


async def test_a_reset_lifts_a_delay_that_the_provider_asked_for_and_a_quota(database: Database) -> None:
    channel = await known(database, Fraction(10))
    month = datetime.now(UTC) + timedelta(days=31)
    async with database.operator() as op:
        await throttling.hold(op, channel, until=month, reason="Retry-After 2678400")
        await throttling.exhaust(op, channel, until=month, reason="monthly quota")
        await channels.resume(op, channel)
        resumed = await pacing.reserve(op, channel, max_wait=timedelta(seconds=1))
        await channels.reset(op, channel)
        slots = [await pacing.reserve(op, channel, max_wait=timedelta(seconds=1)) for _ in range(2)]
    standing = await row(database, channel)
    assert isinstance(resumed, Closed)
    assert all(isinstance(slot, Slot) for slot in slots)
    assert (standing.hold_until, standing.quota_until, standing.why) == (None, None, "channels.toml")


async def test_the_last_minutes_calls_are_counted(database: Database) -> None:
    channel = await known(database, None)
    await asyncio.gather(*(called(database, channel) for _ in range(12)))
    async with database.operator() as op:
        await throttling.sweep(op)
    assert (await row(database, channel)).calls_last_minute == 12
