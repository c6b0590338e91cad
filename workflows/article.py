"""ArticleWorkflow: one keyword through six stages. Read it top to bottom: this is what happens to an article."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import NoReturn

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from citeloop.models.plan import ReviewMode, Stage, State
    from citeloop.models.work import Action, Decision, Draft, Ended, Outcome, Progress, PublicationState, Verdict

from workflows import options, publication, sampling
from workflows.life import Life, together
from workflows.orders import CAMPAIGN, NOTHING, ArticleOrder, Rank, Word
from workflows.stages import DecisionNote, Illustrating, Reviewing, Writing
from workflows.steering import StageFailed, Steering, Stopped


@workflow.defn(name="Article")
class ArticleWorkflow:
    @workflow.init
    def __init__(self, order: ArticleOrder) -> None:
        self._plan = order.plan
        self._steering = Steering(paused=order.paused)
        progress = order.progress or Progress(priority=order.plan.priority)
        self._life = Life(order.plan, progress, self._steering)

    @workflow.run
    async def run(self, _: ArticleOrder) -> Ended:
        self._steering.begin()
        try:
            await self._through(Stage.GENERATE, self._generate)
            await self._through(Stage.REWRITE, self._rewrite)
            await self._through(Stage.ILLUSTRATE, self._illustrate)
            await self._through(Stage.REVIEW, self._review)
            await self._through(Stage.PUBLISH, self._publish)
            await self._through(Stage.MONITOR, self._monitor)
        except Stopped as stopped:
            return await self._end(stopped.state, stopped.reason)
        except (asyncio.CancelledError, ActivityError) as error:
            if not is_cancelled_exception(error):
                raise
            ended = await self._end(State.CANCELLED, self._steering.cancel_reason)
            if workflow.cancellation_reason() is not None:
                raise
            return ended
        state = State.MEASURED if Stage.MONITOR in self._plan.stages else State.DONE
        return await self._end(state, publication.missing(self._life))

    async def _through(self, stage: Stage, work: Callable[[], Awaitable[None]]) -> None:
        """One stage: skipped when done, held at the gate while paused, parked when it cannot go on."""
        if stage not in self._plan.stages or stage in self._life.progress.done:
            return
        while True:
            await self._life.gate(stage)
            try:
                await work()
                break
            except StageFailed as failed:
                await self._park(stage, failed.reason)
        self._steering.guard()
        self._life.set(done=(*self._life.progress.done, stage))

    async def _generate(self) -> None:
        self._life.set(draft=await self._life.written(Writing.generate, Stage.GENERATE))

    async def _rewrite(self) -> None:
        self._life.set(draft=await self._life.written(Writing.rewrite, Stage.REWRITE))

    async def _illustrate(self) -> None:
        """An image channel, else the built-in title card, else no picture: an article survives without."""
        step = self._life.step
        for route in self._plan.routes.get(Stage.ILLUSTRATE, ()):
            self._life.set(channel=route.name)
            config = options.call(self._plan, Stage.ILLUSTRATE, route)
            try:
                self._life.set(
                    picture=await self._life.ask(Illustrating.illustrate, step(Stage.ILLUSTRATE, route), config)
                )
            except ActivityError as error:
                self._life.moved(route.name, error)
            else:
                return
        config = options.desk(self._plan, f"title card · {self._plan.keyword}")
        try:
            self._life.set(picture=await self._life.call(Illustrating.card, step(Stage.ILLUSTRATE, "card"), config))
        except ActivityError as error:
            self._life.moved("card", error)

    async def _review(self) -> None:
        """Judged by rules and, where the plan says so, by a person; sent back at most `max_rounds` times, and as
        often again when a person retries."""
        most = self._life.progress.round + self._plan.review.max_rounds
        if self._life.progress.sent_back == self._life.draft.id:
            await self._once_more()
        while True:
            decision = await self._decided(self._life.draft)
            if decision.action is Action.APPROVE:
                return
            if decision.action is Action.REJECT:
                raise Stopped(State.REJECTED, decision.notes or f"rejected by {decision.by}")
            rounds = self._life.progress.round
            if rounds >= most:
                self._life.set(sent_back=self._life.draft.id)
                raise StageFailed(f"sent back {rounds + 1} times; last notes: {decision.notes}")
            await self._once_more()

    async def _once_more(self) -> None:
        """A draft that was sent back is rewritten, with the notes on it."""
        self._life.set(round=self._life.progress.round + 1, verdict=None)
        await self._life.gate(Stage.REWRITE)
        await self._rewrite()
        await self._life.gate(Stage.REVIEW)

    async def _publish(self) -> None:
        """To every site of the plan, each at most once, after the engines were asked what they say before."""
        await sampling.baseline(self._life)
        await publication.at_its_time(self._life)
        sites = self._plan.routes.get(Stage.PUBLISH, ())
        receipts = await together(publication.publish_to(self._life, site) for site in sites)
        published = [receipt for receipt in receipts if receipt.state is PublicationState.PUBLISHED]
        troubles = publication.missing(self._life)
        if not published:
            raise StageFailed(troubles or "the plan names no site")
        published_at = self._life.progress.published_at or workflow.now()
        await self._life.record(State.PUBLISHED, troubles, passing=True, published_at=published_at)

    async def _monitor(self) -> None:
        """The engines are asked again at the plan's offsets; days or weeks later there is a measured answer."""
        published_at = self._life.progress.published_at or workflow.now()
        offsets, looked = options.windows(self._plan.monitor), self._life.progress.measured > 0
        while (next_ := self._life.progress.measured) < len(offsets):
            if options.is_missed(next_, offsets, since=published_at):
                self._life.set(measured=next_ + 1)
                continue
            due = published_at + offsets[next_]
            if due - workflow.now() > options.LONG_WAIT and workflow.info().continued_run_id is None:
                await self._anew()
            await self._until(due)
            if not looked:
                await publication.look_again(self._life)
                looked = True
            if why := self._pointless():
                raise Stopped(State.MEASURED, f"no longer monitored: {why}")
            await self._life.gate(Stage.MONITOR)
            await sampling.window(self._life, "after", options.asked_for(due, self._plan.monitor.day))
            self._life.set(measured=next_ + 1)

    async def _anew(self) -> NoReturn:
        """Days of waiting begin with an empty history, which any worker takes up at once."""
        self._life.show()
        await workflow.wait_condition(workflow.all_handlers_finished)
        workflow.continue_as_new(
            ArticleOrder(plan=self._plan, progress=self._life.progress, paused=self._steering.paused)
        )

    async def _until(self, when: datetime) -> None:
        """The next window, or the withdrawal of the last page. A retry meanwhile is for the sites that lack one."""
        while (left := when - workflow.now()) > timedelta(0) and not self._gone():
            self._life.show()
            with contextlib.suppress(TimeoutError):
                await workflow.wait_condition(lambda: self._gone() or self._steering.retry, timeout=left)
            if self._steering.retry:
                self._steering.retry = False
                await self._publish()
        self._steering.guard()

    def _gone(self) -> bool:
        """Every page that was published has been withdrawn: there is nothing left to be cited."""
        receipts = self._life.progress.receipts
        return bool(receipts) and not any(publication.stands(receipt) for receipt in receipts)

    def _pointless(self) -> str:
        if self._gone():
            receipts = self._life.progress.receipts
            return f"withdrawn from {', '.join(r.site for r in receipts if r.state is PublicationState.WITHDRAWN)}"
        return publication.unreadable(self._life) if self._plan.monitor.skip_unreadable else ""

    async def _decided(self, draft: Draft) -> Decision:
        """The rules' verdict and, where the plan asks for one, a person's. The first on a draft counts."""
        summary = f"review · {draft.title}"
        step = self._life.step(Stage.REVIEW, "rules")
        verdict = await self._life.call(Reviewing.judge, step, options.desk(self._plan, summary))
        self._life.set(verdict=verdict)
        mode = self._plan.review.mode
        if mode is ReviewMode.AUTO or (mode is ReviewMode.HUMAN_WHEN_FLAGGED and verdict.outcome is Outcome.CLEAN):
            decision = self._by_the_rules(verdict)
        else:
            decision = await self._by_a_person(draft)
        note = DecisionNote(tenant_id=self._plan.tenant_id, article_id=self._plan.article_id, decision=decision)
        return await workflow.execute_local_activity_method(Reviewing.decide, note, **options.ledger())

    def _by_the_rules(self, verdict: Verdict) -> Decision:
        return Decision(
            action=Action.SEND_BACK if verdict.outcome is Outcome.BLOCKED else Action.APPROVE,
            draft_id=verdict.draft_id,
            draft_digest=verdict.draft_digest,
            by="rules",
            notes="; ".join(flag.message for flag in verdict.flags)[:2000],
        )

    async def _by_a_person(self, draft: Draft) -> Decision:
        """Waits; past `escalate_after` says so, past `deadline` gives up and parks."""
        policy, asked_at = self._plan.review, workflow.now()
        for patience, state in ((policy.escalate_after, "waits for a person"), (policy.deadline, "overdue")):
            await self._life.record(State.REVIEW, state)
            while (left := asked_at + patience - workflow.now()) > timedelta(0):
                with contextlib.suppress(TimeoutError):
                    await workflow.wait_condition(lambda: self._steering.decision is not None, timeout=left)
                if (decision := self._steering.take_decision(draft)) is not None:
                    return decision
        raise StageFailed(f"nobody decided within {policy.deadline}")

    async def _park(self, stage: Stage, reason: str) -> None:
        """On the dead-letter list until a person retries; after `park_for` the article has failed."""
        self._steering.retry = False
        await self._life.record(State.PARKED, reason)
        try:
            await workflow.wait_condition(
                lambda: self._steering.retry or self._confirmed(stage), timeout=self._plan.park_for
            )
        except TimeoutError:
            await self._end(State.FAILED, f"{stage}: {reason}")
            raise ApplicationError(f"{stage}: {reason}", type="article_failed", non_retryable=True) from None
        self._steering.guard()
        retried, self._steering.callbacks = self._steering.retry, set()
        await self._life.record(State.RUNNING, retries=self._life.progress.retries + (1 if retried else 0))

    def _confirmed(self, stage: Stage) -> bool:
        """A site that was given up has confirmed after all: the inbox holds what the article waits for."""
        receipts = self._life.progress.receipts if stage is Stage.PUBLISH else ()
        waiting = {r.site for r in receipts if r.state is not PublicationState.PUBLISHED}
        return not waiting.isdisjoint(self._steering.callbacks)

    async def _end(self, state: State, reason: str = "") -> Ended:
        measurement = None
        if state is State.MEASURED:
            measurement = await self._life.measure(reason)
        else:
            await self._life.record(state, reason)
        receipts = self._life.progress.receipts
        urls = tuple(r.url for r in receipts if r.url and r.state is not PublicationState.WITHDRAWN)
        return Ended(state=state, reason=reason, urls=urls, measurement=measurement)

    @workflow.signal
    def pause(self, _: Word = NOTHING) -> None:
        """Hold before the next stage; a call that is running finishes."""
        self._steering.paused = True

    @workflow.signal
    def resume(self, word: Word = NOTHING) -> None:
        """Go on. A campaign's word does not lift the hold that a person has put on this article."""
        self._steering.resume(lifts=word.by != CAMPAIGN)

    @workflow.signal
    def cancel(self, word: Word = NOTHING) -> None:
        """End the article; a post that may be on the wire is still recorded truthfully."""
        self._steering.cancel(word.reason)

    @workflow.signal
    def approve(self, word: Word = NOTHING) -> None:
        self._steering.decision = (Action.APPROVE, word)

    @workflow.signal
    def send_back(self, word: Word = NOTHING) -> None:
        """Back to rewriting, with the notes."""
        self._steering.decision = (Action.SEND_BACK, word)

    @workflow.signal
    def reject(self, word: Word = NOTHING) -> None:
        self._steering.decision = (Action.REJECT, word)

    @workflow.signal
    def prioritise(self, rank: Rank) -> None:
        """The tenant's own order among its articles, 1 first."""
        self._life.set(priority=min(5, max(1, rank.priority)))

    @workflow.signal
    def retry(self, _: Word = NOTHING) -> None:
        """Try a parked stage again, with a fresh count of faults."""
        self._steering.retry = True

    @workflow.signal
    def callback(self, site: str) -> None:
        """The site has confirmed; what it said is in the inbox."""
        self._steering.callbacks.add(site)

    @workflow.signal
    def baseline(self, _: Word = NOTHING) -> None:
        """The campaign's engines have been asked what they say before: publishing may begin."""
        self._steering.baseline = True

    @workflow.signal
    def withdrawn(self, site: str) -> None:
        """The page on this site was taken away."""
        publication.withdrawn(self._life, site)

    @workflow.query
    def progress(self) -> Progress:
        return self._life.progress
