import asyncio
import os
import signal
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities.failures import BROKEN, CHANNEL_GONE
from activities.till import Till, policy_of, purchase_id
from activities.turns import look
from activities.writing import draft_id
from citeloop.channels.ports import Call
from citeloop.models import ids
from citeloop.models.plan import Stage
from citeloop.models.work import Draft, Held, Step, Waiting
from citeloop.store import migrate
from citeloop.store.database import Database
from citeloop.store.repositories import articles, campaigns, channels, drafts, purchases, tenants, throttling
from citeloop.store.repositories.purchases import Purchase
from citeloop.store.repositories.tenants import TenantRow
from starter.embedded.postgres import EmbeddedPostgres
from tests.activities.workshop import Workshop, environment
from tests.fixtures_sandbox import Sandbox

GENERATE = Stage.GENERATE


async def bought(workshop: Workshop, step: Step) -> Purchase | None:
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        return await purchases.get(scope, purchase_id(step))


async def faults(workshop: Workshop, step: Step) -> int:
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        return await purchases.faults(scope, purchase_id(step))


async def failure(workshop: Workshop, step: Step) -> ApplicationError:
    with pytest.raises(ApplicationError) as raised:
        await workshop.run(workshop.writing().generate, step)
    return raised.value


async def test_a_text_and_its_price_are_kept_before_the_result_returns(workshop: Workshop) -> None:
    plan = await workshop.article()
    step = workshop.step(plan, GENERATE, "deepseek")
    draft = await workshop.run(workshop.writing().generate, step)
    assert isinstance(draft, Draft)
    kept = await bought(workshop, step)
    assert kept is not None
    assert kept.reply == {"draft": draft.id}
    assert kept.cost.micros > 0
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        stored = await drafts.get(scope, draft.id)
        shown = await articles.find(scope, plan.article_id)
    assert (stored.draft, ids.text_digest(stored.body)) == (draft, draft.digest)
    assert shown is not None
    assert shown.cost.micros == kept.cost.micros


async def test_the_same_step_again_calls_nothing(workshop: Workshop) -> None:
    step = workshop.step(await workshop.article(), GENERATE, "deepseek")
    first = await workshop.run(workshop.writing().generate, step)
    again = await environment(attempt=2).run(workshop.writing().generate, step)
    assert again == first
    assert await workshop.calls("deepseek") == 1


async def test_a_round_a_retry_and_another_channel_are_purchases_of_their_own(workshop: Workshop) -> None:
    plan = await workshop.article()
    steps = [
        workshop.step(plan, GENERATE, "deepseek"),
        workshop.step(plan, GENERATE, "deepseek", round=1),
        workshop.step(plan, GENERATE, "deepseek", retry=1),
        workshop.step(plan, GENERATE, "qwen"),
    ]
    for step in steps:
        await workshop.run(workshop.writing().generate, step)
    assert len({draft_id(step) for step in steps}) == 4
    ledger = await workshop.sandbox.ledger()
    assert (ledger["totals"]["calls"], ledger["totals"]["bought_twice"]) == (4, 0)


async def test_a_rewrite_works_on_the_draft_and_the_notes_it_was_sent_back_with(workshop: Workshop) -> None:
    plan = await workshop.article()
    first = await workshop.run(workshop.writing().generate, workshop.step(plan, GENERATE, "deepseek"))
    assert isinstance(first, Draft)
    step = workshop.step(plan, Stage.REWRITE, "deepseek", draft_id=first.id)
    second = await workshop.run(workshop.writing().rewrite, step)
    assert isinstance(second, Draft)
    assert (second.stage, second.digest == first.digest) == (Stage.REWRITE, False)


@pytest.mark.parametrize("by", ["article", "campaign", "tenant"])
async def test_a_hold_is_found_before_anything_is_spent(workshop: Workshop, by: str) -> None:
    campaign_id, plans = await workshop.campaign(("vector database", 3))
    [plan] = plans.values()
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        match by:
            case "article":
                await articles.hold(scope, plan.article_id, "stop")
            case "campaign":
                await campaigns.hold(scope, campaign_id, "stop")
            case _:
                await tenants.hold(scope, "stop")
    held = await workshop.run(workshop.writing().generate, workshop.step(plan, GENERATE, "deepseek"))
    assert isinstance(held, Held)
    assert (held.by, held.reason) == (by, "stop")
    assert await workshop.calls("deepseek") == 0


async def test_a_429_holds_the_channel_for_every_tenant(workshop: Workshop) -> None:
    await workshop.sandbox.configure(deepseek={"rate": 0.01, "burst": 1, "retry_after": 15})
    await workshop.run(workshop.writing().generate, workshop.step(await workshop.article("one"), GENERATE, "deepseek"))
    limited = workshop.step(await workshop.article("two"), GENERATE, "deepseek")
    error = await failure(workshop, limited)
    assert (error.type, error.category) == ("rate_limited", ApplicationErrorCategory.BENIGN)
    assert error.next_retry_delay == timedelta(seconds=15)
    assert await faults(workshop, limited) == 0
    row = await workshop.row("deepseek")
    assert row.hold_until is not None
    assert timedelta(seconds=7) < row.hold_until - datetime.now(UTC) <= timedelta(seconds=15)
    async with workshop.database.operator() as op:
        workshop.tenant = await tenants.ensure(op, f"neighbour {ids.new_id()}")
    calls = await workshop.calls("deepseek")
    neighbour = await failure(workshop, workshop.step(await workshop.article("three"), GENERATE, "deepseek"))
    assert (neighbour.type, neighbour.category) == ("rate_limited", ApplicationErrorCategory.BENIGN)
    assert await workshop.calls("deepseek") == calls == 2


async def test_a_longer_delay_is_left_to_the_workflow(workshop: Workshop) -> None:
    await workshop.sandbox.configure(deepseek={"rate": 0.01, "burst": 1, "retry_after": 600})
    await workshop.run(workshop.writing().generate, workshop.step(await workshop.article("one"), GENERATE, "deepseek"))
    for keyword in ("two", "three"):
        plan = await workshop.article(keyword)
        answer = await workshop.run(workshop.writing().generate, workshop.step(plan, GENERATE, "deepseek"))
        assert isinstance(answer, Waiting)
        assert timedelta(seconds=590) < answer.until - datetime.now(UTC) <= timedelta(seconds=600)
    assert await workshop.calls("deepseek") == 2


async def test_whoever_waits_for_his_turn_does_not_call_a_channel_that_was_held_meanwhile(workshop: Workshop) -> None:
    await workshop.change_channel("deepseek", rate=1)
    first = workshop.step(await workshop.article("one"), GENERATE, "deepseek")
    second = workshop.step(await workshop.article("two"), GENERATE, "deepseek")
    await workshop.run(workshop.writing().generate, first)
    waiting = asyncio.create_task(failure(workshop, second))
    await asyncio.sleep(0.3)
    until = datetime.now(UTC) + timedelta(seconds=30)
    async with workshop.database.operator() as op:
        await throttling.hold(op, workshop.name("deepseek"), until=until, reason="429")
    assert (await waiting).category is ApplicationErrorCategory.BENIGN
    assert await workshop.calls("deepseek") == 1


async def test_faults_are_counted_and_the_last_one_hands_over_to_the_next_channel(workshop: Workshop) -> None:
    await workshop.sandbox.configure(deepseek={"http_500": 1.0})
    step = workshop.step(await workshop.article(), GENERATE, "deepseek")
    first, last = await failure(workshop, step), await failure(workshop, step)
    assert (first.type, first.non_retryable) == ("unavailable", False)
    assert (last.type, last.non_retryable) == (BROKEN, True)
    assert await faults(workshop, step) == 2
    row = await workshop.row("deepseek")
    assert (row.calls, row.faults, row.limited) == (2, 2, 0)
    retried = step.model_copy(update={"retry": 1})
    assert (await failure(workshop, retried)).type == "unavailable"


async def test_a_refused_text_is_final(workshop: Workshop) -> None:
    await workshop.sandbox.configure(deepseek={"refuse": ["vector"]})
    error = await failure(workshop, workshop.step(await workshop.article(), GENERATE, "deepseek"))
    assert (error.type, error.non_retryable) == ("refused", True)


@pytest.mark.parametrize(
    ("trouble", "kind"),
    [({"key": "another"}, "unauthorized"), ({"exhausted": True}, "exhausted")],
)
async def test_a_wrong_key_or_an_empty_account_pauses_the_channel_and_the_plan_moves_on(
    workshop: Workshop, trouble: dict[str, object], kind: str
) -> None:
    await workshop.sandbox.configure(deepseek=trouble)
    step = workshop.step(await workshop.article(), GENERATE, "deepseek")
    error = await failure(workshop, step)
    assert (error.type, error.non_retryable) == (kind, True)
    row = await workshop.row("deepseek")
    assert row.paused
    assert row.pause_reason == error.message
    assert await faults(workshop, step) == 0


async def test_the_last_channel_of_the_plan_waits_for_its_operator_instead(workshop: Workshop) -> None:
    await workshop.sandbox.configure(qwen={"key": "another"})
    step = workshop.step(await workshop.article(), GENERATE, "qwen")
    error = await failure(workshop, step)
    assert (error.type, error.non_retryable) == ("unauthorized", False)
    assert error.category is ApplicationErrorCategory.BENIGN
    again = await failure(workshop, step)
    assert (again.category, again.next_retry_delay) == (ApplicationErrorCategory.BENIGN, timedelta(seconds=30))
    assert await workshop.calls("qwen") == 1
    await workshop.sandbox.configure(qwen={"key": "sandbox-key"})
    async with workshop.database.operator() as op:
        await channels.resume(op, workshop.name("qwen"))
    assert isinstance(await workshop.run(workshop.writing().generate, step), Draft)


async def test_a_key_that_is_not_set_is_like_a_wrong_one(workshop: Workshop) -> None:
    del workshop.environ["SANDBOX_KEY"]
    error = await failure(workshop, workshop.step(await workshop.article(), GENERATE, "deepseek"))
    assert (error.type, error.non_retryable) == ("unauthorized", True)
    assert "SANDBOX_KEY is not set" in (await workshop.row("deepseek")).pause_reason


@pytest.mark.parametrize("paused", [False, True])
async def test_a_vanished_channel_says_so_even_if_it_was_paused_before(workshop: Workshop, paused: bool) -> None:
    step = workshop.step(await workshop.article(), GENERATE, "deepseek")
    if paused:
        async with workshop.database.operator() as op:
            await channels.pause(op, workshop.name("deepseek"), "no money")
    await workshop.lose_channel("deepseek")
    error = await failure(workshop, step)
    assert (error.type, error.non_retryable) == (CHANNEL_GONE, True)


async def test_what_was_bought_from_a_channel_is_there_after_it_vanished(workshop: Workshop) -> None:
    step = workshop.step(await workshop.article(), GENERATE, "deepseek")
    draft = await workshop.run(workshop.writing().generate, step)
    await workshop.lose_channel("deepseek")
    assert await workshop.run(workshop.writing().generate, step) == draft


async def test_a_cancel_ends_the_call(workshop: Workshop) -> None:
    await workshop.sandbox.configure(deepseek={"first_byte": [1.5, 1.5]})
    step = workshop.step(await workshop.article(), GENERATE, "deepseek")
    running = environment()
    task = asyncio.create_task(running.run(workshop.writing().generate, step))
    await _called(workshop)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(3):
        while not (await workshop.sandbox.ledger())["totals"]["abandoned"]:
            await asyncio.sleep(0.05)
    assert await bought(workshop, step) is None


@pytest.fixture
async def fragile(tmp_path: Path, sandbox: Sandbox) -> AsyncIterator[tuple[EmbeddedPostgres, Workshop]]:
    """A server that may be killed, and a workshop that works with it."""
    server = EmbeddedPostgres(tmp_path / "postgres")
    await server.start()
    await migrate.upgrade(server.url("owner"))
    database = Database(server.url("app"))
    async with database.operator() as op:
        tenant: TenantRow = await tenants.ensure(op, "acme")
    workshop = Workshop(database, sandbox, tenant)
    await workshop.open()
    yield server, workshop
    await workshop.close()
    await database.close()
    await server.stop()


async def test_an_answer_in_hand_outlives_a_store_that_is_killed(
    fragile: tuple[EmbeddedPostgres, Workshop],
) -> None:
    server, workshop = fragile
    await workshop.sandbox.configure(deepseek={"first_byte": [1.0, 1.0]})
    step = workshop.step(await workshop.article(), GENERATE, "deepseek")
    task = asyncio.create_task(workshop.run(workshop.writing().generate, step))
    await _called(workshop)
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    async with asyncio.timeout(10):
        while not (await workshop.sandbox.ledger())["totals"]["ok"]:
            await asyncio.sleep(0.05)
    await asyncio.sleep(0.5)
    assert not task.done()
    await server.start()
    draft = await task
    assert isinstance(draft, Draft)
    assert await workshop.run(workshop.writing().generate, step) == draft
    ledger = await workshop.sandbox.ledger()
    assert (ledger["totals"]["ok"], ledger["totals"]["bought_twice"]) == (1, 0)


async def _called(workshop: Workshop) -> None:
    async with asyncio.timeout(5):
        while not await workshop.calls("deepseek"):
            await asyncio.sleep(0.02)


async def test_a_reply_that_breaks_its_reader_counts_as_a_fault_and_is_not_bought_for_ever(workshop: Workshop) -> None:
    plan = await workshop.article()
    step = workshop.step(plan, GENERATE, "deepseek")
    till = Till(workshop.database, workshop.outside())

    async def unforeseen(_: Call) -> str:
        raise UnicodeEncodeError("utf-8", "\ud83d", 0, 1, "surrogates not allowed")

    async def buy(_: Step) -> None:
        async with workshop.database.tenant(workshop.tenant.id) as scope:
            slot = await look(scope, step.route)
        await till.buy(
            unforeseen,
            Call(purchase_id=purchase_id(step), policy=policy_of(plan, step)),
            tenant_id=workshop.tenant.id,
            article_id=plan.article_id,
            channel=step.route,
            last_resort=True,
            slot=slot,
        )

    kinds = []
    for _ in range(2):
        with pytest.raises(ApplicationError) as raised:
            await workshop.run(buy, step)
        kinds.append((raised.value.type, raised.value.non_retryable))
    assert kinds == [("garbled", False), (BROKEN, True)]
    assert await faults(workshop, step) == 2
