"""The plan: everything an article's life depends on, frozen when it is submitted."""

import hashlib
import re
from datetime import timedelta
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from typing import Annotated

from pydantic import AwareDatetime, Field

from citeloop.models.record import Record


class Stage(StrEnum):
    GENERATE = "generate"
    REWRITE = "rewrite"
    ILLUSTRATE = "illustrate"
    REVIEW = "review"
    PUBLISH = "publish"
    MONITOR = "monitor"


class Kind(StrEnum):
    ARTICLE = "article"
    FAQ = "faq"
    PRODUCT_PAGE = "product_page"
    CASE_STUDY = "case_study"
    SUMMARY = "summary"


class State(StrEnum):
    """Where an article stands."""

    SUBMITTED = "submitted"
    RUNNING = "running"
    PAUSED = "paused"
    REVIEW = "review"
    SCHEDULED = "scheduled"
    """Approved, and waiting for the time at which the plan publishes it."""
    PARKED = "parked"
    PUBLISHED = "published"
    MEASURED = "measured"
    DONE = "done"
    """The plan ends before monitoring, and all of it is done."""
    REJECTED = "rejected"
    CANCELLED = "cancelled"
    FAILED = "failed"

    @property
    def ended(self) -> bool:
        return self in {State.MEASURED, State.DONE, State.REJECTED, State.CANCELLED, State.FAILED}


class Method(StrEnum):
    """Rewriting methods of the GEO paper (KDD 2024, arXiv 2311.09735) that the writer may use."""

    CITE_SOURCES = "cite_sources"
    QUOTATIONS = "quotations"
    STATISTICS = "statistics"
    QUESTION_HEADINGS = "question_headings"
    FLUENCY = "fluency"


class CallPolicy(Record):
    """How patient one stage is with one channel. `total` is Temporal's start-to-close."""

    connect: timedelta = timedelta(seconds=5)
    first_byte: timedelta = timedelta(seconds=60)
    between_chunks: timedelta = timedelta(seconds=30)
    total: timedelta = timedelta(minutes=5)
    heartbeat: timedelta = timedelta(seconds=10)
    max_faults: int = Field(default=4, ge=1)
    """Ordinary faults until the next channel takes over; waiting for a limit is none."""
    backoff: timedelta = timedelta(seconds=1)
    backoff_max: timedelta = timedelta(seconds=30)


class Route(Record):
    """One way to do a stage: a channel or a site, its task queue, and how patient to be with it."""

    name: str
    queue: str
    policy: CallPolicy = CallPolicy()


class ReviewMode(StrEnum):
    AUTO = "auto"
    HUMAN = "human"
    HUMAN_WHEN_FLAGGED = "human_when_flagged"


class ReviewPolicy(Record):
    mode: ReviewMode = ReviewMode.HUMAN_WHEN_FLAGGED
    escalate_after: timedelta = Field(default=timedelta(hours=24), ge=timedelta(0), le=timedelta(days=3650))
    deadline: timedelta = Field(default=timedelta(hours=72), ge=timedelta(0), le=timedelta(days=3650))
    max_rounds: int = Field(default=3, ge=0, le=100)
    """How often a draft may be sent back before the article is parked."""


class MonitorPolicy(Record):
    offsets: tuple[Annotated[int, Field(ge=0, le=3650)], ...] = Field(default=(1, 3, 7, 14, 28), max_length=100)
    """Days after publishing at which the engines are asked again."""
    day: timedelta = Field(default=timedelta(hours=24), gt=timedelta(0), le=timedelta(days=31))
    replicates: int = Field(default=1, ge=1, le=100)
    skip_unreadable: bool = False
    """Whether a page that engines cannot read is not asked about at all; else it is asked about and reported."""


class Plan(Record):
    tenant_id: str
    article_id: str
    campaign_id: str | None
    brand_id: str
    manifest_id: str
    keyword: str = Field(min_length=1)
    locale: str
    kind: Kind = Kind.ARTICLE
    stages: tuple[Stage, ...] = tuple(Stage)
    routes: dict[Stage, tuple[Route, ...]]
    """Per stage in order of preference; for PUBLISH and MONITOR every route is used."""
    methods: tuple[Method, ...] = tuple(Method)
    review: ReviewPolicy = ReviewPolicy()
    monitor: MonitorPolicy = MonitorPolicy()
    priority: int = Field(default=3, ge=1, le=5)
    """The tenant's own order among its articles, 1 first. It never competes with other tenants."""
    weight: float = Field(default=1.0, gt=0, le=1000)
    """The tenant's share of every queue."""
    park_for: timedelta = timedelta(days=7)
    publish_at: AwareDatetime | None = None
    """Not before this; what is past is no wait."""

    def route(self, stage: Stage, name: str) -> Route:
        for route in self.routes.get(stage, ()):
            if route.name == name:
                return route
        raise KeyError(f"plan of article {self.article_id} has no route {name!r} for {stage}")

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:16]


_COUNT = re.compile(r"-?[0-9]{1,12}(?:\.[0-9]{0,12})?")
_SLOWEST = Fraction(1, 10 * 86400)


def per_second(rate: str) -> Fraction:
    """`"2/s"`, `"12/min"`, `"500/h"` or `"0"` as an exact number per second. ValueError otherwise."""
    units = {"s": 1, "min": 60, "h": 3600, "day": 86400}
    count, _, unit = rate.strip().partition("/")
    per = units.get(unit.strip() or "s")
    # An exponent would be worked out in full: 1e999999999 takes minutes and all memory.
    if per is None or not _COUNT.fullmatch(count.strip()):
        raise ValueError(f"{rate[:40]!r} is no rate: write a number per s, min, h or day, such as 2/s")
    value = Fraction(count.strip()) / per
    if value < 0:
        raise ValueError(f"{rate!r} is below zero: 0 pauses a channel")
    if 0 < value < _SLOWEST:
        raise ValueError(f"{rate!r} is less than one in ten days: 0 pauses a channel")
    return value
