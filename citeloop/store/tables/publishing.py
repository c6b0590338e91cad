"""One row per article and site, and the inbox of what the sites said about it."""

from datetime import datetime

from sqlalchemy import ForeignKeyConstraint, Index, UniqueConstraint
from sqlmodel import Field, SQLModel

from citeloop.store.tables.columns import moment


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
