"""A channel's limits under real queues: a Temporal server, workers, the reconciler's hand, and the sandbox's ledger."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from fractions import Fraction

import pytest
from temporalio.client import ActivityHandle, Client
from temporalio.common import Priority, RetryPolicy
from temporalio.worker import Worker

from activities.reconciling import Reconciler
from activities.slots import Overhang, Slots
from citeloop.models import ids
from citeloop.models.plan import Plan, Stage
from citeloop.models.work import Draft
from citeloop.store.repositories import channels, tenants
from starter.embedded.postgres import EmbeddedPostgres
from tests.activities.workshop import Workshop, forget_vanished
from workflows import options
from workflows.client import connect

pytestmark = pytest.mark.timeout(90)

PART = "deepseek"
Task = ActivityHandle[Draft]


@pytest.fixture
async def reconciling(workshop: Workshop, client: Client, postgres: EmbeddedPostgres) -> AsyncIterator[None]:
    """Sets the queues' limits as the leading worker does, of this test's channels only."""
    await forget_vanished(postgres.url("owner"))
    reconciler = Reconciler(client, workshop.database)

    async def loop() -> None:
        while True:
            await reconciler.set_limits()
            await asyncio.sleep(0.5)

    running = asyncio.create_task(loop())
    yield
    running.cancel()


@asynccontextmanager
async def workers(workshop: Workshop, client: Client, count: int = 1, slots: int = 8) -> AsyncIterator[None]:
    """Each with clients and slots of its own, as on machines of their own."""
    made = []
    for _ in range(count):
        live = Slots(slots)
        made.append(
            Worker(
                await connect(client.service_client.config.target_host),
                task_queue=f"channel.{workshop.name(PART)}",
                activities=[workshop.writing().generate],
                tuner=live.tuner(),
                interceptors=[Overhang(live)],
            )
        )
    running = [asyncio.create_task(worker.run()) for worker in made]
    try:
        yield
    finally:
        await asyncio.gather(*(worker.shutdown() for worker in made))
        await asyncio.gather(*running)


async def give(workshop: Workshop, client: Client, plan: Plan, count: int, first: int = 0) -> list[Task]:
    """So many texts of an article, each a purchase of its own, as its workflow would ask for them."""
    route = plan.route(Stage.GENERATE, workshop.name(PART))
    config = options.call(plan, Stage.GENERATE, route)
    priority = config["priority"]
    assert isinstance(priority, Priority)

    async def one(number: int) -> Task:
        step = workshop.step(plan, Stage.GENERATE, PART, retry=first + number)
        return await client.start_activity(
            "writing.generate",
            step,
            id=ids.new_id(),
            task_queue=route.queue,
            result_type=Draft,
            start_to_close_timeout=timedelta(seconds=60),
            heartbeat_timeout=timedelta(seconds=10),
            retry_policy=RetryPolicy(initial_interval=timedelta(seconds=1), non_retryable_error_types=options.FINAL),
            priority=priority,
        )

    return [await one(number) for number in range(count)]


async def set_rate(workshop: Workshop, rate: Fraction | None) -> float:
    """When it was set, by the ledger's clock."""
    async with workshop.database.operator() as op:
        await channels.set_rate(op, workshop.name(PART), rate)
    return time.time()


async def called(workshop: Workshop, which: str = "times") -> list[float]:
    found = (await workshop.sandbox.ledger())["providers"].get(PART, {which: []})
    times: list[float] = found[which]
    return times


def within(times: Sequence[float], begin: float, end: float) -> int:
    return sum(begin <= at < end for at in times)


async def neighbour(workshop: Workshop) -> None:
    """From here on the workshop works for another tenant."""
    async with workshop.database.operator() as op:
        workshop.tenant = await tenants.ensure(op, f"neighbour {ids.new_id()}")


async def finished(tasks: Sequence[Task], note: Callable[[], None] = lambda: None) -> None:
    async def one(task: Task) -> None:
        await task.result()
        note()

    await asyncio.gather(*(one(task) for task in tasks))


@pytest.mark.usefixtures("reconciling")
async def test_the_ledgers_rate_follows_a_live_change_within_two_seconds_and_nothing_fails(
    workshop: Workshop, client: Client
) -> None:
    await workshop.change_channel(PART, rate=Fraction(2))
    tasks = await give(workshop, client, await workshop.article(), 60)
    async with workers(workshop, client):
        await asyncio.sleep(3)
        faster = await set_rate(workshop, Fraction(5))
        await asyncio.sleep(5)
        stopped = await set_rate(workshop, Fraction(0))
        await asyncio.sleep(4)
        back = await set_rate(workshop, None)
        await asyncio.sleep(5)
        times = await called(workshop)
        await set_rate(workshop, Fraction(50))
        await finished(tasks)
    assert 12 <= within(times, faster + 2, faster + 5) <= 16
    assert within(times, stopped + 2, stopped + 4) == 0
    assert 5 <= within(times, back + 2, back + 5) <= 7
    ledger = await workshop.sandbox.ledger()
    assert (ledger["totals"]["ok"], ledger["totals"]["bought_twice"]) == (60, 0)


@pytest.mark.usefixtures("reconciling")
async def test_one_429_stops_all_calls_of_two_workers_for_as_long_as_it_says(
    workshop: Workshop, client: Client
) -> None:
    await workshop.sandbox.configure(deepseek={"rate": 6, "burst": 6, "retry_after": 3})
    await workshop.change_channel(PART, rate=Fraction(12))
    tasks = await give(workshop, client, await workshop.article(), 30)
    async with workers(workshop, client, count=2):
        await finished(tasks)
    limited, times = await called(workshop, "limited_times"), await called(workshop)
    assert limited
    assert within(times, limited[0] + 0.2, limited[0] + 2.95) == 0
    assert within(times, limited[0] + 2.95, limited[0] + 5) >= 4
    row = await workshop.row(PART)
    assert row.adaptive_rate is not None
    ledger = await workshop.sandbox.ledger()
    assert (ledger["totals"]["ok"], ledger["totals"]["bought_twice"]) == (30, 0)


@pytest.mark.usefixtures("reconciling")
async def test_a_late_tenants_few_finish_early_behind_anothers_many(workshop: Workshop, client: Client) -> None:
    await workshop.change_channel(PART, rate=Fraction(8))
    many = await give(workshop, client, await workshop.article("many"), 90)
    await neighbour(workshop)
    plan = await workshop.article("few")
    done: list[str] = []
    async with workers(workshop, client, slots=4):
        others = asyncio.create_task(finished(many, lambda: done.append("many")))
        await asyncio.sleep(2)
        before = len(done)
        await finished(await give(workshop, client, plan, 5))
        during = len(done) - before
        others.cancel()
        await set_rate(workshop, Fraction(100))
        await finished(many)
    assert during <= 15, f"{during} of the other's 90 while 5 were done"


@pytest.mark.usefixtures("reconciling")
@pytest.mark.parametrize(
    ("ours", "theirs", "share"),
    [({"weight": 3.0}, {"weight": 1.0}, (27, 33)), ({"priority": 1}, {"priority": 3}, (18, 22))],
    ids=["weights 3:1 give 3:1", "all at top priority starves nobody"],
)
async def test_the_first_forty_are_shared_out_between_tenants(
    workshop: Workshop,
    client: Client,
    ours: dict[str, float],
    theirs: dict[str, float],
    share: tuple[int, int],
) -> None:
    await workshop.change_channel(PART, rate=Fraction(0))
    plan = (await workshop.article("ours")).model_copy(update=ours)
    tasks = await give(workshop, client, plan, 40)
    await neighbour(workshop)
    plan = (await workshop.article("theirs")).model_copy(update=theirs)
    others = await give(workshop, client, plan, 40)
    done: list[bool] = []
    await set_rate(workshop, Fraction(20))
    async with workers(workshop, client, slots=2):
        await asyncio.gather(finished(tasks, lambda: done.append(True)), finished(others, lambda: done.append(False)))
    assert share[0] <= sum(done[:40]) <= share[1]
