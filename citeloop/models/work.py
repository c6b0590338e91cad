"""What the stages hand on: ids, digests and verdicts. Bodies stay in the store."""

from datetime import datetime
from enum import StrEnum
from typing import Literal

from pydantic import AwareDatetime, Field

from citeloop.models.plan import Stage, State
from citeloop.models.record import Record


class Step(Record):
    """What an activity is told: whose article, which stage, by which route, in which round."""

    tenant_id: str
    campaign_id: str | None
    article_id: str
    plan_digest: str
    stage: Stage
    route: str
    round: int = 0
    """0 for the first pass; +1 each time a draft is sent back."""
    retry: int = 0
    """+1 each time a person retries the article: a new purchase, with a fresh count of faults."""
    draft_id: str | None = None
    """The draft to work on, where the stage works on one."""
    done: tuple[Stage, ...] = ()
    """Stages that are over, for the article's row."""


class Held(Record):
    """A hold of article, campaign or tenant was found before anything was spent."""

    kind: Literal["held"] = "held"
    by: Literal["article", "campaign", "tenant"]
    reason: str = ""


class Waiting(Record):
    """Nothing failed and nothing was spent; ask again at `until`."""

    kind: Literal["waiting"] = "waiting"
    until: AwareDatetime
    reason: str


class Draft(Record):
    kind: Literal["draft"] = "draft"
    id: str
    digest: str
    """SHA-256 of title and body: what a decision is bound to."""
    stage: Stage
    round: int
    channel: str
    title: str
    chars: int


class Picture(Record):
    kind: Literal["picture"] = "picture"
    digest: str
    source: str
    """The channel's name, or `card` for the built-in title card."""
    alt: str
    credit: str = ""


class Severity(StrEnum):
    NOTE = "note"
    FLAG = "flag"
    """A person should look."""
    BLOCK = "block"
    """Never published as it stands."""


class Flag(Record):
    rule: str
    severity: Severity
    message: str
    excerpt: str = ""


class Outcome(StrEnum):
    CLEAN = "clean"
    FLAGGED = "flagged"
    BLOCKED = "blocked"


class Verdict(Record):
    kind: Literal["verdict"] = "verdict"
    draft_id: str
    draft_digest: str
    outcome: Outcome
    flags: tuple[Flag, ...] = Field(default=(), max_length=50)


class Action(StrEnum):
    APPROVE = "approve"
    SEND_BACK = "send_back"
    REJECT = "reject"


class Decision(Record):
    """A person's word on one draft version; the first one recorded counts."""

    kind: Literal["decision"] = "decision"
    action: Action
    draft_id: str
    draft_digest: str
    by: str = "unknown"
    notes: str = ""


class PublicationState(StrEnum):
    RESERVED = "reserved"
    SENDING = "sending"
    """The request may be on the wire; never released, never sent again without a look-up."""
    UNKNOWN = "unknown"
    SENT = "sent"
    """The site accepted and will confirm by callback."""
    PUBLISHED = "published"
    PARKED = "parked"
    """Undecidable: a person must look."""
    FAILED = "failed"
    WITHDRAWN = "withdrawn"


class CorrectionKind(StrEnum):
    CORRECT = "correct"
    WITHDRAW = "withdraw"


class Receipt(Record):
    """Where one article stands on one site."""

    kind: Literal["receipt"] = "receipt"
    publication_id: str
    site: str
    state: PublicationState
    url: str = ""
    reason: str = ""
    look_again: datetime | None = None
    """When the next look-up makes sense, while the state is UNKNOWN, or the callback deadline while SENT."""
    readable: bool | None = None
    """Whether answer engines can read the page; None: it was not looked at."""


class Reading(Record):
    """What was found when the published page was fetched as an answer engine would fetch it."""

    kind: Literal["reading"] = "reading"
    url: str
    readable: bool | None
    """None: not looked at, `notes` say why."""
    problems: tuple[str, ...] = ()
    """Each of them keeps engines from the page."""
    notes: tuple[str, ...] = ()
    checked_at: AwareDatetime


class SampleStatus(StrEnum):
    OK = "ok"
    REFUSED = "refused"
    FAILED = "failed"
    SKIPPED = "skipped"
    SEARCH_NOT_TRIGGERED = "search_not_triggered"


class SampleStep(Record):
    """One question to one engine in one window. `article_id` is None for a campaign's own samples."""

    tenant_id: str
    campaign_id: str | None
    article_id: str | None
    manifest_id: str
    prompt_id: str
    engine: str
    window: Literal["baseline", "after"]
    window_start: AwareDatetime
    replicate: int = 0


class Sampled(Record):
    kind: Literal["sampled"] = "sampled"
    status: SampleStatus
    named: bool = False
    cited: bool = False


class Measurement(Record):
    """What monitoring found for one article. Rates are null when nothing could be counted."""

    kind: Literal["measurement"] = "measurement"
    baseline_ok: int = 0
    baseline_named: int = 0
    after_planned: int = 0
    after_ok: int = 0
    after_named: int = 0
    after_grounded: int = 0
    """ok samples that carry a source list."""
    after_cited: int = 0
    first_cited_days: float | None = None


class Progress(Record):
    """How far an article has come: the answer to the `progress` query, and what a new run resumes from."""

    stage: Stage = Stage.GENERATE
    state: State = State.SUBMITTED
    reason: str = ""
    channel: str = ""
    round: int = 0
    done: tuple[Stage, ...] = ()
    draft: Draft | None = None
    picture: Picture | None = None
    verdict: Verdict | None = None
    receipts: tuple[Receipt, ...] = ()
    published_at: AwareDatetime | None = None
    sent_back: str = ""
    """The draft that was sent back once too often; a person's retry has it rewritten."""
    measured: int = 0
    """Monitor windows that are over."""
    retries: int = 0
    moves: tuple[str, ...] = ()
    """Why an earlier channel of the plan did not write this article: `deepseek: refused: …`."""
    priority: int = 3


class Ended(Record):
    """How an article's life ended: the workflow's result."""

    kind: Literal["ended"] = "ended"
    state: State
    reason: str = ""
    urls: tuple[str, ...] = ()
    measurement: Measurement | None = None
