import asyncio
import time
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import pairwise

import pytest
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities.failures import BROKEN
from activities.setbacks import Attempt, Setbacks
from activities.till import Sale, Till, purchase_id
from activities.turns import LIFTED_WITHIN, STOPPED_CHECK, Leave, Turns, look
from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.ports import Call, Completion
from citeloop.models.plan import Stage
from citeloop.models.throttling import Cause
from citeloop.models.work import Draft, Step, Waiting
from citeloop.store.database import Scope
from citeloop.store.repositories import channels, purchases
from citeloop.store.repositories.allowances import Taken
from citeloop.store.statements import text
from tests.activities.test_writing import bought
from tests.activities.workshop import QUICK, Workshop

GENERATE = Stage.GENERATE
BENIGN = ApplicationErrorCategory.BENIGN


async def step_of(workshop: Workshop, keyword: str, part: str = "deepseek") -> Step:
    return workshop.step(await workshop.article(keyword), GENERATE, part)


async def write(workshop: Workshop, step: Step) -> Draft | Waiting | ApplicationError:
    """What became of it, be it a failure."""
    try:
        done = await workshop.run(workshop.writing().generate, step)
    except ApplicationError as error:
        return error
    assert isinstance(done, Draft | Waiting)
    return done


async def open_for(workshop: Workshop, seconds: int, part: str = "deepseek") -> None:
    """As if the breaker's time were over in so many seconds."""
    moved = text(
        "UPDATE channels SET breaker_until = clock_timestamp() + make_interval(secs => :seconds) WHERE name = :name"
    )
    async with workshop.database.operator() as op:
        await op.sql.execute(moved, {"name": workshop.name(part), "seconds": seconds})


async def break_channel(workshop: Workshop, part: str = "deepseek") -> None:
    """Five faults in a row, of as many articles."""
    await workshop.sandbox.configure(**{part: {"http_503": 1.0}})
    for n in range(5):
        assert isinstance(await write(workshop, await step_of(workshop, f"{part} breaks {n}", part)), ApplicationError)


async def leave(workshop: Workshop, turns: Turns, seen: list[float]) -> None:
    channel = workshop.outside().channel(workshop.name("deepseek"))
    async with workshop.database.operator() as op:
        slot = await look(op, channel.name)
    given = await turns.wait(channel, slot, last_resort=True, tokens=0)
    assert isinstance(given, Leave)
    seen.append(time.monotonic())


async def test_tasks_that_overslept_their_turns_do_not_call_in_a_burst(workshop: Workshop) -> None:
    await workshop.change_channel("deepseek", rate=Fraction(5))
    seen: list[float] = []
    turns = Turns(workshop.database)
    waiting = [asyncio.create_task(leave(workshop, turns, seen)) for _ in range(4)]
    while not seen:
        await asyncio.sleep(0.005)
    time.sleep(0.7)  # noqa: ASYNC251 - the process stalls
    await asyncio.gather(*waiting)
    seen.sort()
    gaps = [later - earlier for earlier, later in pairwise(seen[1:])]
    assert seen[1] - seen[0] >= 0.6
    assert min(gaps) > 0.1, gaps


async def test_what_the_burst_allows_may_come_late(workshop: Workshop) -> None:
    await workshop.change_channel("deepseek", rate=Fraction(5), burst=5)
    name = workshop.name("deepseek")
    async with workshop.database.operator() as op:
        for _ in range(5):
            await look(op, name)
    seen: list[float] = []
    turns = Turns(workshop.database)
    waiting = [asyncio.create_task(leave(workshop, turns, seen)) for _ in range(2)]
    await asyncio.sleep(0.05)
    time.sleep(0.6)  # noqa: ASYNC251 - the process stalls
    stalled = time.monotonic()
    await asyncio.gather(*waiting)
    assert max(seen) - stalled < 0.15


async def test_faults_in_a_row_open_the_breaker_and_the_next_article_moves_on_without_a_call(
    workshop: Workshop,
) -> None:
    await break_channel(workshop)
    row = await workshop.row("deepseek")
    calls = await workshop.calls("deepseek")
    moved = await write(workshop, await step_of(workshop, "the sixth"))
    assert isinstance(moved, ApplicationError)
    assert (moved.type, moved.non_retryable) == (BROKEN, True)
    assert "its breaker is open: 5 faults in a row" in moved.message
    assert row.why.startswith("breaker: open until")
    assert await workshop.calls("deepseek") == calls == 5


async def test_on_the_last_channel_of_the_plan_a_broken_channel_is_waited_for(workshop: Workshop) -> None:
    await break_channel(workshop, "qwen")
    await open_for(workshop, 60, "qwen")
    waits = await write(workshop, await step_of(workshop, "the sixth", "qwen"))
    assert isinstance(waits, ApplicationError)
    assert (waits.category, waits.non_retryable) == (BENIGN, False)
    assert waits.next_retry_delay is not None
    assert timedelta(seconds=50) < waits.next_retry_delay <= timedelta(seconds=60)
    assert await workshop.calls("qwen") == 5


async def test_one_probe_closes_the_breaker_for_all_who_wait(workshop: Workshop) -> None:
    await break_channel(workshop, "qwen")
    await workshop.sandbox.configure(qwen={"http_503": 0.0, "first_byte": [0.8, 0.8]})
    steps = [await step_of(workshop, f"waiting {n}", "qwen") for n in range(4)]
    await open_for(workshop, 0, "qwen")
    running = [asyncio.create_task(write(workshop, step)) for step in steps]
    async with asyncio.timeout(5):
        while await workshop.calls("qwen") < 5 + 1:
            await asyncio.sleep(0.02)
    await asyncio.sleep(0.4)
    during = await workshop.calls("qwen")
    done = await asyncio.gather(*running)
    assert during == 5 + 1
    assert all(isinstance(one, Draft) for one in done)
    assert (await workshop.row("qwen")).breaker_until is None


async def test_a_probe_that_fails_opens_the_breaker_for_longer(workshop: Workshop) -> None:
    await break_channel(workshop)
    await open_for(workshop, 0)
    failed = await write(workshop, await step_of(workshop, "the probe"))
    assert isinstance(failed, ApplicationError)
    row = await workshop.row("deepseek")
    assert (row.half_open, "its probe failed" in row.breaker_reason) == (False, True)
    assert await workshop.calls("deepseek") == 6


async def test_work_that_waits_at_a_channel_without_money_moves_on_without_a_call(workshop: Workshop) -> None:
    await workshop.sandbox.configure(deepseek={"exhausted": True})
    first = await write(workshop, await step_of(workshop, "one"))
    waited = await write(workshop, await step_of(workshop, "two"))
    for moved in (first, waited):
        assert isinstance(moved, ApplicationError)
        assert (moved.type, moved.non_retryable) == ("exhausted", True)
    assert (await workshop.row("deepseek")).pause_cause == "exhausted"
    assert await workshop.calls("deepseek") == 1


@pytest.mark.parametrize("by", ["pause", "rate 0"])
async def test_a_persons_pause_moves_nothing(workshop: Workshop, by: str) -> None:
    name = workshop.name("deepseek")
    async with workshop.database.operator() as op:
        await channels.pause(op, name, "no money", Cause.EXHAUSTED)
        if by == "pause":
            await channels.pause(op, name, "maintenance")
        else:
            await channels.set_rate(op, name, Fraction(0))
    waits = await write(workshop, await step_of(workshop, "one"))
    assert isinstance(waits, ApplicationError)
    assert (waits.category, waits.next_retry_delay) == (BENIGN, STOPPED_CHECK)


async def test_a_429_lowers_the_rate_and_says_so(workshop: Workshop) -> None:
    await workshop.change_channel("deepseek", rate=Fraction(10))
    await workshop.sandbox.configure(deepseek={"rate": 0.01, "burst": 1, "retry_after": 1})
    await write(workshop, await step_of(workshop, "one"))
    await write(workshop, await step_of(workshop, "two"))
    held = await workshop.row("deepseek")
    await asyncio.sleep(1.05)
    after = await workshop.row("deepseek")
    assert (held.effective_rate, after.effective_rate) == (Fraction(0), Fraction(7))
    assert after.why == "adaptive: cut after a 429, coming back to 10/s"


async def test_tokens_are_taken_before_the_call_and_settled_with_what_it_used(workshop: Workshop) -> None:
    await workshop.change_channel("deepseek", tokens_per_minute=6000)
    first, second = await step_of(workshop, "one"), await step_of(workshop, "two")
    assert isinstance(await write(workshop, first), Draft)
    purchase = await bought(workshop, first)
    assert purchase is not None
    used = purchase.input_tokens + purchase.output_tokens
    assert (await workshop.row("deepseek")).tokens_last_minute == used > 0
    await workshop.change_channel("deepseek", tokens_per_minute=used + 10)
    waits = await write(workshop, second)
    assert isinstance(waits, ApplicationError)
    assert (waits.category, "tokens a minute" in waits.message) == (BENIGN, True)
    assert waits.next_retry_delay is not None
    assert timedelta(seconds=50) < waits.next_retry_delay <= timedelta(seconds=60)
    assert await workshop.calls("deepseek") == 1


async def test_a_days_quota_is_waited_for_by_the_workflow(workshop: Workshop) -> None:
    await workshop.change_channel("deepseek", calls_per_day=1)
    assert isinstance(await write(workshop, await step_of(workshop, "one")), Draft)
    waits = await write(workshop, await step_of(workshop, "two"))
    row = await workshop.row("deepseek")
    assert isinstance(waits, Waiting)
    assert row.quota_until is not None
    looked_at_again = min(row.quota_until, datetime.now(UTC) + LIFTED_WITHIN)
    assert abs(waits.until - looked_at_again) < timedelta(seconds=5)
    assert "1 of 1 calls a day" in waits.reason
    assert await workshop.calls("deepseek") == 1


@pytest.mark.parametrize(("last_resort", "moves"), [(False, True), (True, False)])
async def test_a_quota_that_the_provider_resets_by_itself_is_waited_for_or_left(
    workshop: Workshop, last_resort: bool, moves: bool
) -> None:
    step = await step_of(workshop, "one")
    attempt = Attempt(
        tenant_id=step.tenant_id,
        article_id=step.article_id,
        channel=step.route,
        last_resort=last_resort,
        call=Call(purchase_id=purchase_id(step), policy=QUICK),
    )
    error = ChannelError(Fault.EXHAUSTED, "daily quota", delay=timedelta(hours=1))
    try:
        came: object = await Setbacks(workshop.database).met(error, attempt)
    except ApplicationError as raised:
        came = raised
    row = await workshop.row("deepseek")
    assert isinstance(came, ApplicationError) is moves
    assert (row.paused, row.quota_cause, row.drains) == (False, "exhausted", True)
    assert row.why.endswith("UTC: daily quota")
    waits = await write(workshop, await step_of(workshop, "two"))
    assert isinstance(waits, ApplicationError)
    assert (waits.type, await workshop.calls("deepseek")) == ("exhausted", 0)


async def test_cached_tokens_and_searches_are_kept_with_the_purchase(workshop: Workshop) -> None:
    step = await step_of(workshop, "one")
    assert isinstance(await write(workshop, step), Draft)
    kept = await bought(workshop, step)
    assert kept is not None
    grown = kept.model_copy(update={"id": f"{kept.id}/more", "cached_tokens": 7, "searches": 2})
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        await purchases.put(scope, grown)
        again = await purchases.get(scope, grown.id)
    assert again is not None
    assert (again.cached_tokens, again.searches) == (7, 2)


async def test_calls_that_end_never_lock_those_out_that_begin(workshop: Workshop) -> None:
    """Both write the channel's ledger; a deadlock would lose the hold of a 429, or an answer that was paid for."""
    everything = 10**9
    await workshop.change_channel("deepseek", tokens_per_minute=everything, calls_per_day=everything)
    outside = workshop.outside()
    spec, till = outside.channel(workshop.name("deepseek")), Till(workshop.database, outside)

    async def nothing(_: Scope) -> None:
        """What is kept is not the point."""

    async def calls(number: int) -> None:
        for n in range(15):
            taken = await till._turns._take(spec, 100)
            assert isinstance(taken, Taken)
            if number % 3:
                done = Completion(text="a text", model="m", input_tokens=5, output_tokens=5)
                await till.keep(workshop.tenant.id, nothing, Sale(done, spec.name, Leave(taken=taken), tokens=10))
                continue
            call = Call(purchase_id=f"{workshop.suffix}/{number}/{n}", policy=QUICK)
            attempt = Attempt(
                tenant_id=workshop.tenant.id, article_id=None, channel=spec.name, last_resort=False, call=call,
                leave=Leave(taken=taken),
            )  # fmt: skip
            with pytest.raises(ApplicationError):
                await Setbacks(workshop.database).met(
                    ChannelError(Fault.RATE_LIMITED, "429", delay=timedelta(milliseconds=1)), attempt
                )

    await asyncio.gather(*(calls(number) for number in range(12)))
