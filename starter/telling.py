"""Sending a word to a workflow, and waiting a moment to see what comes of it."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from temporalio.client import Client, WorkflowHandle, WorkflowQueryFailedError
from temporalio.service import RPCError, RPCStatusCode

from citeloop.models import ids
from citeloop.models.record import Record
from citeloop.models.work import Progress
from citeloop.store.repositories.articles import ArticleView
from citeloop.store.repositories.campaigns import CampaignView
from workflows.orders import Rank, Word

UNANSWERED = "recorded, no worker is answering"
_AGAIN = 0.2
_UNHEARD = {RPCStatusCode.NOT_FOUND, RPCStatusCode.FAILED_PRECONDITION}


class Effect(Record):
    """What came of a word. It is recorded in any case; `answered` says whether a worker has acted on it."""

    id: str
    name: str
    """The keyword, or the campaign's name."""
    recorded: bool = True
    answered: bool
    state: str
    message: str


class Teller:
    """Signals and queries of one tenant's workflows. `patience` bounds every wait for an effect."""

    def __init__(self, client: Client, tenant_id: str, patience: timedelta) -> None:
        self._client = client
        self._tenant_id = tenant_id
        self._patience = patience.total_seconds()

    async def tell(
        self, article: ArticleView, signal: str, argument: Word | Rank, until: Callable[[Progress], bool]
    ) -> Effect:
        handle = self._client.get_workflow_handle(ids.workflow_id(self._tenant_id, article.id))
        if not await self._heard(handle, signal, argument):
            return effect_on(article, answered=False, message="recorded; it has no open run")
        return await self.observe(article, until)

    async def observe(self, article: ArticleView, until: Callable[[Progress], bool]) -> Effect:
        """A query is answered only after the signals before it were: any answer proves that a worker acted."""
        handle = self._client.get_workflow_handle(ids.workflow_id(self._tenant_id, article.id))
        progress: Progress | None = None
        deadline = time.monotonic() + self._patience
        while (left := deadline - time.monotonic()) > 0:
            try:
                async with asyncio.timeout(left):
                    progress = await handle.query("progress", result_type=Progress)
            except (RPCError, WorkflowQueryFailedError, TimeoutError):
                break
            if until(progress):
                return effect_on(article, progress, answered=True, message="done")
            await asyncio.sleep(min(_AGAIN, left))
        if progress is None:
            return effect_on(article, answered=False, message=UNANSWERED)
        return effect_on(article, progress, answered=True, message="heard; it takes effect before the next stage")

    async def tell_campaign(
        self,
        campaign: CampaignView,
        signal: str,
        argument: Word | Rank,
        look: Callable[[], Awaitable[CampaignView]],
        until: Callable[[CampaignView], bool],
    ) -> Effect:
        """Answered when a worker has taken the word in; done when the articles have taken it too."""
        handle = self._client.get_workflow_handle(ids.campaign_workflow_id(self._tenant_id, campaign.id))
        answered, message = False, UNANSWERED
        if not await self._heard(handle, signal, argument):
            return _effect_on_campaign(campaign, answered=False, message="recorded; it has no open run")
        deadline = time.monotonic() + self._patience
        while (left := deadline - time.monotonic()) > 0:
            try:
                async with asyncio.timeout(left):
                    await handle.query("census")
            except (RPCError, WorkflowQueryFailedError, TimeoutError):
                break
            answered, message = True, "heard; its articles are being told"
            campaign = await look()
            if until(campaign):
                message = "done"
                break
            await asyncio.sleep(min(_AGAIN, left))
        return _effect_on_campaign(campaign, answered=answered, message=message)

    async def lost(self, article_id: str) -> bool:
        """Whether no run of it is open: terminated by hand, ended by the server, forgotten. RPCError, in time."""
        handle = self._client.get_workflow_handle(ids.workflow_id(self._tenant_id, article_id))
        try:
            async with asyncio.timeout(self._patience):
                return (await handle.describe()).close_time is not None
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            return True
        except (RuntimeError, TimeoutError) as error:  # RuntimeError: a lazy client's first contact
            raise RPCError(f"no answer ({error})", RPCStatusCode.UNAVAILABLE, b"") from None

    async def stop(self, workflow_id: str, reason: str) -> None:
        """A run that was begun while its row was being cancelled."""
        await self._heard(self._client.get_workflow_handle(workflow_id), "cancel", Word(reason=reason))

    async def called_back(self, article_id: str, site: str) -> bool:
        """Tell an article that its site has confirmed. False when no run is open to hear it."""
        handle = self._client.get_workflow_handle(ids.workflow_id(self._tenant_id, article_id))
        return await self._heard(handle, "callback", site)

    async def in_time(self, starting: Awaitable[str]) -> str | None:
        """The run's id; None when Temporal does not answer now."""
        try:
            async with asyncio.timeout(self._patience):
                return await starting
        except (RPCError, RuntimeError, TimeoutError):  # RuntimeError: a lazy client's first contact
            return None

    async def _heard(self, handle: WorkflowHandle[Any, Any], signal: str, argument: Word | Rank | str) -> bool:
        """False: no run is open. RPCError, in time, when Temporal does not answer."""
        try:
            async with asyncio.timeout(self._patience):
                await handle.signal(signal, argument)
        except RPCError as error:
            if error.status not in _UNHEARD:
                raise
            return False
        except (RuntimeError, TimeoutError) as error:  # RuntimeError: a lazy client's first contact
            raise RPCError(f"no answer ({error})", RPCStatusCode.UNAVAILABLE, b"") from None
        return True


def effect_on(article: ArticleView, progress: Progress | None = None, *, answered: bool, message: str) -> Effect:
    state = progress.state if progress else article.state
    return Effect(id=article.id, name=article.keyword, answered=answered, state=state, message=message)


def _effect_on_campaign(campaign: CampaignView, *, answered: bool, message: str) -> Effect:
    return Effect(id=campaign.id, name=campaign.name, answered=answered, state=campaign.state, message=message)
