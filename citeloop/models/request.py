"""What a caller asks for, before it becomes plans."""

from datetime import UTC, datetime, timedelta
from typing import Self

from pydantic import AwareDatetime, Field, field_validator, model_validator

from citeloop.models.plan import Kind, Method, MonitorPolicy, ReviewPolicy, Stage
from citeloop.models.record import Record

_LAST_YEAR = 2099


class KeywordLine(Record):
    keyword: str = Field(min_length=1, max_length=200)
    locale: str = Field(default="en", min_length=1, max_length=35)
    kind: Kind = Kind.ARTICLE
    priority: int = Field(default=3, ge=1, le=5)

    @field_validator("keyword")
    @classmethod
    def _not_blank(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("is empty: write the words people ask the engines")
        return value.strip()


class CampaignRequest(Record):
    """A campaign as submitted. Empty channel lists mean: every channel of that role in channels.toml."""

    name: str = Field(min_length=1, max_length=100)
    keywords: tuple[KeywordLine, ...] = Field(min_length=1, max_length=20_000)
    stages: tuple[Stage, ...] = tuple(Stage)
    writers: tuple[str, ...] = ()
    illustrators: tuple[str, ...] = ()
    """Empty and no image channel known: the built-in title card."""
    engines: tuple[str, ...] = ()
    sites: tuple[str, ...] = ()
    methods: tuple[Method, ...] = tuple(Method)
    review: ReviewPolicy = ReviewPolicy()
    monitor: MonitorPolicy = MonitorPolicy()
    window: int = Field(default=100, ge=1, le=2000)
    """How many articles may be in production at once."""
    publish_at: AwareDatetime | None = None
    """Nothing is published before this; what is past is no wait."""
    publish_every: timedelta | None = Field(default=None, gt=timedelta(0), le=timedelta(days=365))
    """The n-th article (from 0) is published at `publish_at` + n times this."""

    @model_validator(mode="after")
    def _every_from_when(self) -> Self:
        if self.publish_every is not None and self.publish_at is None:
            raise ValueError("publish_every without publish_at: say from when")
        try:
            last = self.publishes(len(self.keywords))
        except OverflowError:
            last = datetime.max.replace(tzinfo=UTC)
        if last is not None and last.year > _LAST_YEAR:
            raise ValueError(f"publishes after the year {_LAST_YEAR}: choose an earlier publish_at or publish_every")
        return self

    def publishes(self, place: int) -> datetime | None:
        """When the article at `place` of the keywords may be published; None: as soon as it is approved."""
        if self.publish_at is None or self.publish_every is None:
            return self.publish_at
        return self.publish_at + place * self.publish_every
