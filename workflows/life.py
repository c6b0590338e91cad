"""How an article's life goes on: asking, waiting, holding at the gate, and telling where it stands."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime, timedelta
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.exceptions import ActivityError

from citeloop.models.plan import Plan, Route, Stage, State
from citeloop.models.work import Draft, Held, Measurement, Progress, Step, Waiting
from workflows import options
from workflows.stages import Bookkeeping, Ending, Note
from workflows.steering import StageFailed, Steering, describe, index

Answer = TypeVar("Answer")
Order = TypeVar("Order")

HOLD_CHECK = timedelta(seconds=30)
"""A hold is lifted by a signal; should that be missed, the store is asked again after this long."""

HOLD_CHECK_LONGEST = timedelta(hours=1)
PAUSE_CHECK = timedelta(days=1)
"""Where the pause itself came by a signal, its end does too. Each look costs a dozen events, and a history that
reaches 51,200 is ended by the server."""

TOLD_FROM = timedelta(seconds=20)
"""A shorter wait is over before anybody asks about it."""
AT_ONCE = 1000
"""The server refuses a workflow that has more than 2,000 activities open."""


async def together(work: Iterable[Awaitable[Answer]]) -> list[Answer]:
    """All of them to their end, even when one fails or all are cancelled; then the first failure, if any."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def in_turn(each: Awaitable[Answer]) -> Answer:
        async with turns:
            return await each

    results = await asyncio.gather(*map(in_turn, work), return_exceptions=True)
    done: list[Answer] = []
    for result in results:
        if isinstance(result, BaseException):
            raise result
        done.append(result)
    return done


def hold_check(looks: int, *, paused: bool) -> timedelta:
    """How long until the store is asked again whether a hold still stands, after so many `looks` at it."""
    return PAUSE_CHECK if paused else min(HOLD_CHECK * 2 ** min(looks, 10), HOLD_CHECK_LONGEST)


class Life:
    """One article's plan, progress and pending words, and the few ways in which it may wait for the world."""

    def __init__(self, plan: Plan, progress: Progress, steering: Steering) -> None:
        self.plan = plan
        self.progress = progress
        self.steering = steering
        self._holds = 0
        self._before = (progress.state, progress.reason)
        self._reasons: list[str] = []
        """Why the waits last that are under way."""
        self._reason_before = ""

    async def call(
        self, promise: Callable[[Any, Order], Awaitable[Answer]], order: Order, config: workflow.ActivityConfig
    ) -> Answer:
        """Every activity goes through here, so that no cancel is lost as one finishes (ADR 0007)."""
        describe(self.plan, self.progress)
        try:
            answer = await workflow.execute_activity_method(promise, order, **config)
        except (ActivityError, asyncio.CancelledError):
            self.steering.guard()
            raise
        self.steering.guard()
        return answer

    async def ask(
        self,
        promise: Callable[[Any, Order], Awaitable[Answer | Held | Waiting]],
        order: Order,
        config: workflow.ActivityConfig,
    ) -> Answer:
        """A call that may find a hold or a limit first; neither costs anything, and it is asked again."""
        index(self.progress)
        looks = 0
        while True:
            nudges = self.steering.nudges
            answer = await self.call(promise, order, config)
            if isinstance(answer, Held):
                await self._held(answer, nudges, looks)
                looks += 1
            elif isinstance(answer, Waiting):
                await self.wait(answer.until, answer.reason)
            else:
                return answer

    async def written(self, promise: Callable[[Any, Step], Awaitable[Draft | Held | Waiting]], stage: Stage) -> Draft:
        """By the first channel of the plan that can: the next takes over from one that refuses or breaks."""
        why = "the plan names no channel"
        for route in self.plan.routes.get(stage, ()):
            self.set(channel=route.name)
            try:
                return await self.ask(promise, self.step(stage, route), options.call(self.plan, stage, route))
            except ActivityError as error:
                why = self.moved(route.name, error)
        raise StageFailed(why)

    async def gate(self, stage: Stage) -> None:
        """Before anything is begun: pause holds here, while a running call is left to finish."""
        self.steering.guard()
        begun = self.progress.stage is stage and self.progress.state in {State.RUNNING, State.PUBLISHED}
        if not begun:
            monitoring = stage is Stage.MONITOR and self.progress.published_at is not None
            self.set(stage=stage, state=State.PUBLISHED if monitoring else State.RUNNING, reason="", channel="")
        await self.paused()

    async def paused(self) -> None:
        """As long as a person holds the article; afterwards it stands where it stood, for the same reason."""
        if not self.steering.paused:
            return
        await self._hold("")
        await workflow.wait_condition(lambda: not self.steering.paused)
        self.steering.guard()
        await self._let_go(told=True)

    async def _held(self, held: Held, nudges: int, looks: int) -> None:
        await self._hold(f"held by {held.by}: {held.reason}".rstrip(": "))
        patience = hold_check(looks, paused=self.steering.paused)
        with contextlib.suppress(TimeoutError):
            await workflow.wait_condition(lambda: self.steering.nudges != nudges, timeout=patience)
        self.steering.guard()
        await self._let_go(told=self.steering.nudges != nudges)

    async def _hold(self, reason: str) -> None:
        """Samples and sites are held side by side: the first remembers how the article stood."""
        if not self._holds:
            self._before = (self.progress.state, self.progress.reason)
        self._holds += 1
        if (State.PAUSED, reason) != (self.progress.state, self.progress.reason):
            await self.record(State.PAUSED, reason)

    async def _let_go(self, *, told: bool) -> None:
        """The last sets the article back to how it stood. told: by a word, which may have lifted its own hold."""
        self._holds -= 1
        lifted = told and self.steering.lifted
        if lifted:
            self.steering.lifted = False
        if not self._holds:
            await self.record(*self._before, lifted=lifted)
        elif lifted:
            await self.record(self.progress.state, self.progress.reason, lifted=True)

    async def wait(self, until: datetime | None, reason: str, *, at_least: timedelta = timedelta(0)) -> None:
        """A wait that somebody might ask about is told wherever the article is shown."""
        until = max(until or workflow.now(), workflow.now() + at_least)
        if until - workflow.now() <= TOLD_FROM:
            await self._sleep(until)
            return
        if not self._reasons:
            self._reason_before = self.progress.reason
        self._reasons.append(reason)
        if reason != self.progress.reason:
            await self.record(self.progress.state, reason)
        await self._sleep(until)
        self._reasons.remove(reason)
        left = self._reasons[-1] if self._reasons else self._reason_before
        if self.progress.reason != reason or left == reason:
            return
        if self.progress.stage is Stage.MONITOR:
            await self.record(self.progress.state, left)
        else:  # the activity that comes next enters the article anew
            self.set(reason=left)

    async def _sleep(self, until: datetime) -> None:
        if until > workflow.now():
            await asyncio.sleep((until - workflow.now()).total_seconds())
        self.steering.guard()

    async def record(
        self, state: State, reason: str = "", *, lifted: bool = False, passing: bool = False, **changes: object
    ) -> None:
        """A change that no stage activity writes: kept in the store, where every list is read from.

        passing: the next change follows at once and is told to Temporal's index with it.
        """
        self.set(state=state, reason=reason, **changes)
        self.show(passing=passing)
        note = Note(
            tenant_id=self.plan.tenant_id, article_id=self.plan.article_id, progress=self.progress, lifted=lifted
        )
        await workflow.execute_local_activity_method(Bookkeeping.note, note, **options.ledger())

    async def measure(self, reason: str) -> Measurement:
        """The article's end as measured: what was found and where it stands, kept at once."""
        self.set(state=State.MEASURED, reason=reason)
        self.show()
        ending = Ending(plan=self.plan, progress=self.progress)
        return await workflow.execute_local_activity_method(Bookkeeping.measure, ending, **options.ledger())

    def show(self, *, passing: bool = False) -> None:
        if not passing:
            index(self.progress)
        describe(self.plan, self.progress)

    def set(self, **changes: object) -> None:
        self.progress = self.progress.model_copy(update=changes)

    def moved(self, route: str, error: ActivityError) -> str:
        """Note why a channel did not do it, for the person who asks later who wrote this."""
        why = f"{route}: {error.cause or error}"
        self.set(moves=(*self.progress.moves, why)[-20:])
        return why

    def step(self, stage: Stage, route: Route | str) -> Step:
        return Step(
            tenant_id=self.plan.tenant_id,
            campaign_id=self.plan.campaign_id,
            article_id=self.plan.article_id,
            plan_digest=self.plan.digest,
            stage=stage,
            route=route if isinstance(route, str) else route.name,
            round=self.progress.round,
            retry=self.progress.retries,
            draft_id=self.progress.draft.id if self.progress.draft is not None else None,
            done=self.progress.done,
        )

    @property
    def draft(self) -> Draft:
        if self.progress.draft is None:
            raise StageFailed("there is no draft to work on")
        return self.progress.draft
