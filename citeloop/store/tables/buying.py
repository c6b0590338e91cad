"""What was paid for, what failed, and the fleet-wide channels and sites."""

from datetime import date, datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import ARRAY, BigInteger, Identity, Index, Numeric, String
from sqlmodel import Field, SQLModel

from citeloop.store.tables.columns import count, document, moment


class PurchaseTable(SQLModel, table=True):
    __tablename__ = "purchases"
    __table_args__ = (Index("purchases_of_article", "tenant_id", "article_id"),)

    tenant_id: str = Field(primary_key=True, foreign_key="tenants.id")
    id: str = Field(primary_key=True)
    channel: str
    stage: str
    article_id: str | None = None
    model: str
    request_id: str
    reply: Any = document()
    cost_micros: int = count()
    cost_currency: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    searches: int = 0
    created_at: datetime = moment()


class UsageTable(SQLModel, table=True):
    __tablename__ = "usage_daily"

    tenant_id: str = Field(primary_key=True, foreign_key="tenants.id")
    day: date = Field(primary_key=True)
    channel: str = Field(primary_key=True)
    currency: str = Field(primary_key=True)
    calls: int = count()
    cost_micros: int = count()
    input_tokens: int = count()
    output_tokens: int = count()
    cached_tokens: int = count()
    searches: int = count()


class FaultTable(SQLModel, table=True):
    __tablename__ = "faults"

    tenant_id: str = Field(primary_key=True, foreign_key="tenants.id")
    purchase_id: str = Field(primary_key=True)
    seq: int = Field(primary_key=True, sa_type=BigInteger, sa_column_args=[Identity(always=True)])
    article_id: str | None = None
    channel: str
    fault: str
    message: str
    counts: bool
    at: datetime = moment()


class ChannelTable(SQLModel, table=True):
    """`rate`, `operator_rate` and `adaptive_rate` are exact fractions per second, as `3/2`; NULL is none set.

    interval_us: microseconds between two slots, rounded up in the ninth decimal; NULL: unlimited or stopped.
    next_us: when the next slot is due, in microseconds since 1970.
    pause_cause: `operator`, `exhausted` or `unauthorized`; empty while it is not paused.
    quota_cause: `exhausted` where the provider said so; empty where our own ledger did.
    breaker_until: NULL is closed, ahead is open, past is half-open: one probe may call, until `probe_until`.
    """

    __tablename__ = "channels"

    name: str = Field(primary_key=True)
    roles: list[str] = Field(sa_type=ARRAY(String))
    queue: str
    rate: str | None = None
    operator_rate: str | None = None
    interval_us: Decimal | None = Field(default=None, sa_type=Numeric(40, 9))
    stopped: bool = False
    burst: int
    concurrency: int
    next_us: Decimal = Field(default=0, sa_type=Numeric(40, 9))
    paused: bool = False
    pause_reason: str = ""
    hold_until: datetime | None = moment(nullable=True)
    hold_reason: str = ""
    vanished: bool = False
    calls_per_dispatch: int = 1
    operator_concurrency: int | None = None
    pause_cause: str = ""
    adaptive_rate: str | None = None
    adapted_at: datetime | None = moment(nullable=True)
    limited_at: datetime | None = moment(nullable=True)
    limited_streak: int = 0
    breaker_until: datetime | None = moment(nullable=True)
    breaker_level: int = 0
    breaker_reason: str = ""
    probe_until: datetime | None = moment(nullable=True)
    quota_until: datetime | None = moment(nullable=True)
    quota_reason: str = ""
    quota_cause: str = ""
    tokens_per_minute: int | None = Field(default=None, sa_type=BigInteger)
    calls_per_day: int | None = Field(default=None, sa_type=BigInteger)
    tokens_per_day: int | None = Field(default=None, sa_type=BigInteger)


class ChannelCountTable(SQLModel, table=True):
    """Beside the channel's row, so that counting never waits for pacing."""

    __tablename__ = "channel_counts"

    name: str = Field(primary_key=True, foreign_key="channels.name")
    calls: int = count()
    limited: int = count()
    faults: int = count()
    last_call_at: datetime | None = moment(nullable=True)
    strikes: int = 0
    """Faults in a row, by which the breaker opens."""
    struck_at: datetime | None = moment(nullable=True)


class SiteTable(SQLModel, table=True):
    __tablename__ = "sites"

    name: str = Field(primary_key=True)
    kind: str
    queue: str
    base_url: str
    rate: str | None = None
    concurrency: int
    vanished: bool = False
