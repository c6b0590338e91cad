"""Asking the answer engines: before the first page is published, and again in each window after."""

import contextlib
from datetime import datetime, timedelta
from typing import Literal

from temporalio import workflow
from temporalio.exceptions import ActivityError

from citeloop.models import ids
from citeloop.models.plan import Route, Stage
from citeloop.models.work import SampleStep
from workflows import options
from workflows.life import Life, together
from workflows.stages import Bookkeeping, CampaignRef, Monitoring

FIRST_CHECK = timedelta(seconds=15)
LAST_CHECK = timedelta(hours=1)
"""The campaign says when its baseline is complete; should that be missed, the store is asked, ever more rarely."""


async def baseline(life: Life) -> None:
    """What the engines say before any page of the campaign, or of this lone article, is published."""
    plan = life.plan
    if Stage.MONITOR not in plan.stages or life.progress.published_at is not None:
        return
    if plan.campaign_id is None:
        await window(life, "baseline", workflow.info().start_time)
        return
    campaign = CampaignRef(tenant_id=plan.tenant_id, campaign_id=plan.campaign_id)
    pause, told = FIRST_CHECK, life.steering
    while not (
        told.baseline
        or await workflow.execute_local_activity_method(Bookkeeping.baseline_ready, campaign, **options.ledger())
    ):
        with contextlib.suppress(TimeoutError):
            await workflow.wait_condition(lambda: told.baseline, timeout=pause)
        told.guard()
        pause = min(pause * 2, LAST_CHECK)


async def window(life: Life, name: Literal["baseline", "after"], at: datetime) -> None:
    """The article's own question, to every engine of the plan."""
    await together(
        _sample(life, engine, name, at, replicate)
        for engine in life.plan.routes.get(Stage.MONITOR, ())
        for replicate in range(life.plan.monitor.replicates)
    )


async def _sample(life: Life, engine: Route, name: Literal["baseline", "after"], at: datetime, replicate: int) -> None:
    plan = life.plan
    step = SampleStep(
        tenant_id=plan.tenant_id,
        campaign_id=plan.campaign_id,
        article_id=plan.article_id,
        manifest_id=plan.manifest_id,
        prompt_id=ids.prompt_id(plan.keyword, plan.locale),
        engine=engine.name,
        window=name,
        window_start=options.window_start(at, plan.monitor.day),
        replicate=replicate,
    )
    try:
        await life.ask(Monitoring.sample, step, options.sample(plan, engine, name))
    except ActivityError as error:
        # A sample that cannot be had lowers the coverage; it never fails the article.
        life.moved(engine.name, error)
