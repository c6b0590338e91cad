"""What the HTTP API keeps for itself: keys, brands by handle, and which request a key stood for."""

from datetime import datetime

from sqlalchemy import ForeignKeyConstraint
from sqlmodel import Field, SQLModel

from citeloop.store.tables.columns import moment


class ApiKeyTable(SQLModel, table=True):
    """`hash` is the SHA-256 of the key in hex; `prefix` its first characters, to tell keys apart."""

    __tablename__ = "api_keys"

    tenant_id: str = Field(primary_key=True, foreign_key="tenants.id")
    id: str = Field(primary_key=True)
    name: str
    role: str
    prefix: str
    hash: str = Field(unique=True)
    created_at: datetime = moment()
    last_used_at: datetime | None = moment(nullable=True)
    revoked_at: datetime | None = moment(nullable=True)


class BrandHandleTable(SQLModel, table=True):
    """Which revision a brand's handle means now."""

    __tablename__ = "brand_handles"
    __table_args__ = (ForeignKeyConstraint(["tenant_id", "brand_id"], ["brands.tenant_id", "brands.id"]),)

    tenant_id: str = Field(primary_key=True, foreign_key="tenants.id")
    handle: str = Field(primary_key=True)
    brand_id: str
    updated_at: datetime = moment()


class IdempotencyKeyTable(SQLModel, table=True):
    __tablename__ = "idempotency_keys"

    tenant_id: str = Field(primary_key=True, foreign_key="tenants.id")
    key: str = Field(primary_key=True)
    fingerprint: str
    campaign_id: str | None = None
    article_id: str | None = None
    created_at: datetime = moment()
