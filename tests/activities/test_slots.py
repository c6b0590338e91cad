import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

from temporalio import activity
from temporalio.client import Client
from temporalio.worker import Worker

from activities.slots import Concurrency, Overhang, Slots
from citeloop.models import ids
from citeloop.store.database import Database
from citeloop.store.repositories import channels
from tests.store.channel_material import known


class Hall:
    """An activity that tells how many of it are under way."""

    def __init__(self) -> None:
        self.inside = 0
        self.most = 0
        self.done = 0

    @activity.defn(name="stay")
    async def stay(self) -> None:
        self.inside += 1
        self.most = max(self.most, self.inside)
        await asyncio.sleep(0.4)
        self.inside -= 1
        self.done += 1


@asynccontextmanager
async def working(client: Client, queue: str, hall: Hall, slots: Slots) -> AsyncIterator[None]:
    worker = Worker(
        client, task_queue=queue, activities=[hall.stay], tuner=slots.tuner(), interceptors=[Overhang(slots)]
    )
    async with worker:
        yield


async def give(client: Client, queue: str, count: int) -> None:
    for _ in range(count):
        await client.start_activity(
            "stay", id=ids.new_id(), task_queue=queue, start_to_close_timeout=timedelta(seconds=10)
        )


async def until(reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not reached():
            await asyncio.sleep(0.02)


async def test_the_store_changes_how_many_run_at_once_within_two_seconds(client: Client, database: Database) -> None:
    channel = await known(database, None, concurrency=6)
    queue, hall, slots = f"channel.{channel}", Hall(), Slots(6)
    following = asyncio.create_task(Concurrency(database, {queue: slots}).run())
    await give(client, queue, 60)
    async with working(client, queue, hall, slots):
        await until(lambda: hall.most == 6)
        async with database.operator() as op:
            await channels.set_concurrency(op, channel, 2)
        await asyncio.sleep(2)
        hall.most = 0
        await asyncio.sleep(1.5)
        lowered = hall.most
        async with database.operator() as op:
            await channels.set_concurrency(op, channel, None)
        await asyncio.sleep(2)
        hall.most = 0
        await until(lambda: hall.done == 60)
    following.cancel()
    assert (lowered, hall.most) == (2, 6)


async def test_polls_that_were_under_way_do_not_bring_one_call_too_many(client: Client) -> None:
    """Five polls wait for work when the limit is lowered: each still brings a task."""
    queue, hall, slots = f"channel.{ids.new_id().lower()}", Hall(), Slots(6)
    async with working(client, queue, hall, slots):
        await asyncio.sleep(1)
        slots.change(1)
        await give(client, queue, 6)
        await until(lambda: hall.done == 6)
    assert hall.most == 1
