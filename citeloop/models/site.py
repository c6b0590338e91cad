"""A tenant's own site as the registry keeps it: the secret stays sealed until a worker needs it."""

from datetime import datetime
from enum import StrEnum

from pydantic import Field, JsonValue

from citeloop.models.channel import SiteKind, SiteSpec
from citeloop.models.record import Record

USER, SECRET = "user", "secret"
"""What a registered site's spec names as its variables: its environment is its own row and nothing else."""


class SiteState(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    """Nothing is sent to it; what is planned for it waits."""


class SiteEntry(Record):
    """What a person says of a site. Rates and durations are written as in channels.toml: "12/min", "30s"."""

    name: str
    kind: SiteKind
    base_url: str
    user: str = ""
    rate: str | None = None
    concurrency: int
    labels: tuple[str, ...] = ()
    """By which the tenant groups its sites."""
    settings: dict[str, JsonValue] = Field(default_factory=dict)
    """The rest of what channels.toml may say of a site of this kind."""


class SiteView(SiteEntry):
    """An entry as everyone of the tenant may see it: without its secret, which is never shown."""

    state: SiteState
    revision: int
    """+1 with every change."""
    created_at: datetime
    updated_at: datetime


class RegisteredSite(Record):
    """What a worker needs to reach the site."""

    tenant_id: str
    spec: SiteSpec
    user: str = Field(repr=False)
    sealed: bytes = Field(repr=False)
    state: SiteState
    revision: int
    updated_at: datetime
