"""Tenants' own sites, their labels, and the visits that are being paid to every site."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Column, ForeignKeyConstraint, Index, String
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlmodel import Field, SQLModel

from citeloop.store.tables.columns import count, moment


class RegisteredSiteTable(SQLModel, table=True):
    """`sealed` is the secret under CITELOOP_SECRET_KEY; `settings` is what channels.toml would say besides."""

    __tablename__ = "registered_sites"
    __table_args__ = (Index("registered_sites_kind", "tenant_id", "kind", "name"),)

    tenant_id: str = Field(primary_key=True, foreign_key="tenants.id")
    name: str = Field(primary_key=True)
    kind: str
    base_url: str
    username: str = ""
    sealed: bytes
    sealed_print: str
    rate: str | None = None
    concurrency: int
    labels: list[str] = Field(sa_column=Column(ARRAY(String), nullable=False))
    settings: dict[str, Any] = Field(sa_column=Column(JSON, nullable=False))
    state: str = "active"
    revision: int = 1
    created_at: datetime = moment()
    updated_at: datetime = moment()


class SiteLabelTable(SQLModel, table=True):
    __tablename__ = "site_labels"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "name"], ["registered_sites.tenant_id", "registered_sites.name"], ondelete="CASCADE"
        ),
        Index("site_labels_name", "tenant_id", "name"),
    )

    tenant_id: str = Field(primary_key=True)
    label: str = Field(primary_key=True)
    name: str = Field(primary_key=True)


class SiteLaneTable(SQLModel, table=True):
    """An operator's site has the tenant ''. Times are microseconds since 1970."""

    __tablename__ = "site_lanes"

    tenant_id: str = Field(primary_key=True)
    site: str = Field(primary_key=True)
    leases: dict[str, Any] = Field(sa_column=Column(JSONB, nullable=False))
    next_us: int = count()
    queue_us: int = count()
    held_us: int = count()
    taken_us: int = count()
