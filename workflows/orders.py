"""What workflows are started with, and what signals carry. Plain JSON, so that the Temporal UI can send it too."""

from pydantic import AwareDatetime

from citeloop.models.plan import Plan
from citeloop.models.record import Record
from citeloop.models.work import Progress
from workflows.stages import PageRef


class ArticleOrder(Record):
    """A plan, and how far an earlier run of the same article has come with it."""

    plan: Plan
    progress: Progress | None = None
    paused: bool = False


class CampaignOrder(Record):
    """Which campaign, and how far an earlier run has come with it."""

    tenant_id: str
    campaign_id: str
    window: int = 100
    asked: int = 0
    """Baseline prompts that are done."""
    baseline: bool = False
    paused: bool = False
    cancelled: bool = False
    began_at: AwareDatetime | None = None
    produced_at: AwareDatetime | None = None
    measured: int = 0


class CorrectionOrder(Record):
    """Whose page: what is to be done to it stands in the store."""

    page: PageRef


class Word(Record):
    """The argument of every signal; all of it is optional, so that `{}` from the Temporal UI will do."""

    by: str = "temporal"
    reason: str = ""
    notes: str = ""
    draft_digest: str = ""
    """The text the person saw; empty means the one that waits for review now."""


NOTHING = Word()
CAMPAIGN = "campaign"
"""By whom a word is that was said to a whole campaign."""


class Rank(Record):
    priority: int
    by: str = "temporal"
