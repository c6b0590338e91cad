"""Column kinds that SQLModel does not guess from the Python type."""

from typing import Any

from pydantic.fields import FieldInfo
from sqlalchemy import ARRAY, JSON, BigInteger, DateTime
from sqlmodel import Field


def moment(*, nullable: bool = False, primary_key: bool = False) -> Any:
    """A timestamptz; the database's clock fills it where the row does not."""
    field: FieldInfo = Field(
        default=None,
        sa_type=DateTime(timezone=True),
        nullable=nullable,
        primary_key=primary_key,
    )
    return field


def document(*, nullable: bool = False) -> Any:
    """JSON kept as it was written: a plan's digest depends on the order of its keys."""
    field: FieldInfo = Field(default=None, sa_type=JSON, nullable=nullable)
    return field


def count() -> Any:
    """A bigint that starts at 0."""
    field: FieldInfo = Field(default=0, sa_type=BigInteger, nullable=False)
    return field


def numbers() -> Any:
    """A list of bigints, empty at first."""
    field: FieldInfo = Field(default_factory=list, sa_type=ARRAY(BigInteger), nullable=False)
    return field
