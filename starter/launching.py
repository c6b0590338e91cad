"""Starting the workflows of what stands in the store."""

from temporalio.client import Client

from citeloop.models import ids
from citeloop.models.plan import Plan, State
from citeloop.models.work import Progress
from citeloop.store.database import Database
from citeloop.store.repositories import articles, starting
from starter.telling import Teller
from workflows.client import start_article, start_campaign
from workflows.orders import CampaignOrder


class Launcher:
    """One tenant's starts. Each is True, unless Temporal does not answer in time.

    What was cancelled just as it was started is told so: nobody else knows of its run.
    """

    def __init__(self, client: Client, database: Database, tenant_id: str, teller: Teller) -> None:
        self._client = client
        self._database = database
        self._tenant_id = tenant_id
        self._teller = teller

    async def campaign(self, campaign_id: str, window: int) -> bool:
        """Unless it was started, held or ended meanwhile."""
        async with self._database.tenant(self._tenant_id) as scope:
            if not await starting.campaign_waits(scope, campaign_id):
                return True
        order = CampaignOrder(tenant_id=self._tenant_id, campaign_id=campaign_id, window=window)
        if await self._teller.in_time(start_campaign(self._client, order)) is None:
            return False
        async with self._database.tenant(self._tenant_id) as scope:
            cancelled = await starting.campaign_began(scope, campaign_id)
        if cancelled is not None:
            await self._teller.stop(ids.campaign_workflow_id(self._tenant_id, campaign_id), cancelled)
        return True

    async def article(self, article_id: str) -> bool:
        """For the first time, unless it was started, held or ended meanwhile."""
        async with self._database.tenant(self._tenant_id) as scope:
            plan = await starting.unstarted_plan(scope, article_id)
        return plan is None or await self._run(plan)

    async def article_again(self, article_id: str, ended: State) -> bool:
        """A new run, from what is kept of one that has `ended`."""
        async with self._database.tenant(self._tenant_id) as scope:
            plan = await articles.plan(scope, article_id)
            saved = await articles.saved_progress(scope, article_id)
            await articles.reopen(scope, article_id)
        return await self._run(plan, _resumed(saved, ended), again=True)

    async def _run(self, plan: Plan, progress: Progress | None = None, *, again: bool = False) -> bool:
        run_id = await self._teller.in_time(start_article(self._client, plan, progress, again=again))
        if run_id is None:
            return False
        async with self._database.tenant(self._tenant_id) as scope:
            cancelled = await articles.started(scope, plan.article_id, run_id)
        if cancelled is not None:
            await self._teller.stop(ids.workflow_id(self._tenant_id, plan.article_id), cancelled)
        return True


def _resumed(saved: Progress | None, ended: State) -> Progress | None:
    """Where the run before had spent its faults, with a fresh count of them."""
    if saved is None:
        return None
    retries = saved.retries + (1 if ended in {State.PARKED, State.FAILED} else 0)
    return saved.model_copy(update={"state": State.RUNNING, "reason": "", "retries": retries})
