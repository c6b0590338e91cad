"""What people may say to an article, and what they have said that it has not acted on yet."""

import asyncio
from typing import Any

from temporalio import workflow
from temporalio.common import SearchAttributeKey, SearchAttributeUpdate

from citeloop.models.plan import Plan, Stage, State
from citeloop.models.work import Action, Decision, Draft, Progress
from workflows.orders import Word

TENANT = SearchAttributeKey.for_keyword("CiteLoopTenant")
CAMPAIGN = SearchAttributeKey.for_keyword("CiteLoopCampaign")
STAGE = SearchAttributeKey.for_keyword("CiteLoopStage")
STATE = SearchAttributeKey.for_keyword("CiteLoopState")
CHANNEL = SearchAttributeKey.for_keyword("CiteLoopChannel")
PRIORITY = SearchAttributeKey.for_int("CiteLoopPriority")


class Stopped(Exception):  # noqa: N818 - an ending, not an error
    """The article's life ends here, for a reason that somebody gave."""

    def __init__(self, state: State, reason: str) -> None:
        super().__init__(reason)
        self.state = state
        self.reason = reason


class StageFailed(Exception):  # noqa: N818 - a stage's outcome
    """A stage cannot go on by itself: the article parks until a person retries."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Steering:
    """The pending words of one article. Signals write it, the stages read it."""

    def __init__(self, *, paused: bool) -> None:
        self.paused = paused
        self.cancelled: str | None = None
        self.retry = False
        self.lifted = False
        """The last resume lifted the article's own hold, not only its campaign's."""
        self.nudges = 0
        """Counts resumes, so that one that arrives before its hold is seen is not lost."""
        self.decision: tuple[Action, Word] | None = None
        self.callbacks: set[str] = set()
        self.withdrawn: set[str] = set()
        self.baseline = False
        """The engines have been asked what they say before: publishing may begin."""
        self._life: asyncio.Task[Any] | None = None

    def begin(self) -> None:
        self._life = asyncio.current_task()

    def resume(self, *, lifts: bool) -> None:
        self.paused, self.lifted = False, lifts
        self.nudges += 1

    def cancel(self, reason: str) -> None:
        if self.cancelled is None:
            self.cancelled = reason or "cancelled"
            if self._life is not None:
                self._life.cancel()

    def guard(self) -> None:
        """Never go on after a cancel, even one that came as an activity was finishing."""
        if self.cancelled is not None or workflow.cancellation_reason() is not None:
            raise asyncio.CancelledError

    @property
    def cancel_reason(self) -> str:
        return self.cancelled or workflow.cancellation_reason() or "cancelled"

    def take_decision(self, draft: Draft) -> Decision | None:
        """The word on `draft`, if one was said; a word on another text is dropped."""
        said, self.decision = self.decision, None
        if said is None:
            return None
        action, word = said
        if word.draft_digest not in ("", draft.digest):
            return None
        return Decision(
            action=action,
            draft_id=draft.id,
            draft_digest=draft.digest,
            by=word.by,
            notes=word.notes or word.reason,
        )


def describe(plan: Plan, progress: Progress) -> None:
    """Current details: this article's page in the Temporal UI."""
    workflow.set_current_details(_status_page(plan, progress))


def index(progress: Progress) -> None:
    """Search attributes, where they changed. Each change costs the server as much as two thirds of an activity, so
    what is over in a moment, such as the rules' review, is not told."""
    seen = workflow.info().typed_search_attributes
    wanted: list[SearchAttributeUpdate[Any]] = [
        key.value_set(value)
        for key, value in (
            (STAGE, str(progress.stage)),
            (STATE, str(progress.state)),
            (CHANNEL, progress.channel or "none"),
        )
        if seen.get(key) != value
    ]
    if seen.get(PRIORITY) != progress.priority:
        wanted.append(PRIORITY.value_set(progress.priority))
    if wanted:
        workflow.upsert_search_attributes(wanted)


def _status_page(plan: Plan, progress: Progress) -> str:
    line = " → ".join(_mark(stage, progress) for stage in Stage if stage in plan.stages)
    rows = [
        f"**{plan.keyword}** ({plan.locale}, {plan.kind})",
        line,
        f"State: **{progress.state}**" + (f" — {progress.reason}" if progress.reason else ""),
    ]
    if progress.draft is not None:
        rows.append(f"Draft {progress.draft.title!r} by {progress.draft.channel}, digest {progress.draft.digest[:12]}")
    if progress.verdict is not None and progress.verdict.flags:
        rows.append("Flags: " + "; ".join(flag.message for flag in progress.verdict.flags[:5]))
    if progress.state is State.REVIEW:
        rows.append('Send signal `approve`, `send_back` {"notes": …} or `reject` to decide.')
    if progress.state is State.PARKED:
        rows.append("Send signal `retry` to try again, `cancel` to end it.")
    rows.extend(f"{receipt.site}: {receipt.state} {receipt.url}" for receipt in progress.receipts)
    rows.extend(progress.moves)
    return "\n\n".join(rows)


def _mark(stage: Stage, progress: Progress) -> str:
    if stage in progress.done:
        return f"✓ {stage}"
    return f"**{stage}**" if stage is progress.stage else str(stage)
