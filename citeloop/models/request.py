"""What a caller asks for, before it becomes plans."""

from pydantic import Field, field_validator

from citeloop.models.plan import Kind, Method, MonitorPolicy, ReviewPolicy, Stage
from citeloop.models.record import Record


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
