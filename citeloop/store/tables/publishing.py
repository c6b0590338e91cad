"""One row per article and site, the inbox of what the sites said about it, and its corrections."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKeyConstraint, Index, UniqueConstraint, text
from sqlmodel import Field, SQLModel

from citeloop.store.tables.columns import document, moment


class PublicationTable(SQLModel, table=True):
    __tablename__ = "publications"
    __table_args__ = (
        ForeignKeyConstraint(["tenant_id", "article_id"], ["articles.tenant_id", "articles.id"]),
        UniqueConstraint("tenant_id", "article_id", "site"),
        Index("publications_newest", "tenant_id", "created_at", "id"),
    )

    tenant_id: str = Field(primary_key=True)
    id: str = Field(primary_key=True)
    article_id: str
    site: str
    kind: str
    state: str
    marker: str
    digest: str
    token: str = Field(unique=True)
    """Stands in the callback URL; nobody can guess it."""
    remote_id: str = ""
    url: str = ""
    reason: str = ""
    look_ups: int = 0
    sent_at: datetime | None = moment(nullable=True)
    deadline: datetime | None = moment(nullable=True)
    created_at: datetime = moment()
    updated_at: datetime = moment()
    slug: str = ""
    """The one it was first sent with: a corrected title moves no page."""
    reading: Any = document(nullable=True)
    """What the page check found, as a Reading."""


class CallbackTable(SQLModel, table=True):
    __tablename__ = "callbacks"
    __table_args__ = (
        ForeignKeyConstraint(["tenant_id", "publication_id"], ["publications.tenant_id", "publications.id"]),
    )

    tenant_id: str = Field(primary_key=True)
    publication_id: str = Field(primary_key=True)
    event_id: str = Field(primary_key=True)
    type: str
    remote_id: str
    url: str
    received_at: datetime = moment()
    delivered_at: datetime | None = moment(nullable=True)


class CorrectionTable(SQLModel, table=True):
    """A correction or withdrawal that was asked for, and what came of it."""

    __tablename__ = "corrections"
    __table_args__ = (
        ForeignKeyConstraint(["tenant_id", "publication_id"], ["publications.tenant_id", "publications.id"]),
        Index("corrections_of_article", "tenant_id", "article_id", "asked_at"),
        Index("corrections_open", "asked_at", postgresql_where=text("ended_at IS NULL")),
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenants.id")
    id: str = Field(primary_key=True)
    publication_id: str
    article_id: str
    site: str
    kind: str
    draft_id: str | None = None
    draft_digest: str = ""
    by: str
    reason: str = ""
    state: str = "asked"
    problem: str = ""
    asked_at: datetime = moment()
    ended_at: datetime | None = moment(nullable=True)
