"""What can be done to a channel, for the whole fleet: pause, resume, other limits."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from fractions import Fraction

from citeloop.models.plan import per_second
from citeloop.store.database import Database, OperatorScope
from citeloop.store.repositories import channels
from citeloop.store.repositories.channels import ChannelRow
from starter.errors import CommandError, Missing

FILE = "file"
"""Where a limit is asked for: back to that of channels.toml."""

_MAX_RATE = 100_000
_MAX_SLOTS = 1000


@dataclass(frozen=True)
class ChannelChange:
    """A limit that a person sets, checked before anything is written."""

    write: Callable[[OperatorScope, str], Awaitable[None]]
    said: str

    @classmethod
    def rate(cls, written: str | None) -> "ChannelChange":
        """Such as `3/s` or `12/min`; None and `file` go back to channels.toml. CommandError when it is no rate."""
        wanted = None if written in {None, FILE} else _rate(str(written))
        said = "rate of channels.toml" if wanted is None else f"rate {written}"
        return cls(lambda operator, name: channels.set_rate(operator, name, wanted), said)

    @classmethod
    def concurrency(cls, written: str | int | None) -> "ChannelChange":
        """Calls at once of each worker. CommandError when it is no whole number from 1 to 1000."""
        wanted = None if written in {None, FILE} else _slots(str(written))
        said = "concurrency of channels.toml" if wanted is None else f"{wanted} at once per worker"
        return cls(lambda operator, name: channels.set_concurrency(operator, name, wanted), said)


class ChannelCommands:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def pause(self, name: str, reason: str) -> ChannelRow:
        """All its calls stop; its work waits. Missing when there is no such channel."""
        return await self._change(name, lambda operator: channels.pause(operator, name, reason))

    async def resume(self, name: str) -> ChannelRow:
        """Its breaker is closed too."""
        return await self._change(name, lambda operator: channels.resume(operator, name))

    async def set_rate(self, name: str, rate: str | None) -> ChannelRow:
        """Such as `3/s` or `12/min`; None goes back to channels.toml. CommandError when it is no rate."""
        wanted = ChannelChange.rate(rate)
        return await self._change(name, lambda operator: wanted.write(operator, name))

    async def set_concurrency(self, name: str, slots: int | None) -> ChannelRow:
        """Calls at once of each worker; None goes back to channels.toml."""
        wanted = ChannelChange.concurrency(slots)
        return await self._change(name, lambda operator: wanted.write(operator, name))

    async def reset(self, name: str) -> ChannelRow:
        """Everything as channels.toml says: a person's limits, what 429s brought down, an open breaker."""
        return await self._change(name, lambda operator: channels.reset(operator, name))

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


def _slots(written: str) -> int:
    if not written.isascii() or not written.isdigit() or not 1 <= int(written[:9]) <= _MAX_SLOTS:
        raise CommandError(
            f"{written!r} is no number of calls", "concurrency", f"a whole number from 1 to {_MAX_SLOTS}, or `file`"
        )
    return int(written)
