"""Channels, fleet-wide: their limits, and who has set them."""

from datetime import datetime
from fractions import Fraction
from typing import Annotated

from fastapi import APIRouter, Depends, Path
from pydantic import Field

from citeloop.models.record import Record
from citeloop.store.repositories import channels
from citeloop.store.repositories.channels import ChannelRow
from starter.api import examples
from starter.api.answers import KEY_NEEDED, WRITING, answers, body, plain_text
from starter.api.bodies import Reason
from starter.api.paging import NAME
from starter.api.wiring import CallerDep
from starter.channel_commands import ChannelCommands
from starter.errors import Missing

router = APIRouter(prefix="/v1/channels", tags=["channels"], dependencies=[KEY_NEEDED])

Name = Annotated[str, Path(pattern=NAME, description="Its name in channels.toml.", examples=["deepseek"])]
_WRITTEN = [Depends(plain_text)]


class Channel(Record):
    """Rates are calls per second for the whole fleet; null is none set, 0 is stopped."""

    name: str
    roles: tuple[str, ...]
    queue: str
    rate: float | None
    """From channels.toml."""
    operator_rate: float | None
    """Set by a person."""
    adaptive_rate: float | None
    """Cut after a 429, on its way back."""
    effective_rate: float | None
    """What may be called now; null is unlimited."""
    why: str
    """Whose limit that is."""
    burst: int
    calls_per_dispatch: int
    concurrency: int
    """Calls at once of each worker."""
    operator_concurrency: int | None
    """Set by a person; null: the file's."""
    paused: bool
    pause_cause: str
    """operator, exhausted or unauthorized; empty while it is not paused."""
    pause_reason: str
    hold_until: datetime | None
    hold_reason: str
    breaker_until: datetime | None
    """Null: closed."""
    half_open: bool
    """One probe may call, to find out whether the provider has recovered."""
    breaker_reason: str
    quota_until: datetime | None
    quota_reason: str
    tokens_per_minute: int | None
    calls_per_day: int | None
    tokens_per_day: int | None
    calls_last_minute: int
    tokens_last_minute: int
    calls_of_quota: int
    """Since the daily quota's last reset."""
    tokens_of_quota: int
    vanished: bool
    """No longer in channels.toml."""
    calls: int
    limited: int
    faults: int
    last_call_at: datetime | None

    @classmethod
    def of(cls, row: ChannelRow) -> "Channel":
        values = {name: getattr(row, name) for name in cls.model_fields}
        return cls(**{name: float(each) if isinstance(each, Fraction) else each for name, each in values.items()})


class Concurrency(Record):
    concurrency: Annotated[
        int | None, Field(ge=1, le=1000, description="Calls at once of each worker; null goes back to channels.toml.")
    ]


class Channels(Record):
    items: tuple[Channel, ...]


class Rate(Record):
    rate: Annotated[
        str | None,
        Field(
            pattern=r"^[0-9]{1,6}(\.[0-9]{1,6})?(/(s|min|h|day))?$",
            description="Such as 3/s or 12/min; 0 stops the channel; null goes back to channels.toml.",
        ),
    ]


@router.get("", summary="List channels", responses=answers({"items": [examples.CHANNEL]}))
async def list_channels(caller: CallerDep) -> Channels:
    async with caller.database.operator() as operator:
        return Channels(items=tuple(Channel.of(row) for row in await channels.rows(operator)))


@router.get("/{name}", summary="Show a channel", responses=answers(examples.CHANNEL, 404))
async def show_channel(name: Name, caller: CallerDep) -> Channel:
    async with caller.database.operator() as operator:
        found = next((row for row in await channels.rows(operator) if row.name == name), None)
    if found is None:
        raise Missing(f"{name!r} is no channel", "channel", "GET /v1/channels lists them")
    return Channel.of(found)


@router.post(
    "/{name}/pause",
    summary="Pause a channel",
    responses=answers(examples.CHANNEL, 404, *WRITING),
    openapi_extra=body({"reason": "the account is out of money"}),
    dependencies=_WRITTEN,
)
async def pause_channel(name: Name, caller: CallerDep, given: Reason | None = None) -> Channel:
    """No call is made any more; its work waits."""
    reason = (given.reason if given else "") or f"paused by {caller.holder.name}"
    return Channel.of(await ChannelCommands(caller.database).pause(name, reason))


@router.post("/{name}/resume", summary="Resume a channel", responses=answers(examples.CHANNEL, 404, 403))
async def resume_channel(name: Name, caller: CallerDep) -> Channel:
    """Its breaker is closed too."""
    return Channel.of(await ChannelCommands(caller.database).resume(name))


@router.put(
    "/{name}/rate",
    summary="Set a channel's rate",
    responses=answers(examples.CHANNEL, 404, *WRITING),
    openapi_extra=body({"rate": "12/min"}),
    dependencies=_WRITTEN,
)
async def set_rate(name: Name, given: Rate, caller: CallerDep) -> Channel:
    """In place of the file's rate."""
    return Channel.of(await ChannelCommands(caller.database).set_rate(name, given.rate))


@router.put(
    "/{name}/concurrency",
    summary="Set a channel's concurrency",
    responses=answers(examples.CHANNEL, 404, *WRITING),
    openapi_extra=body({"concurrency": 3}),
    dependencies=_WRITTEN,
)
async def set_concurrency(name: Name, given: Concurrency, caller: CallerDep) -> Channel:
    """Instead of the file's; every worker follows within two seconds."""
    return Channel.of(await ChannelCommands(caller.database).set_concurrency(name, given.concurrency))


@router.post("/{name}/reset", summary="Reset a channel", responses=answers(examples.CHANNEL, 404, 403))
async def reset_channel(name: Name, caller: CallerDep) -> Channel:
    """Its limits as channels.toml says: without what people set and what 429s brought down. A pause stays."""
    return Channel.of(await ChannelCommands(caller.database).reset(name))
