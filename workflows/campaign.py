"""CampaignWorkflow: asks the engines first, then admits a campaign's articles page by page."""

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Literal

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from citeloop.models.plan import Route
    from citeloop.models.work import Held, SampleStep, Waiting

from workflows import options
from workflows.life import hold_check, together
from workflows.orders import NOTHING, CampaignOrder, Rank, Word
from workflows.stages import (
    Bookkeeping,
    CampaignBrief,
    CampaignChange,
    CampaignRef,
    Census,
    Monitoring,
    Page,
    SampleQuery,
)

SILENCE = 20
"""The window is looked at again after this part of the time for which nothing has moved: what makes room after an
hour's pause is seen as soon as it matters, and a campaign that rests costs next to nothing."""
SOONEST = timedelta(seconds=1)
LATEST = timedelta(seconds=30)
LATEST_NONE_TO_ADMIT = timedelta(minutes=15)
"""All are admitted, and what is left is to measure, for weeks; or the campaign is paused, until somebody says so."""

LONGEST_HISTORY = 20_000
"""Events. The server ends a run at 51,200; what a new run asks again was kept, but for calls on the wire."""

PAGE = 50
"""Prompts asked at once, of every engine."""


@workflow.defn(name="Campaign")
class CampaignWorkflow:
    @workflow.init
    def __init__(self, order: CampaignOrder) -> None:
        self._order = order
        self._ref = CampaignRef(tenant_id=order.tenant_id, campaign_id=order.campaign_id)
        self._changes: list[CampaignChange] = []
        self._census: Census | None = None
        self._moved_at = workflow.now()
        self._asking = False
        self._stirred = False
        self._applied = 0

    @workflow.run
    async def run(self, _: CampaignOrder) -> Census:
        brief = await workflow.execute_local_activity_method(Bookkeeping.brief, self._ref, **options.ledger())
        self._set(began_at=self._order.began_at or workflow.now(), baseline=self._order.baseline or not brief.engines)
        measuring = asyncio.create_task(self._measure(brief))
        try:
            while not self._over(brief):
                await self._apply_all()
                if self._order.cancelled:
                    measuring.cancel()
                await self._admit()
                await self._wait()
                _raise_failure_of(measuring)
        except (asyncio.CancelledError, ActivityError) as error:
            if not is_cancelled_exception(error):
                raise
            measuring.cancel()
            await self._apply(self._change("cancel", workflow.cancellation_reason() or "cancelled"))
            await workflow.wait([measuring])
            raise
        await workflow.wait([measuring])
        if not self._order.cancelled:
            await self._apply(self._change("done"))
        assert self._census is not None
        return self._census

    def _over(self, brief: CampaignBrief) -> bool:
        if self._census is None or self._census.open or self._changes:
            return False
        measured = self._order.measured >= len(self._offsets(brief))
        return self._order.cancelled or (self._order.baseline and measured)

    async def _admit(self) -> None:
        """The next articles, as many as the window has room for."""
        census = await workflow.execute_local_activity_method(Bookkeeping.census, self._ref, **options.ledger())
        if census.waiting and census.active < self._order.window and not self._order.paused:
            page = Page(tenant_id=self._ref.tenant_id, campaign_id=self._ref.campaign_id, window=self._order.window)
            census = await workflow.execute_activity_method(
                Bookkeeping.admit, page, **options.campaign_desk(f"admit · {census.waiting} waiting")
            )
        if census != self._census:
            self._census, self._moved_at = census, workflow.now()
        unproduced = census.waiting or census.active or census.review or census.scheduled
        if self._order.produced_at is None and not unproduced:
            self._set(produced_at=workflow.now())

    async def _measure(self, brief: CampaignBrief) -> None:
        """Beside the admission, so that neither it nor a person's word waits for an engine."""
        await self._ask_baseline(brief)
        while self._order.measured < len(offsets := self._offsets(brief)):
            await workflow.wait_condition(lambda: self._order.produced_at is not None)
            produced_at = self._order.produced_at or workflow.now()
            if options.is_missed(self._order.measured, offsets, since=produced_at):
                self._set(measured=self._order.measured + 1)
            else:
                await self._ask_controls(brief, produced_at + offsets[self._order.measured])

    async def _ask_baseline(self, brief: CampaignBrief) -> None:
        """The manifest page by page, control prompts included, to every engine; nothing is published before."""
        while not self._order.baseline:
            async with self._in_one_run():
                more = await self._ask(brief, "baseline", self._order.began_at or workflow.now(), self._order.asked)
                self._set(asked=self._order.asked + PAGE)
                if not more:
                    await self._apply(self._change("baseline"))
                    self._set(baseline=True)

    async def _ask_controls(self, brief: CampaignBrief, due: datetime) -> None:
        """The control prompts again, at the same offsets: without them no lift can be told from a trend."""
        await asyncio.sleep(max(0.0, (due - workflow.now()).total_seconds()))
        async with self._in_one_run():
            more, first = True, 0
            while more:
                more = await self._ask(brief, "after", options.asked_for(due, brief.monitor.day), first)
                first += PAGE
            self._set(measured=self._order.measured + 1)

    def _offsets(self, brief: CampaignBrief) -> tuple[timedelta, ...]:
        return options.windows(brief.monitor) if brief.engines else ()

    async def _wait(self) -> None:
        """For a word, for a measurement that is over, or for the next look at the window."""
        admitting = self._census is not None and self._census.waiting and not self._order.paused
        latest = LATEST if admitting else LATEST_NONE_TO_ADMIT
        patience = min(max(SOONEST, (workflow.now() - self._moved_at) / SILENCE), latest)
        with contextlib.suppress(TimeoutError):
            await workflow.wait_condition(
                lambda: bool(self._changes) or self._stirred or self._leaves(), timeout=patience
            )
        if self._stirred:
            self._stirred, self._moved_at = False, workflow.now()
        if self._leaves() and not self._changes:
            workflow.continue_as_new(self._order)

    def _leaves(self) -> bool:
        """A new run is due, and no question is on its way that it would have to ask again; unless an engine that does
        not answer has kept questions open for so long that the server would soon end this one."""
        here = workflow.info()
        return here.is_continue_as_new_suggested() and (
            not self._asking or here.get_current_history_length() > LONGEST_HISTORY
        )

    @contextlib.asynccontextmanager
    async def _in_one_run(self) -> AsyncIterator[None]:
        """Begins after a pause and not on the eve of a new run; what is asked here is not cut in two by one."""
        await workflow.wait_condition(lambda: not self._order.paused and not self._leaves())
        self._asking = True
        try:
            yield
        finally:
            self._asking = False
            self._stirred = True

    async def _ask(self, brief: CampaignBrief, window: Literal["baseline", "after"], at: datetime, first: int) -> bool:
        """One page of questions to every engine; whether there are more."""
        query = SampleQuery(
            tenant_id=self._ref.tenant_id, campaign_id=self._ref.campaign_id, window=window, first=first, limit=PAGE
        )
        page = await workflow.execute_local_activity_method(Bookkeeping.questions, query, **options.ledger())
        start = options.window_start(at, brief.monitor.day)
        await together(
            self._sample(
                brief,
                engine,
                SampleStep(
                    tenant_id=self._ref.tenant_id,
                    campaign_id=self._ref.campaign_id,
                    article_id=None,
                    manifest_id=page.manifest_id,
                    prompt_id=prompt_id,
                    engine=engine.name,
                    window=window,
                    window_start=start,
                    replicate=replicate,
                ),
            )
            for prompt_id in page.prompt_ids
            for engine in brief.engines
            for replicate in range(brief.monitor.replicates)
        )
        return page.more

    async def _sample(self, brief: CampaignBrief, engine: Route, step: SampleStep) -> None:
        config = options.campaign_sample(brief, step.tenant_id, engine, step.window)
        looks = 0
        while True:
            applied = self._applied
            try:
                answer = await workflow.execute_activity_method(Monitoring.sample, step, **config)
            except ActivityError as error:
                if is_cancelled_exception(error):
                    raise
                return  # a sample that cannot be had lowers the coverage, which is shown
            if isinstance(answer, Waiting):
                await asyncio.sleep(max(0.0, (answer.until - workflow.now()).total_seconds()))
            elif isinstance(answer, Held):
                patience, looks = hold_check(looks, paused=self._order.paused), looks + 1
                with contextlib.suppress(TimeoutError):
                    await workflow.wait_condition(functools.partial(self._moved_since, applied), timeout=patience)
            else:
                return

    def _moved_since(self, applied: int) -> bool:
        """Whether a word was carried out meanwhile: it may have lifted the hold."""
        return self._applied != applied

    async def _apply_all(self) -> None:
        while self._changes:
            await self._apply(self._changes.pop(0))

    async def _apply(self, change: CampaignChange) -> None:
        await workflow.execute_activity_method(
            Bookkeeping.change, change, **options.campaign_desk(f"{change.change} {change.reason}".strip())
        )
        self._applied += 1

    def _change(
        self,
        change: Literal["pause", "resume", "cancel", "prioritise", "baseline", "done"],
        reason: str = "",
        priority: int | None = None,
    ) -> CampaignChange:
        return CampaignChange(
            tenant_id=self._ref.tenant_id,
            campaign_id=self._ref.campaign_id,
            change=change,
            reason=reason,
            priority=priority,
        )

    def _set(self, **changes: object) -> None:
        self._order = self._order.model_copy(update=changes)

    @workflow.signal
    def pause(self, word: Word = NOTHING) -> None:
        """Admit nothing more, and pause every open article."""
        self._set(paused=True)
        self._changes.append(self._change("pause", word.reason or f"paused by {word.by}"))

    @workflow.signal
    def resume(self, _: Word = NOTHING) -> None:
        self._set(paused=False)
        self._changes.append(self._change("resume"))

    @workflow.signal
    def cancel(self, word: Word = NOTHING) -> None:
        self._set(cancelled=True)
        self._changes.append(self._change("cancel", word.reason or f"cancelled by {word.by}"))

    @workflow.signal
    def prioritise(self, rank: Rank) -> None:
        self._changes.append(self._change("prioritise", priority=min(5, max(1, rank.priority))))

    @workflow.query
    def census(self) -> Census | None:
        """How the articles stood at the last look."""
        return self._census


def _raise_failure_of(task: asyncio.Task[None]) -> None:
    if task.done() and not task.cancelled():
        error = task.exception()
        if error is not None and not is_cancelled_exception(error):
            raise error
