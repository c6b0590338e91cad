"""What channels.toml says of a channel and of a site, after it was checked."""

from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from fractions import Fraction
from zoneinfo import ZoneInfo

from pydantic import Field, JsonValue

from citeloop.models.plan import CallPolicy, Stage
from citeloop.models.record import Record


class Role(StrEnum):
    WRITE = "write"
    ILLUSTRATE = "illustrate"
    ANSWER = "answer"


class Price(Record):
    """Money in micros: per million tokens (`input`, `cached`, `cache_write`, `output`), per search, per call.

    `call` is a picture or a flat fee per request. None for a cache price: the same as `input`.
    """

    input: int = 0
    output: int = 0
    call: int = 0
    currency: str = "CNY"
    cached: int | None = None
    cache_write: int | None = None
    search: int = 0


class Tariff(Record):
    """A price as a provider's page stated it, from a day on."""

    effective: date
    price: Price
    source: str


class Trial(StrEnum):
    """How far a provider's entry was tried."""

    REAL_SERVICE = "real service"
    DOCUMENTED_SHAPE = "documented shape"
    """Written from the provider's documentation or SDK, run against replies of that shape."""
    GUESS = "guess"


class DailyReset(Record):
    """When a provider's daily quota begins anew."""

    at: time = time(0, 0)
    zone: str = "UTC"
    """An IANA name, such as Asia/Shanghai."""

    def day(self, now: datetime) -> tuple[datetime, datetime]:
        """(the last reset, the next one), in UTC."""
        zone = ZoneInfo(self.zone)
        today = now.astimezone(zone).date()
        began = datetime.combine(today, self.at, zone)
        if began > now:
            began = datetime.combine(today - timedelta(days=1), self.at, zone)
        ends = datetime.combine(began.date() + timedelta(days=1), self.at, zone)
        return began.astimezone(UTC), ends.astimezone(UTC)


class ChannelSpec(Record):
    """One rate-limit domain: an account × limit group of one provider, and its one task queue."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,39}$")
    roles: frozenset[Role]
    dialect: str
    base_url: str
    model: str
    key_env: str | None = None
    """The environment variable that holds the key; the key itself never leaves the process."""
    key_place: str = ""
    """Where channels.toml names it: `channels.toml:12: channels.deepseek.key_env`."""
    rate: Fraction | None = None
    """Requests per second for the whole fleet; None is unlimited, 0 is paused."""
    burst: int = Field(default=1, ge=1)
    concurrency: int = Field(default=8, ge=1, le=1000)
    stream: bool = True
    extra: dict[str, JsonValue] = Field(default_factory=dict)
    """Provider-specific request fields, passed as they are."""
    price: Price | None = None
    """The operator's own price; None: the dated price file's (`tariffs`)."""
    tariffs: tuple[Tariff, ...] = ()
    provider: str = ""
    """Whose quirks apply; empty for a provider that is not in the table of providers."""
    tested_against: Trial = Trial.GUESS
    calls_per_dispatch: int = Field(default=1, ge=1, le=20)
    """Provider requests that one task usually makes (polls apart): what a rate limit must be divided by."""
    tokens_per_minute: int | None = Field(default=None, ge=1)
    calls_per_day: int | None = Field(default=None, ge=1)
    tokens_per_day: int | None = Field(default=None, ge=1)
    quota_resets: DailyReset = DailyReset()
    slow_factor: float = Field(default=3.0, gt=1)
    """A call that takes longer than this many times the channel's p95 is logged."""
    fallback: str | None = None
    """The channel that a plan appends after this one."""
    policy: CallPolicy = CallPolicy()
    stage_policies: dict[Stage, CallPolicy] = Field(default_factory=dict)

    @property
    def queue(self) -> str:
        return f"channel.{self.name}"

    @property
    def has_allowance(self) -> bool:
        """Whether tokens or a day's quota are to be taken before each call."""
        return any(one is not None for one in (self.tokens_per_minute, self.calls_per_day, self.tokens_per_day))

    def price_on(self, day: date) -> Price:
        """The operator's price, else the newest tariff in force on `day`; all zero where none is known."""
        if self.price is not None:
            return self.price
        in_force = [one for one in self.tariffs if one.effective <= day]
        return max(in_force, key=lambda one: one.effective).price if in_force else Price()

    def policy_for(self, stage: Stage) -> CallPolicy:
        return self.stage_policies.get(stage, self.policy)


class SiteKind(StrEnum):
    WORDPRESS = "wordpress"
    WEBHOOK = "webhook"
    FOLDER = "folder"
    """A folder or git checkout that Hugo, Jekyll or Astro builds."""
    GHOST = "ghost"
    HALO = "halo"
    WECHAT = "wechat"
    """Drafts of a WeChat Official Account."""


def publisher_queue(kind: SiteKind) -> str:
    """One queue a kind of site, for all sites of it; the tenant is its fairness key."""
    return f"publisher.{kind}"


class Generator(StrEnum):
    HUGO = "hugo"
    JEKYLL = "jekyll"
    ASTRO = "astro"


class SiteSpec(Record):
    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,39}$")
    kind: SiteKind
    base_url: str
    user_env: str | None = None
    secret_env: str | None = None
    """What it names: WordPress, the application password (`user_env`: the user). Webhook, the `whsec_…` secret.
    Ghost, the Admin API key `id:secret`. Halo, the token `pat_…`. WeChat, the AppSecret (`user_env`: the AppID)."""
    rate: Fraction | None = None
    concurrency: int = Field(default=4, ge=1)
    max_server_time: timedelta = timedelta(seconds=300)
    """How long after a lost reply the site may still be inserting; no second send before that."""
    callback_deadline: timedelta = timedelta(minutes=10)
    owned: bool = True
    """Whether the site is the brand's own: an answer that cites it cites the brand."""
    tags: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    """Given to every post. A kind of site that knows none refuses them."""
    author: str = ""
    indexnow_key: str = ""
    """Public by its nature: it stands at `/<key>.txt` of the site."""
    folder: str = ""
    """FOLDER only: the root of the generator's project."""
    generator: Generator | None = None
    section: str = "posts"
    """FOLDER only: the part of the site's addresses, and of its content, in which posts stand."""
    push: bool = False
    """FOLDER only: whether each commit is pushed to the branch's upstream."""
    policy: CallPolicy = CallPolicy(total=timedelta(minutes=2), max_faults=30, backoff_max=timedelta(minutes=5))
    """A site that is down is tried for some two hours, ever more rarely, before a person has to look."""

    @property
    def queue(self) -> str:
        return publisher_queue(self.kind)


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
