"""What a channel used lately: calls by stretches, tokens by the minute, calls and tokens by the quota's day."""

from datetime import datetime

from sqlalchemy import BigInteger, Identity, Index
from sqlmodel import Field, SQLModel

from citeloop.store.tables.columns import count, moment


class ChannelStretchTable(SQLModel, table=True):
    """Calls that ended within ten seconds from `began_at`; swept after a quarter of an hour."""

    __tablename__ = "channel_stretches"

    name: str = Field(primary_key=True, foreign_key="channels.name", ondelete="CASCADE")
    began_at: datetime = moment(primary_key=True)
    calls: int = count()


class ChannelTakingTable(SQLModel, table=True):
    """Tokens taken of a minute's allowance: estimated before the call, settled after it."""

    __tablename__ = "channel_takings"
    __table_args__ = (Index("takings_by_time", "name", "at"),)

    name: str = Field(primary_key=True, foreign_key="channels.name", ondelete="CASCADE")
    id: int = Field(primary_key=True, sa_type=BigInteger, sa_column_args=[Identity(always=True)])
    at: datetime = moment()
    tokens: int = count()


class ChannelDayTable(SQLModel, table=True):
    """What was taken since the quota's last reset, at `since`."""

    __tablename__ = "channel_days"

    name: str = Field(primary_key=True, foreign_key="channels.name", ondelete="CASCADE")
    since: datetime = moment()
    calls: int = count()
    tokens: int = count()
