"""Tenants, and what is made for them: brands, campaigns, articles and what the stages leave behind."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ForeignKeyConstraint, Identity, Index, text
from sqlmodel import Field, SQLModel

from citeloop.store.tables.columns import count, document, moment, numbers


def _of_article() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(["tenant_id", "article_id"], ["articles.tenant_id", "articles.id"])


class TenantTable(SQLModel, table=True):
    __tablename__ = "tenants"

    id: str = Field(primary_key=True)
    name: str = Field(unique=True)
    weight: float
    hold: str | None = None
    created_at: datetime = moment()


class BrandTable(SQLModel, table=True):
    __tablename__ = "brands"

    tenant_id: str = Field(primary_key=True, foreign_key="tenants.id")
    id: str = Field(primary_key=True)
    name: str
    content: Any = document()
    created_at: datetime = moment()


class CampaignTable(SQLModel, table=True):
    __tablename__ = "campaigns"
    __table_args__ = (
        ForeignKeyConstraint(["tenant_id", "brand_id"], ["brands.tenant_id", "brands.id"]),
        ForeignKeyConstraint(["tenant_id", "manifest_id"], ["manifests.tenant_id", "manifests.id"]),
        Index("campaigns_newest", "tenant_id", "created_at", "id"),
        Index("campaigns_to_start", "created_at", postgresql_where=text("state = 'submitted'")),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenants.id")
    id: str = Field(primary_key=True)
    name: str
    brand_id: str
    manifest_id: str
    request: Any = document()
    fingerprint: str
    state: str
    hold: str | None = None
    baseline_at: datetime | None = moment(nullable=True)
    created_at: datetime = moment()
    updated_at: datetime = moment()


class CampaignWindowTable(SQLModel, table=True):
    __tablename__ = "campaign_windows"
    __table_args__ = (ForeignKeyConstraint(["tenant_id", "campaign_id"], ["campaigns.tenant_id", "campaigns.id"]),)

    tenant_id: str = Field(primary_key=True)
    campaign_id: str = Field(primary_key=True)
    window: str = Field(primary_key=True)
    closed_at: datetime = moment()


class ArticleTable(SQLModel, table=True):
    __tablename__ = "articles"
    __table_args__ = (
        ForeignKeyConstraint(["tenant_id", "campaign_id"], ["campaigns.tenant_id", "campaigns.id"]),
        ForeignKeyConstraint(["tenant_id", "brand_id"], ["brands.tenant_id", "brands.id"]),
        Index("articles_of_campaign", "tenant_id", "campaign_id", "position", "id"),
        Index("articles_by_state", "tenant_id", "campaign_id", "state"),
        Index("articles_newest", "tenant_id", "submitted_at", "id"),
        Index("articles_by_keyword", "tenant_id", "keyword"),
        Index(
            "articles_open",
            "tenant_id",
            "campaign_id",
            "id",
            postgresql_where=text("started_at IS NOT NULL AND ended_at IS NULL"),
        ),
        Index(
            "articles_to_admit",
            "tenant_id",
            "campaign_id",
            "priority",
            "position",
            postgresql_where=text("started_at IS NULL AND ended_at IS NULL"),
        ),
        Index(
            "articles_to_sweep",
            "submitted_at",
            postgresql_where=text("campaign_id IS NULL AND started_at IS NULL AND ended_at IS NULL"),
        ),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenants.id")
    id: str = Field(primary_key=True)
    campaign_id: str | None = None
    brand_id: str
    manifest_id: str
    keyword: str
    locale: str
    kind: str
    priority: int
    position: int
    plan: Any = document()
    state: str
    stage: str
    round: int = 0
    channel: str = ""
    writer: str = ""
    """The channel that wrote the latest draft."""
    reason: str = ""
    hold: str | None = None
    attempts: int = 0
    faults: int = 0
    cost_micros: int = count()
    cost_currency: str = "CNY"
    measurement: Any = document(nullable=True)
    progress: Any = document(nullable=True)
    run_id: str | None = None
    submitted_at: datetime = moment()
    started_at: datetime | None = moment(nullable=True)
    updated_at: datetime = moment()
    ended_at: datetime | None = moment(nullable=True)
    done: Any = document(nullable=True)
    """Stages that are over; newer than `progress`, which only the workflow's notes write."""


class EventTable(SQLModel, table=True):
    """What happened to an article; the application may add rows and never change one."""

    __tablename__ = "article_events"
    __table_args__ = (_of_article(), Index("events_written", "tenant_id", "written_in"))

    tenant_id: str = Field(primary_key=True)
    article_id: str = Field(primary_key=True)
    seq: int = Field(primary_key=True, sa_type=BigInteger, sa_column_args=[Identity(always=True)])
    at: datetime = moment()
    kind: str
    stage: str
    state: str
    detail: str
    written_in: int = Field(sa_type=BigInteger)
    """The transaction that wrote it: the order in which events become visible."""


class DraftTable(SQLModel, table=True):
    __tablename__ = "drafts"
    __table_args__ = (
        _of_article(),
        Index("drafts_of_article", "tenant_id", "article_id", "created_at"),
        Index(
            "rewrites_newest",
            "tenant_id",
            "neighbourhood",
            "created_at",
            postgresql_where=text("stage = 'rewrite'"),
        ),
    )

    tenant_id: str = Field(primary_key=True)
    id: str = Field(primary_key=True)
    article_id: str
    digest: str
    stage: str
    round: int
    channel: str
    title: str
    chars: int
    body: str
    sketch: list[int] = numbers()
    created_at: datetime = moment()
    neighbourhood: str = ""
    """`campaign/brand revision`, by a trigger: whose rewrites are compared. Empty where it is no rewrite."""


class PictureTable(SQLModel, table=True):
    __tablename__ = "pictures"
    __table_args__ = (_of_article(), Index("pictures_by_digest", "tenant_id", "digest"))

    tenant_id: str = Field(primary_key=True)
    article_id: str = Field(primary_key=True)
    digest: str = Field(primary_key=True)
    data: bytes
    media_type: str
    width: int
    height: int
    alt: str
    credit: str
    source: str
    created_at: datetime = moment()


class VerdictTable(SQLModel, table=True):
    __tablename__ = "verdicts"
    __table_args__ = (_of_article(),)

    tenant_id: str = Field(primary_key=True)
    draft_id: str = Field(primary_key=True)
    article_id: str
    draft_digest: str
    outcome: str
    flags: Any = document()
    created_at: datetime = moment()


class DecisionTable(SQLModel, table=True):
    __tablename__ = "decisions"
    __table_args__ = (_of_article(),)

    tenant_id: str = Field(primary_key=True)
    article_id: str = Field(primary_key=True)
    draft_id: str = Field(primary_key=True)
    draft_digest: str
    action: str
    by: str
    notes: str
    decided_at: datetime = moment()
