"""What channels.toml says of a channel and of a site, after it was checked."""

from datetime import timedelta
from enum import StrEnum
from fractions import Fraction

from pydantic import Field, JsonValue

from citeloop.models.plan import CallPolicy, Stage
from citeloop.models.record import Record


class Role(StrEnum):
    WRITE = "write"
    ILLUSTRATE = "illustrate"
    ANSWER = "answer"


class Price(Record):
    """Money per million tokens (`input`, `output`) or per picture or search (`call`), in micros."""

    input: int = 0
    output: int = 0
    call: int = 0
    currency: str = "CNY"


class ChannelSpec(Record):
    """One rate-limit domain: an account × limit group of one provider, and its one task queue."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,39}$")
    roles: frozenset[Role]
    dialect: str
    base_url: str
    model: str
    key_env: str | None = None
    """The environment variable that holds the key; the key itself never leaves the process."""
    rate: Fraction | None = None
    """Requests per second for the whole fleet; None is unlimited, 0 is paused."""
    burst: int = Field(default=1, ge=1)
    concurrency: int = Field(default=8, ge=1, le=1000)
    stream: bool = True
    extra: dict[str, JsonValue] = Field(default_factory=dict)
    """Provider-specific request fields, passed as they are."""
    price: Price = Price()
    policy: CallPolicy = CallPolicy()
    stage_policies: dict[Stage, CallPolicy] = Field(default_factory=dict)

    @property
    def queue(self) -> str:
        return f"channel.{self.name}"

    def policy_for(self, stage: Stage) -> CallPolicy:
        return self.stage_policies.get(stage, self.policy)


class SiteKind(StrEnum):
    WORDPRESS = "wordpress"
    WEBHOOK = "webhook"


class SiteSpec(Record):
    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,39}$")
    kind: SiteKind
    base_url: str
    user_env: str | None = None
    secret_env: str | None = None
    """WordPress: the application password. Webhook: the `whsec_…` signing secret."""
    rate: Fraction | None = None
    concurrency: int = Field(default=4, ge=1)
    max_server_time: timedelta = timedelta(seconds=300)
    """How long after a lost reply the site may still be inserting; no second send before that."""
    callback_deadline: timedelta = timedelta(minutes=10)
    owned: bool = True
    """Whether the site is the brand's own: an answer that cites it cites the brand."""
    policy: CallPolicy = CallPolicy(total=timedelta(minutes=2))

    @property
    def queue(self) -> str:
        return f"publisher.{self.kind}"


class Catalog(Record):
    """All channels and sites this installation knows."""

    channels: tuple[ChannelSpec, ...] = ()
    sites: tuple[SiteSpec, ...] = ()
    allow_private_addresses: bool = False
    """Whether user-given URLs may reach loopback and private networks; for one-machine set-ups."""

    def channel(self, name: str) -> ChannelSpec | None:
        return next((c for c in self.channels if c.name == name), None)

    def site(self, name: str) -> SiteSpec | None:
        return next((s for s in self.sites if s.name == name), None)

    def with_role(self, role: Role) -> tuple[ChannelSpec, ...]:
        return tuple(c for c in self.channels if role in c.roles)
