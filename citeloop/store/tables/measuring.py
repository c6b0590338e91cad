"""Manifests, their questions, and the answers; samples are partitioned by the month of their window."""

from datetime import datetime
from typing import Any

from sqlalchemy import ARRAY, ForeignKeyConstraint, Index, String
from sqlmodel import Field, SQLModel

from citeloop.store.tables.columns import document, moment


class ManifestTable(SQLModel, table=True):
    __tablename__ = "manifests"

    tenant_id: str = Field(primary_key=True, foreign_key="tenants.id")
    id: str = Field(primary_key=True)
    version: int
    brand: Any = document()
    rivals: Any = document()
    engines: list[str] = Field(sa_type=ARRAY(String))
    replicates: int
    matcher_version: str
    created_at: datetime = moment()


class PromptTable(SQLModel, table=True):
    __tablename__ = "prompts"
    __table_args__ = (
        ForeignKeyConstraint(["tenant_id", "manifest_id"], ["manifests.tenant_id", "manifests.id"]),
        Index("prompts_by_position", "tenant_id", "manifest_id", "position"),
        Index("prompts_by_keyword", "tenant_id", "manifest_id", "keyword"),
    )

    tenant_id: str = Field(primary_key=True)
    manifest_id: str = Field(primary_key=True)
    id: str = Field(primary_key=True)
    position: int
    text: str
    locale: str
    keyword: str | None = None
    branded: bool


class SampleTable(SQLModel, table=True):
    __tablename__ = "samples"
    __table_args__ = (
        Index("samples_of_prompt", "tenant_id", "manifest_id", "prompt_id"),
        Index("samples_of_article", "tenant_id", "article_id"),
        Index("samples_of_campaign", "tenant_id", "campaign_id"),
        {"postgresql_partition_by": "RANGE (window_start)"},
    )

    tenant_id: str = Field(primary_key=True, foreign_key="tenants.id")
    manifest_id: str = Field(primary_key=True)
    window_start: datetime = moment(primary_key=True)
    prompt_id: str = Field(primary_key=True)
    engine: str = Field(primary_key=True)
    surface: str = Field(primary_key=True)
    market: str = Field(primary_key=True)
    replicate: int = Field(primary_key=True)
    window: str
    campaign_id: str | None = None
    article_id: str | None = None
    keyword: str | None = None
    branded: bool
    status: str
    reading: Any = document()
    answer: Any = document(nullable=True)
    asked_at: datetime = moment()
