"""What each activity promises. activities/ keeps the promises; a test compares the two."""

from abc import ABC, abstractmethod
from datetime import timedelta
from typing import Literal

from temporalio import activity

from citeloop.models.plan import MonitorPolicy, Plan, Route
from citeloop.models.record import Record
from citeloop.models.work import (
    CorrectionKind,
    Decision,
    Draft,
    Held,
    Measurement,
    Picture,
    Progress,
    Reading,
    Receipt,
    Sampled,
    SampleStep,
    Step,
    Verdict,
    Waiting,
)


class Note(Record):
    """A change of state that no stage activity writes: paused, parked, in review, ended."""

    tenant_id: str
    article_id: str
    progress: Progress
    lifted: bool = False
    """A person resumed the article: the hold in its row, if any, is over too."""


class Ending(Record):
    """An article's last samples have been taken: what they found is to be counted, and its end noted."""

    plan: Plan
    progress: Progress


class DecisionNote(Record):
    tenant_id: str
    article_id: str
    decision: Decision


class CampaignRef(Record):
    tenant_id: str
    campaign_id: str


class CampaignBrief(Record):
    """What a campaign needs to know of its own plan. No engines: nothing is to be measured."""

    engines: tuple[Route, ...]
    monitor: MonitorPolicy
    weight: float
    priority: int


class Census(Record):
    """How a campaign's articles stand."""

    waiting: int
    """Not yet started."""
    active: int
    """Started, and neither produced nor waiting for a person."""
    open: int
    """Not ended."""
    review: int = 0
    """Waiting for a person's decision: outside the window, and not yet produced."""
    scheduled: int = 0
    """Approved, and waiting for their time: outside the window, and not yet produced."""


class Page(Record):
    """Room for the next articles of a campaign."""

    tenant_id: str
    campaign_id: str
    window: int


class SampleQuery(Record):
    """One page of the questions a campaign asks itself: the whole manifest before, its controls after."""

    tenant_id: str
    campaign_id: str
    window: Literal["baseline", "after"]
    first: int
    limit: int


class SamplePage(Record):
    prompt_ids: tuple[str, ...]
    more: bool
    manifest_id: str


class CampaignChange(Record):
    """A word to a whole campaign: written to its row, then signalled to each open article."""

    tenant_id: str
    campaign_id: str
    change: Literal["pause", "resume", "cancel", "prioritise", "baseline", "done"]
    reason: str = ""
    priority: int | None = None


class PageQuery(Record):
    """Look at a published page as an answer engine would."""

    step: Step
    late: bool = False
    """Asked again before the first measuring: by now a site that builds its pages has built this one."""


class PageRef(Record):
    """One article's page on one site."""

    tenant_id: str
    article_id: str
    site: str


class Errand(Record):
    """A correction or withdrawal to be carried out."""

    page: PageRef
    correction_id: str
    kind: CorrectionKind
    keyword: str
    route: Route
    weight: float
    draft_id: str | None = None
    """The text the page is to carry; None for a withdrawal."""
    patience: timedelta


class GivenUp(Record):
    page: PageRef
    correction_id: str
    problem: str


class Writing(ABC):
    @activity.defn(name="writing.generate")
    @abstractmethod
    async def generate(self, step: Step) -> Draft | Held | Waiting: ...

    @activity.defn(name="writing.rewrite")
    @abstractmethod
    async def rewrite(self, step: Step) -> Draft | Held | Waiting: ...


class Illustrating(ABC):
    @activity.defn(name="illustrating.illustrate")
    @abstractmethod
    async def illustrate(self, step: Step) -> Picture | Held | Waiting: ...

    @activity.defn(name="illustrating.card")
    @abstractmethod
    async def card(self, step: Step) -> Picture:
        """The built-in title card; buys nothing."""


class Reviewing(ABC):
    @activity.defn(name="reviewing.judge")
    @abstractmethod
    async def judge(self, step: Step) -> Verdict: ...

    @activity.defn(name="reviewing.decide")
    @abstractmethod
    async def decide(self, note: DecisionNote) -> Decision:
        """Record a decision; the first one of a draft version counts and is returned."""


class Publishing(ABC):
    @activity.defn(name="publishing.publish")
    @abstractmethod
    async def publish(self, step: Step) -> Receipt | Held | Waiting:
        """Reserve, look up, send once. Never retried: what is unclear is left to `reconcile`."""

    @activity.defn(name="publishing.reconcile")
    @abstractmethod
    async def reconcile(self, step: Step) -> Receipt:
        """Find out what became of a send: adopted, provably absent (RESERVED again), unknown, or parked."""

    @activity.defn(name="publishing.inbox")
    @abstractmethod
    async def inbox(self, step: Step) -> Receipt:
        """Apply the callbacks that have arrived; past the deadline an unconfirmed post is UNKNOWN."""


class Inspecting(ABC):
    @activity.defn(name="inspecting.page")
    @abstractmethod
    async def page(self, query: PageQuery) -> Reading:
        """Fetch the page and its robots.txt, keep what was found, and tell IndexNow of the page."""


class Correcting(ABC):
    @activity.defn(name="correcting.next")
    @abstractmethod
    async def next(self, page: PageRef) -> Errand | None:
        """The oldest open correction of the page. Runs as a local activity, like `give_up`."""

    @activity.defn(name="correcting.carry_out")
    @abstractmethod
    async def carry_out(self, errand: Errand) -> Receipt:
        """Change the page or take it away, and end the correction. Idempotent, so it is tried again after any fault."""

    @activity.defn(name="correcting.give_up")
    @abstractmethod
    async def give_up(self, given_up: GivenUp) -> None: ...


class Monitoring(ABC):
    @activity.defn(name="monitoring.sample")
    @abstractmethod
    async def sample(self, step: SampleStep) -> Sampled | Held | Waiting: ...


class Bookkeeping(ABC):
    """Idempotent, short, calls no provider; all but `admit` and `change` run as local activities."""

    @activity.defn(name="bookkeeping.note")
    @abstractmethod
    async def note(self, note: Note) -> None: ...

    @activity.defn(name="bookkeeping.baseline_ready")
    @abstractmethod
    async def baseline_ready(self, campaign: CampaignRef) -> bool: ...

    @activity.defn(name="bookkeeping.measure")
    @abstractmethod
    async def measure(self, ending: Ending) -> Measurement: ...

    @activity.defn(name="bookkeeping.brief")
    @abstractmethod
    async def brief(self, campaign: CampaignRef) -> CampaignBrief: ...

    @activity.defn(name="bookkeeping.census")
    @abstractmethod
    async def census(self, campaign: CampaignRef) -> Census: ...

    @activity.defn(name="bookkeeping.questions")
    @abstractmethod
    async def questions(self, query: SampleQuery) -> SamplePage: ...

    @activity.defn(name="bookkeeping.admit")
    @abstractmethod
    async def admit(self, page: Page) -> Census:
        """Start the next articles in order of priority; those already started are left alone."""

    @activity.defn(name="bookkeeping.change")
    @abstractmethod
    async def change(self, change: CampaignChange) -> int:
        """The number of articles signalled. Heartbeats its cursor, so that a retry goes on where it stopped."""
