"""Channels of a test's own, and a second process's pool."""

from fractions import Fraction
from typing import Any

from citeloop.models import ids
from citeloop.models.channel import Catalog, ChannelSpec, Role
from citeloop.store.database import Database
from citeloop.store.repositories import channels
from citeloop.store.repositories.channels import ChannelRow


def spec(name: str, rate: Fraction | None, **fields: Any) -> ChannelSpec:
    return ChannelSpec(
        name=name,
        roles=frozenset({Role.WRITE}),
        dialect="openai_chat",
        base_url="http://127.0.0.1",
        model="m",
        rate=rate,
        **fields,
    )


def name() -> str:
    return f"c{ids.new_id().lower()}"


async def known(database: Database, rate: Fraction | None, **fields: Any) -> str:
    """The name of a channel that channels.toml has just told the store of."""
    made = name()
    async with database.operator() as op:
        await channels.sync(op, Catalog(channels=(spec(made, rate, **fields),)))
    return made


async def row(database: Database, channel: str) -> ChannelRow:
    async with database.operator() as op:
        return next(each for each in await channels.rows(op) if each.name == channel)
