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
from temporalio.service import RPCError

from activities.reconciling import Reconciler
from citeloop.models import ids
from citeloop.models.throttling import Cause
from citeloop.models.work import CorrectionKind
from citeloop.store.repositories import articles, campaigns, channels, corrections, publications, throttling
from citeloop.store.statements import text
from starter.embedded.postgres import EmbeddedPostgres
from tests.activities.test_bookkeeping import end_all
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
