"""Idempotent rows beside the workflow's life, and a campaign's admission and broadcasts."""

from temporalio import activity
from temporalio.client import Client

from activities.telling import tell
from citeloop.models import ids
from citeloop.models.plan import MonitorPolicy, Stage, State
from citeloop.models.work import Measurement
from citeloop.rules import measuring
from citeloop.store.database import Database, Scope
from citeloop.store.repositories import articles, campaigns, manifests, publications, samples
from workflows import stages
from workflows.client import start_article
from workflows.orders import CAMPAIGN, Rank, Word
from workflows.stages import (
    CampaignBrief,
    CampaignChange,
    CampaignRef,
    Census,
    Ending,
    Note,
    Page,
    SamplePage,
    SampleQuery,
)

PAGE = 200


class BookkeepingActivities(stages.Bookkeeping):
    def __init__(self, database: Database, client: Client) -> None:
        self._database = database
        self._client = client

    @activity.defn(name="bookkeeping.note")
    async def note(self, note: Note) -> None:
        async with self._database.tenant(note.tenant_id) as scope:
            if note.lifted:
                await articles.hold(scope, note.article_id, None)
            cancelled = await articles.note(scope, note.article_id, note.progress)
        if cancelled is not None:  # it was started as it was cancelled, and whoever started it died before saying so
            await self._stop(note.tenant_id, note.article_id, cancelled)

    @activity.defn(name="bookkeeping.baseline_ready")
    async def baseline_ready(self, campaign: CampaignRef) -> bool:
        async with self._database.tenant(campaign.tenant_id) as scope:
            return await campaigns.baseline_ready(scope, campaign.campaign_id)

    @activity.defn(name="bookkeeping.measure")
    async def measure(self, ending: Ending) -> Measurement:
        plan = ending.plan
        async with self._database.tenant(plan.tenant_id) as scope:
            taken = await samples.of_keyword(scope, plan.manifest_id, ids.prompt_id(plan.keyword, plan.locale))
            rows = await publications.of_article(scope, plan.article_id)
            found = measuring.measure_article(
                taken,
                [row.url for row in rows if row.url],
                ending.progress.published_at,
                day=plan.monitor.day,
            )
            engines = len(plan.routes.get(Stage.MONITOR, ()))
            planned = engines * len(plan.monitor.offsets) * plan.monitor.replicates
            measurement = found.model_copy(update={"after_planned": planned})
            await articles.measured(scope, plan.article_id, measurement)
            await articles.note(scope, plan.article_id, ending.progress)
            return measurement

    @activity.defn(name="bookkeeping.brief")
    async def brief(self, campaign: CampaignRef) -> CampaignBrief:
        async with self._database.tenant(campaign.tenant_id) as scope:
            plan = await articles.any_plan(scope, campaign.campaign_id)
        if plan is None:
            return CampaignBrief(engines=(), monitor=MonitorPolicy(), weight=1.0, priority=3)
        engines = plan.routes.get(Stage.MONITOR, ()) if Stage.MONITOR in plan.stages else ()
        return CampaignBrief(engines=engines, monitor=plan.monitor, weight=plan.weight, priority=plan.priority)

    @activity.defn(name="bookkeeping.census")
    async def census(self, campaign: CampaignRef) -> Census:
        async with self._database.tenant(campaign.tenant_id) as scope:
            return await _census(scope, campaign.campaign_id)

    @activity.defn(name="bookkeeping.questions")
    async def questions(self, query: SampleQuery) -> SamplePage:
        async with self._database.tenant(query.tenant_id) as scope:
            manifest_id, found = await manifests.page(
                scope,
                query.campaign_id,
                controls=query.window != "baseline",
                first=query.first,
                limit=query.limit + 1,
            )
        return SamplePage(
            prompt_ids=found[: query.limit],
            more=len(found) > query.limit,
            manifest_id=manifest_id,
        )

    @activity.defn(name="bookkeeping.admit")
    async def admit(self, page: Page) -> Census:
        async with self._database.tenant(page.tenant_id) as scope:
            census = await _census(scope, page.campaign_id)
            plans = await articles.startable(scope, page.campaign_id, max(0, page.window - census.active))
        for plan in plans:
            activity.heartbeat()
            run_id = await start_article(self._client, plan)
            async with self._database.tenant(page.tenant_id) as scope:
                cancelled = await articles.started(scope, plan.article_id, run_id)
            if cancelled is not None:
                await self._stop(page.tenant_id, plan.article_id, cancelled)
                break  # perhaps with its whole campaign: what was read above holds no longer
        return await self.census(CampaignRef(tenant_id=page.tenant_id, campaign_id=page.campaign_id))

    @activity.defn(name="bookkeeping.change")
    async def change(self, change: CampaignChange) -> int:
        async with self._database.tenant(change.tenant_id) as scope:
            await _write(scope, change)
            concerned = await _waiting_for(scope, change)
        if change.change == "done":
            return 0
        details = activity.info().heartbeat_details
        after, signalled = (details[0], details[1]) if details else (None, 0)
        while True:
            async with self._database.tenant(change.tenant_id) as scope:
                page = await articles.open_ids(scope, change.campaign_id, after=after, limit=PAGE, stages=concerned)
            for article_id in page:
                signalled += await self._told(change, article_id)
                after = article_id
                activity.heartbeat(after, signalled)
            if len(page) < PAGE:
                return signalled

    async def _told(self, change: CampaignChange, article_id: str) -> bool:
        word: Word | Rank = Word(by=CAMPAIGN, reason=change.reason)
        if change.change == "prioritise":
            word = Rank(priority=change.priority or 3, by=CAMPAIGN)
        heard = await tell(self._client, ids.workflow_id(change.tenant_id, article_id), change.change, word)
        if not heard and change.change == "cancel":
            async with self._database.tenant(change.tenant_id) as scope:
                await articles.cancel_lost(scope, article_id, change.reason)
        return heard

    async def _stop(self, tenant_id: str, article_id: str, reason: str) -> None:
        await tell(self._client, ids.workflow_id(tenant_id, article_id), "cancel", Word(by=CAMPAIGN, reason=reason))


async def _census(scope: Scope, campaign_id: str) -> Census:
    counted = await articles.census(scope, campaign_id)
    return Census(
        waiting=counted.waiting,
        active=counted.active,
        open=counted.waiting + counted.open,
        review=counted.review,
        scheduled=counted.scheduled,
    )


async def _waiting_for(scope: Scope, change: CampaignChange) -> tuple[Stage, ...] | None:
    """The last stage of those whom the change concerns; None: all. A baseline is waited for on the eve of publishing,
    and whoever gets there later finds it in the store."""
    if change.change != "baseline":
        return None
    plan = await articles.any_plan(scope, change.campaign_id)
    order = [stage for stage in Stage if plan is not None and stage in plan.stages]
    if Stage.PUBLISH not in order:
        return None
    eve = order.index(Stage.PUBLISH) - 1
    return tuple(order[max(eve, 0) : eve + 2])


async def _write(scope: Scope, change: CampaignChange) -> None:
    """The campaign's own row; every line is harmless when said twice."""
    match change.change:
        case "pause":
            await campaigns.hold(scope, change.campaign_id, change.reason or "paused")
        case "resume":
            await campaigns.hold(scope, change.campaign_id, None)
        case "cancel":
            await campaigns.hold(scope, change.campaign_id, change.reason or "cancelled")
            await campaigns.note(scope, change.campaign_id, State.CANCELLED)
            await articles.cancel_unstarted(scope, change.campaign_id, change.reason)
        case "prioritise":
            await campaigns.prioritise(scope, change.campaign_id, change.priority or 3)
        case "baseline":
            await campaigns.close_window(scope, change.campaign_id, "baseline")
        case "done":
            await campaigns.note(scope, change.campaign_id, State.DONE)
