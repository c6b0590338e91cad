import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from activities.reconciling import Reconciler
from citeloop.models import ids
from citeloop.models.plan import State
from citeloop.models.throttling import Cause
from citeloop.models.work import CorrectionKind, Progress
from citeloop.store.repositories import articles, campaigns, channels, corrections, publications, throttling
from citeloop.store.statements import text
from starter.embedded.postgres import EmbeddedPostgres
from tests.activities.test_bookkeeping import end_all, meanwhile, signals
from tests.activities.test_publishing import publish
from tests.activities.workshop import Workshop, forget_vanished
from tests.workflows.test_article import until

AHEAD = 1.25
"""The queue's limit stands a quarter above the rate, which the store paces exactly (ADR 0002)."""


@pytest.fixture
async def reconciler(workshop: Workshop, client: Client, postgres: EmbeddedPostgres) -> AsyncIterator[Reconciler]:
    """No worker serves the workflows that it starts; they are ended with the test."""
    await forget_vanished(postgres.url("owner"))
    yield Reconciler(client, workshop.database)
    await end_all(client, workshop.tenant.id)


async def limit(workshop: Workshop, client: Client, part: str = "deepseek") -> tuple[float | None, str]:
    """(requests per second, reason) as the server has them; None is unset."""
    described = await client.workflow_service.describe_task_queue(
        DescribeTaskQueueRequest(
            namespace=client.namespace,
            task_queue=TaskQueue(name=f"channel.{workshop.name(part)}"),
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
            report_config=True,
        )
    )
    found = described.config.queue_rate_limit
    rate = found.rate_limit.requests_per_second if found.HasField("rate_limit") else None
    return rate, found.metadata.reason


async def test_a_channels_rate_is_set_on_its_queue(workshop: Workshop, client: Client, reconciler: Reconciler) -> None:
    await workshop.change_channel("deepseek", rate=Fraction(3, 2))
    await reconciler.set_limits()
    assert await limit(workshop, client) == (1.5 * AHEAD, "channels.toml")
    async with workshop.database.operator() as op:
        await channels.set_rate(op, workshop.name("deepseek"), Fraction(1, 4))
    await reconciler.set_limits()
    assert await limit(workshop, client) == (0.25 * AHEAD, "set by the operator")


async def test_a_paused_and_a_held_channel_stand_still_and_go_on(
    workshop: Workshop, client: Client, reconciler: Reconciler
) -> None:
    await workshop.change_channel("deepseek", rate=Fraction(2))
    name = workshop.name("deepseek")
    async with workshop.database.operator() as op:
        await channels.pause(op, name, "no money")
    await reconciler.set_limits()
    assert await limit(workshop, client) == (0.0, "paused: no money")
    async with workshop.database.operator() as op:
        await channels.resume(op, name)
        await throttling.hold(op, name, until=datetime.now(UTC) + timedelta(seconds=0.5), reason="429")
    await reconciler.set_limits()
    held = await limit(workshop, client)
    assert (held[0], held[1].startswith("held until"), held[1].endswith("429")) == (0.0, True, True)
    await asyncio.sleep(0.6)
    await reconciler.set_limits()
    assert (await limit(workshop, client))[0] == 2.0 * AHEAD


async def test_a_queue_drains_where_work_may_move_on_and_stands_still_where_a_person_paused(
    workshop: Workshop, client: Client, reconciler: Reconciler
) -> None:
    await workshop.change_channel("deepseek", rate=Fraction(2))
    name, seen = workshop.name("deepseek"), []
    async with workshop.database.operator() as op:
        await channels.pause(op, name, "no money", Cause.EXHAUSTED)
    await reconciler.set_limits()
    seen.append(await limit(workshop, client))
    async with workshop.database.operator() as op:
        await channels.pause(op, name, "maintenance")
    await reconciler.set_limits()
    seen.append(await limit(workshop, client))
    async with workshop.database.operator() as op:
        await channels.resume(op, name)
        await throttling.open_breaker(op, name, "overloaded")
    await reconciler.set_limits()
    seen.append(await limit(workshop, client))
    assert seen[:2] == [(20.0, "paused: no money"), (0.0, "paused: maintenance")]
    assert (seen[2][0], seen[2][1].startswith("breaker: open until")) == (20.0, True)


async def test_a_queue_whose_tasks_make_several_calls_hands_out_fewer(
    workshop: Workshop, client: Client, reconciler: Reconciler
) -> None:
    await workshop.change_channel("deepseek", rate=Fraction(4), calls_per_dispatch=2)
    await reconciler.set_limits()
    assert await limit(workshop, client) == (2 * AHEAD, "channels.toml")


async def test_an_unlimited_channel_has_no_limit_even_if_it_had_one(
    workshop: Workshop, client: Client, reconciler: Reconciler
) -> None:
    await reconciler.set_limits()
    assert (await limit(workshop, client))[0] is None
    await workshop.change_channel("deepseek", rate=Fraction(2))
    await reconciler.set_limits()
    await workshop.change_channel("deepseek", rate=None)
    await reconciler.set_limits()
    assert (await limit(workshop, client))[0] is None


async def test_an_article_and_a_campaign_that_were_committed_but_never_started_are_started(
    workshop: Workshop, client: Client, reconciler: Reconciler
) -> None:
    fresh = await workshop.article("fresh")
    old = await workshop.article("old")
    campaign_id, _ = await workshop.campaign(("of a campaign", 3))
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        aged = {"id": old.article_id, "campaign": campaign_id}
        await scope.sql.execute(
            text(
                "UPDATE articles SET submitted_at = now() - interval '11 s' WHERE id = :id OR campaign_id = :campaign"
            ),
            aged,
        )
        await scope.sql.execute(
            text("UPDATE campaigns SET created_at = now() - interval '11 s' WHERE id = :campaign"), aged
        )
    await reconciler.sweep()
    await client.get_workflow_handle(ids.workflow_id(workshop.tenant.id, old.article_id)).describe()
    await client.get_workflow_handle(ids.campaign_workflow_id(workshop.tenant.id, campaign_id)).describe()
    with pytest.raises(RPCError, match="not found"):
        await client.get_workflow_handle(ids.workflow_id(workshop.tenant.id, fresh.article_id)).describe()
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        view = await articles.find(scope, old.article_id)
        campaign = await campaigns.get(scope, campaign_id)
    assert view is not None
    assert view.started_at is not None
    assert campaign is not None
    assert campaign.state == "running"


async def test_a_correction_that_no_workflow_is_at_is_started_and_one_that_runs_is_left_alone(
    workshop: Workshop, client: Client, reconciler: Reconciler
) -> None:
    step = await workshop.approved(await workshop.article("corrected"))
    await publish(workshop, step)
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        row = await publications.get(scope, step.article_id, step.route)
        assert row is not None
        await corrections.ask(
            scope,
            publication_id=row.id,
            article_id=row.article_id,
            site=row.site,
            kind=CorrectionKind.WITHDRAW,
            by="ann",
        )
        await scope.sql.execute(text("UPDATE corrections SET asked_at = now() - interval '11 s'"))
    await reconciler.sweep()
    handle = client.get_workflow_handle(ids.correction_workflow_id(workshop.tenant.id, row.article_id, row.site))
    first = await handle.describe()
    await reconciler.sweep()
    again = await handle.describe()
    assert (again.run_id, again.history_length) == (first.run_id, first.history_length)


class Counting(Reconciler):
    acted = 0

    async def set_limits(self) -> None:
        self.acted += 1
        await super().set_limits()


async def test_only_one_of_the_fleet_acts_and_another_takes_over(
    workshop: Workshop, client: Client, reconciler: Reconciler
) -> None:
    fleet = [Counting(client, workshop.database) for _ in range(3)]
    running = [asyncio.create_task(one.run()) for one in fleet]
    try:
        await until(lambda: max(one.acted for one in fleet) >= 3)
        [leader] = [place for place, one in enumerate(fleet) if one.acted]
        running[leader].cancel()
        before = fleet[leader].acted
        await until(lambda: max(one.acted for one in fleet if one is not fleet[leader]) >= 2)
        assert [one.acted > 0 for one in fleet].count(True) == 2
        assert fleet[leader].acted == before
    finally:
        for task in running:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def age(workshop: Workshop) -> None:
    """As if everything had been submitted eleven seconds earlier."""
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        await scope.sql.execute(text("UPDATE articles SET submitted_at = submitted_at - interval '11 s'"))
        await scope.sql.execute(text("UPDATE campaigns SET created_at = created_at - interval '11 s'"))


async def test_what_was_held_paused_or_cancelled_since_the_list_was_read_is_not_started(
    workshop: Workshop, client: Client, reconciler: Reconciler
) -> None:
    first, second = await workshop.article("first"), await workshop.article("second")
    campaign_ids = {state: (await workshop.campaign((state, 3)))[0] for state in ("paused", "cancelled")}
    await age(workshop)

    async def steer() -> None:
        async with workshop.database.tenant(workshop.tenant.id) as scope:
            await articles.hold(scope, second.article_id, "wait")
            for state, campaign_id in campaign_ids.items():
                await campaigns.note(scope, campaign_id, state)

    await Reconciler(meanwhile(client, steer), workshop.database).sweep()
    await client.get_workflow_handle(ids.workflow_id(workshop.tenant.id, first.article_id)).describe()
    left = [ids.campaign_workflow_id(workshop.tenant.id, campaign_id) for campaign_id in campaign_ids.values()]
    for workflow_id in (ids.workflow_id(workshop.tenant.id, second.article_id), *left):
        with pytest.raises(RPCError, match="not found"):
            await client.get_workflow_handle(workflow_id).describe()
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        for state, campaign_id in campaign_ids.items():
            campaign = await campaigns.get(scope, campaign_id)
            assert campaign is not None
            assert campaign.state == state


async def test_what_is_cancelled_while_the_sweeper_starts_it_hears_it(
    workshop: Workshop, client: Client, reconciler: Reconciler
) -> None:
    plan = await workshop.article("cancelled")
    campaign_id, _ = await workshop.campaign(("of a campaign", 3))

    async def cancel_article() -> None:
        async with workshop.database.tenant(workshop.tenant.id) as scope:
            await articles.note(scope, plan.article_id, Progress(state=State.CANCELLED, reason="no"))

    async def cancel_campaign() -> None:
        async with workshop.database.tenant(workshop.tenant.id) as scope:
            await campaigns.note(scope, campaign_id, "cancelled")

    hasty = Reconciler(meanwhile(client, cancel_article), workshop.database)
    await hasty.start_article(workshop.tenant.id, plan.article_id)
    hasty = Reconciler(meanwhile(client, cancel_campaign), workshop.database)
    await hasty.start_campaign(workshop.tenant.id, campaign_id)
    assert await signals(client, ids.workflow_id(workshop.tenant.id, plan.article_id)) == ["cancel"]
    assert await signals(client, ids.campaign_workflow_id(workshop.tenant.id, campaign_id)) == ["cancel"]
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        campaign = await campaigns.get(scope, campaign_id)
    assert campaign is not None
    assert campaign.state == "cancelled"


async def test_a_row_that_cannot_be_started_keeps_no_other_from_it(
    workshop: Workshop, client: Client, reconciler: Reconciler, caplog: pytest.LogCaptureFixture
) -> None:
    broken, sound = await workshop.article("broken"), await workshop.article("sound")
    await age(workshop)
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        await scope.sql.execute(text("UPDATE articles SET plan = '{}' WHERE id = :id"), {"id": broken.article_id})
    for _ in range(2):
        await reconciler.sweep()
    await client.get_workflow_handle(ids.workflow_id(workshop.tenant.id, sound.article_id)).describe()
    told = [record for record in caplog.records if broken.article_id in record.getMessage()]
    assert [bool(record.exc_info) for record in told] == [True]
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        await articles.hold(scope, broken.article_id, "for other tests' sake")


class Refusing(Reconciler):
    """The server takes no limit for one queue."""

    refused = ""

    async def _set(self, queue: str, rate: Fraction | None, why: str) -> None:
        if queue == self.refused:
            raise RPCError("not this one", RPCStatusCode.INVALID_ARGUMENT, b"")
        await super()._set(queue, rate, why)


async def test_a_queue_whose_limit_cannot_be_set_keeps_no_other_from_its_own(
    workshop: Workshop, client: Client, reconciler: Reconciler, caplog: pytest.LogCaptureFixture
) -> None:
    refused = f"channel.{workshop.name('deepseek')}"
    for part in ("deepseek", "qwen"):
        await workshop.change_channel(part, rate=Fraction(2))
    refusing = Refusing(client, workshop.database)
    refusing.refused = refused
    for _ in range(2):
        await refusing.set_limits()
    assert await limit(workshop, client, "qwen") == (2 * AHEAD, "channels.toml")
    assert len([record for record in caplog.records if refused in record.getMessage()]) == 1
    refusing.refused = ""
    await refusing.set_limits()
    assert await limit(workshop, client) == (2 * AHEAD, "channels.toml")


async def test_a_pause_for_a_reason_longer_than_the_server_takes_holds_all_the_same(
    workshop: Workshop, client: Client, reconciler: Reconciler
) -> None:
    name = workshop.name("deepseek")
    async with workshop.database.operator() as op:
        await channels.pause(op, name, "欠费" * 1000)
    await reconciler.set_limits()
    rate, reason = await limit(workshop, client)
    assert (rate, reason.startswith("paused: 欠费欠费"), len(reason.encode()) <= 1000) == (0.0, True, True)
    async with workshop.database.operator() as op:
        await channels.resume(op, name)


class Troubled(Counting):
    """Its limits cannot be set, for a reason that nobody has foreseen."""

    swept = prepared = 0

    async def set_limits(self) -> None:
        self.acted += 1
        raise ValueError("unforeseen")

    async def sweep(self) -> None:
        self.swept += 1

    async def _prepare_partitions(self) -> None:
        self.prepared += 1


async def test_what_nobody_has_foreseen_ends_neither_the_beat_nor_the_worker(
    workshop: Workshop, client: Client, reconciler: Reconciler, caplog: pytest.LogCaptureFixture
) -> None:
    troubled = Troubled(client, workshop.database)
    running = asyncio.create_task(troubled.run())
    try:
        await until(lambda: troubled.acted >= 3)
        assert (troubled.swept, troubled.prepared) == (1, 1)
        assert not running.done()
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
    assert running.cancelled()
    assert [bool(record.exc_info) for record in caplog.records if "unforeseen" in record.getMessage()] == [True]


async def test_whoever_takes_over_prepares_the_partitions_at_once(
    workshop: Workshop, client: Client, reconciler: Reconciler
) -> None:
    first, second = (Troubled(client, workshop.database) for _ in range(2))
    running = [asyncio.create_task(first.run())]
    try:
        await until(lambda: first.prepared == 1)
        running.append(asyncio.create_task(second.run()))
        await asyncio.sleep(1)
        assert second.acted == 0
        running[0].cancel()
        await until(lambda: second.prepared == 1)
        assert first.prepared == 1
    finally:
        for task in running:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
