import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest

from citeloop.models.channel import Catalog, SiteKind, SiteSpec
from citeloop.models.throttling import Cause
from citeloop.store.database import Database
from citeloop.store.errors import NotFound
from citeloop.store.repositories import channels, pacing, throttling
from citeloop.store.repositories.pacing import Closed, Slot
from citeloop.store.repositories.tenants import TenantRow
from citeloop.store.statements import text
from starter.embedded.postgres import EmbeddedPostgres
from tests.store.channel_material import known, name, row, spec

HOUR = timedelta(hours=1)


@pytest.fixture
async def second(postgres: EmbeddedPostgres) -> AsyncIterator[Database]:
    """Another process's pool."""
    opened = Database(postgres.url("app"))
    yield opened
    await opened.close()


async def reserve(database: Database, channel: str, max_wait: timedelta = HOUR) -> Slot | Closed:
    async with database.operator() as op:
        return await pacing.reserve(op, channel, max_wait=max_wait)


def is_strict_bucket(times: list[datetime], rate: Fraction, burst: int) -> bool:
    """No stretch of time holds more calls than burst plus what the rate adds in it; instants are whole microseconds."""
    times = sorted(times)
    slack = Fraction(1, 10**6)
    for first in range(len(times)):
        for last in range(first, len(times)):
            stretch = Fraction((times[last] - times[first]) // timedelta(microseconds=1), 10**6)
            if last - first + 1 > burst + rate * (stretch + slack):
                return False
    return True


@pytest.mark.parametrize(("rate", "burst"), [(Fraction(3), 1), (Fraction(50), 5), (Fraction(7, 3), 3)])
async def test_two_hundred_at_once_from_two_processes_get_a_strict_token_bucket(
    database: Database, second: Database, rate: Fraction, burst: int
) -> None:
    channel = await known(database, rate, burst=burst)
    taken = await asyncio.gather(*(reserve((database, second)[n % 2], channel) for n in range(200)))
    slots = [slot for slot in taken if isinstance(slot, Slot)]
    assert len(slots) == 200
    times = sorted(slot.fire_at for slot in slots)
    assert is_strict_bucket(times, rate, burst)
    least = timedelta(seconds=float((200 - burst) / rate))
    assert least - timedelta(milliseconds=1) <= times[-1] - times[0]
    assert times[-1] - times[0] <= least + timedelta(seconds=2)


async def test_slots_do_not_drift_over_a_thousand_thirds(database: Database) -> None:
    channel = await known(database, Fraction(3))
    async with database.operator() as op:
        for _ in range(1000):
            await pacing.reserve(op, channel, max_wait=HOUR)
        last = await pacing.reserve(op, channel, max_wait=HOUR)
        exact = text("SELECT interval_us * 3 FROM channels WHERE name = :name")
        thrice = (await op.sql.execute(exact, {"name": channel})).scalar_one()
    assert isinstance(last, Slot)
    assert 1_000_000 <= thrice <= 1_000_000 + Fraction(1, 10**8)
    assert timedelta(seconds=1000 / 3 - 10) < last.wait <= timedelta(seconds=1000 / 3 + 0.001)


async def test_an_idle_channel_saves_up_its_burst_and_no_more(database: Database) -> None:
    channel = await known(database, Fraction(1, 60), burst=3)
    async with database.operator() as op:
        waits = [await pacing.reserve(op, channel, max_wait=HOUR) for _ in range(5)]
    rounded = [round(slot.wait.total_seconds()) for slot in waits if isinstance(slot, Slot)]
    assert rounded == [0, 0, 0, 60, 120]


async def test_a_slot_too_far_away_is_not_taken(database: Database) -> None:
    channel = await known(database, Fraction(1, 60))
    first = await reserve(database, channel)
    refused = [await reserve(database, channel, timedelta(seconds=5)) for _ in range(3)]
    patient = await reserve(database, channel)
    assert isinstance(first, Slot)
    assert all(isinstance(closed, Closed) and closed.until is not None for closed in refused)
    assert isinstance(patient, Slot)
    assert patient.wait <= timedelta(seconds=60)


async def test_an_unlimited_channel_is_not_written_to(database: Database) -> None:
    channel = await known(database, None)
    version = text("SELECT xmin::text FROM channels WHERE name = :name")
    async with database.operator() as op:
        before = (await op.sql.execute(version, {"name": channel})).scalar_one()
    slot = await reserve(database, channel)
    async with database.operator() as op:
        after = (await op.sql.execute(version, {"name": channel})).scalar_one()
    assert isinstance(slot, Slot)
    assert slot.wait == timedelta()
    assert before == after


async def test_a_hold_closes_the_channel_for_all_and_is_only_ever_extended(
    database: Database, second: Database, tenant: TenantRow
) -> None:
    channel = await known(database, Fraction(100), burst=10)
    long, short = (datetime.now(UTC) + timedelta(seconds=seconds) for seconds in (60, 5))
    async with database.operator() as op:
        await throttling.hold(op, channel, until=long, reason="Retry-After 60")
        await throttling.hold(op, channel, until=short, reason="Retry-After 5")
    async with second.tenant(tenant.id) as scope:
        closed = await pacing.reserve(scope, channel, max_wait=HOUR)
    held = await row(database, channel)
    assert closed == Closed(until=long, reason="Retry-After 60")
    assert held.effective_rate == 0
    assert "Retry-After 60" in held.why


async def test_after_a_hold_there_is_no_burst(database: Database) -> None:
    channel = await known(database, Fraction(10), burst=5)
    async with database.operator() as op:
        await throttling.hold(op, channel, until=datetime.now(UTC) + timedelta(seconds=0.3), reason="429")
    await asyncio.sleep(0.32)
    async with database.operator() as op:
        slots = [await pacing.reserve(op, channel, max_wait=HOUR) for _ in range(3)]
    times = [slot.fire_at for slot in slots if isinstance(slot, Slot)]
    assert len(times) == 3
    assert is_strict_bucket(times, Fraction(10), burst=2)
    assert times[2] - times[0] > timedelta(seconds=0.1)


async def test_a_paused_channel_reserves_nothing_until_it_is_resumed(database: Database) -> None:
    channel = await known(database, Fraction(5))
    async with database.operator() as op:
        await channels.pause(op, channel, "no money")
    paused = await reserve(database, channel)
    standing = await row(database, channel)
    async with database.operator() as op:
        await channels.resume(op, channel)
    assert paused == Closed(until=None, reason="no money", cause=Cause.OPERATOR)
    assert (standing.effective_rate, standing.why) == (Fraction(0), "paused: no money")
    assert isinstance(await reserve(database, channel), Slot)
    assert (await row(database, channel)).why == "channels.toml"


async def test_a_persons_rate_stands_in_place_of_the_files_and_a_new_file_keeps_it(database: Database) -> None:
    channel = await known(database, Fraction(2))
    async with database.operator() as op:
        await channels.set_rate(op, channel, Fraction(1, 2))
    lowered = await row(database, channel)
    async with database.operator() as op:
        await channels.sync(op, Catalog(channels=(spec(channel, Fraction(1, 4)),)))
    refiled = await row(database, channel)
    async with database.operator() as op:
        await channels.set_rate(op, channel, Fraction(0))
    stopped = await reserve(database, channel)
    async with database.operator() as op:
        await channels.set_rate(op, channel, None)
        slots = [await pacing.reserve(op, channel, max_wait=HOUR) for _ in range(2)]
    assert (lowered.effective_rate, lowered.why) == (Fraction(1, 2), "set by the operator")
    assert (refiled.effective_rate, refiled.rate) == (Fraction(1, 2), Fraction(1, 4))
    assert stopped == Closed(until=None, reason="its rate is set to 0", cause=Cause.OPERATOR)
    assert isinstance(slots[1], Slot)
    assert round(slots[1].wait.total_seconds()) == 4


async def test_what_the_file_lost_is_marked_and_comes_back(database: Database) -> None:
    channel = await known(database, Fraction(2))
    site = SiteSpec(name=name(), kind=SiteKind.WEBHOOK, base_url="http://127.0.0.1")
    async with database.operator() as op:
        await channels.sync(op, Catalog(sites=(site,)))
    gone = await row(database, channel)
    async with database.operator() as op:
        await channels.sync(op, Catalog(channels=(spec(channel, Fraction(2)),)))
        vanished = text("SELECT vanished FROM sites WHERE name = :name")
        site_gone = (await op.sql.execute(vanished, {"name": site.name})).scalar_one()
    back = await row(database, channel)
    assert gone.vanished
    assert site_gone
    assert not back.vanished


async def test_counts_add_up(database: Database) -> None:
    channel = await known(database, None)

    async def call(n: int) -> None:
        async with database.operator() as op:
            await throttling.counted(op, channel, calls=1, limited=n % 2)

    await asyncio.gather(*(call(n) for n in range(20)))
    async with database.operator() as op:
        await throttling.counted(op, channel, faults=2)
    counted = await row(database, channel)
    assert (counted.calls, counted.limited, counted.faults) == (20, 10, 2)
    assert counted.last_call_at is not None


async def test_an_unknown_channel_is_named(database: Database) -> None:
    with pytest.raises(NotFound, match="no channel 'nowhere'"):
        await reserve(database, "nowhere")


@pytest.mark.parametrize("stopped_between", [False, True])
async def test_a_faster_rate_does_not_wait_for_a_turn_that_the_slow_one_put_a_day_ahead(
    database: Database, *, stopped_between: bool
) -> None:
    channel = await known(database, Fraction(1, 86400))
    async with database.operator() as op:
        assert isinstance(await pacing.reserve(op, channel, max_wait=timedelta(seconds=1)), Slot)
    async with database.operator() as op:
        assert isinstance(await pacing.reserve(op, channel, max_wait=timedelta(seconds=1)), Closed)
    for rate in (Fraction(0), Fraction(5)) if stopped_between else (Fraction(5),):
        async with database.operator() as op:
            await channels.set_rate(op, channel, rate)
    async with database.operator() as op:
        soon = await pacing.reserve(op, channel, max_wait=HOUR)
    assert isinstance(soon, Slot)
    assert soon.wait < timedelta(seconds=2)


async def test_a_faster_rate_does_not_end_a_hold(database: Database) -> None:
    channel = await known(database, Fraction(1))
    async with database.operator() as op:
        await throttling.hold(op, channel, until=datetime.now(UTC) + HOUR, reason="429")
        await channels.set_rate(op, channel, Fraction(5))
    async with database.operator() as op:
        assert isinstance(await pacing.reserve(op, channel, max_wait=HOUR), Closed)
        kept = text("SELECT next_us / 1000000 - extract(epoch FROM now()) FROM channels WHERE name = :name")
        assert (await op.sql.execute(kept, {"name": channel})).scalar_one() > HOUR.total_seconds() - 10
