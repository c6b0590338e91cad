"""What can be done to a channel, for the whole fleet: pause, resume, another limit."""

from collections.abc import Awaitable, Callable
from fractions import Fraction

from citeloop.models.plan import per_second
from citeloop.store.database import Database, OperatorScope
from citeloop.store.repositories import channels
from citeloop.store.repositories.channels import ChannelRow
from starter.errors import CommandError, Missing

_MAX_RATE = 100_000


class ChannelCommands:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def pause(self, name: str, reason: str) -> ChannelRow:
        """All its calls stop; its work waits. Missing when there is no such channel."""
        return await self._change(name, lambda operator: channels.pause(operator, name, reason))

    async def resume(self, name: str) -> ChannelRow:
        return await self._change(name, lambda operator: channels.resume(operator, name))

    async def set_rate(self, name: str, rate: str | None) -> ChannelRow:
        """Such as `3/s` or `12/min`; None goes back to channels.toml. CommandError when it is no rate."""
        wanted = _rate(rate) if rate is not None else None
        return await self._change(name, lambda operator: channels.set_rate(operator, name, wanted))

    async def _change(self, name: str, change: Callable[[OperatorScope], Awaitable[None]]) -> ChannelRow:
        async with self._database.operator() as operator:
            if all(row.name != name for row in await channels.rows(operator)):
                raise Missing(f"{name!r} is no channel", "channel", "GET /v1/channels lists them")
            await change(operator)
            return next(row for row in await channels.rows(operator) if row.name == name)


def _rate(written: str) -> Fraction:
    try:
        wanted = per_second(written)
    except ValueError as error:
        raise CommandError(str(error), "rate", "such as 3/s, 12/min or 0") from None
    if wanted > _MAX_RATE or wanted.denominator > 10**9:
        raise CommandError(f"{written!r} is out of range", "rate", f"at most {_MAX_RATE}/s")
    return wanted
