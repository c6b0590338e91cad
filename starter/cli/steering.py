"""pause, resume, cancel, approve, send-back, reject, priority, retry."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated

import typer

from citeloop.models.work import Action
from citeloop.settings import Settings
from starter.cli.output import print_json, say
from starter.cli.session import AsJson, OfCampaign, Ref, acting, run, settings_of
from starter.commands import Commands
from starter.finding import digest_of
from starter.telling import Effect

Notes = Annotated[str, typer.Option("--notes", help="What the writer or the record should know.")]
Seen = Annotated[
    str | None,
    typer.Option("--digest", help="Digest of the text you read, or its first 8 digits; refused if it has changed."),
]


def pause(
    context: typer.Context,
    ref: Ref,
    campaign: OfCampaign = False,
    reason: Annotated[str, typer.Option(help="Why; shown wherever the article is.")] = "",
    as_json: AsJson = False,
) -> None:
    """Hold before the next stage; a running call finishes.

    Example: citeloop pause "vector database" --reason "price change"
    """

    async def act(commands: Commands) -> Effect:
        if campaign:
            return await commands.pause_campaign(ref, reason)
        return await commands.pause((await commands.article(ref)).id, reason)

    _act(settings_of(context), act, as_json=as_json)


def resume(context: typer.Context, ref: Ref, campaign: OfCampaign = False, as_json: AsJson = False) -> None:
    """Go on where a pause held."""

    async def act(commands: Commands) -> Effect:
        if campaign:
            return await commands.resume_campaign(ref)
        return await commands.resume((await commands.article(ref)).id)

    _act(settings_of(context), act, as_json=as_json)


def cancel(
    context: typer.Context,
    ref: Ref,
    reason: Annotated[str, typer.Option(help="Why; kept with the article.")],
    campaign: OfCampaign = False,
    as_json: AsJson = False,
) -> None:
    """End it; a running call is cut off, a post on the wire is still recorded.

    Example: citeloop cancel 01J8… --reason "wrong product"
    """

    async def act(commands: Commands) -> Effect:
        if campaign:
            return await commands.cancel_campaign(ref, reason)
        return await commands.cancel((await commands.article(ref)).id, reason)

    _act(settings_of(context), act, as_json=as_json)


def priority(
    context: typer.Context,
    ref: Ref,
    level: Annotated[int, typer.Argument(min=1, max=5, help="1 first, 5 last.")],
    campaign: OfCampaign = False,
    as_json: AsJson = False,
) -> None:
    """Change the order among your own articles."""

    async def act(commands: Commands) -> Effect:
        if campaign:
            return await commands.prioritise_campaign(ref, level)
        return await commands.prioritise((await commands.article(ref)).id, level)

    _act(settings_of(context), act, as_json=as_json)


def retry(context: typer.Context, ref: Ref, campaign: OfCampaign = False, as_json: AsJson = False) -> None:
    """Try a parked stage again, or give a failed article a new run that keeps what is done."""

    async def act(commands: Commands) -> Effect | Sequence[Effect]:
        if campaign:
            return await commands.retry_campaign((await commands.campaign(ref)).id)
        return await commands.retry((await commands.article(ref)).id)

    _act(settings_of(context), act, as_json=as_json)


def approve(context: typer.Context, ref: Ref, notes: Notes = "", digest: Seen = None, as_json: AsJson = False) -> None:
    """Let the waiting draft be published."""
    _decide(settings_of(context), ref, Action.APPROVE, notes, digest, as_json=as_json)


def send_back(
    context: typer.Context, ref: Ref, notes: Notes = "", digest: Seen = None, as_json: AsJson = False
) -> None:
    """Have the waiting draft rewritten with your notes.

    Example: citeloop send-back 01J8… --notes "name the licence, drop the third paragraph"
    """
    _decide(settings_of(context), ref, Action.SEND_BACK, notes, digest, as_json=as_json)


def reject(context: typer.Context, ref: Ref, notes: Notes = "", digest: Seen = None, as_json: AsJson = False) -> None:
    """End the article; it is not published."""
    _decide(settings_of(context), ref, Action.REJECT, notes, digest, as_json=as_json)


def _decide(settings: Settings, ref: str, action: Action, notes: str, digest: str | None, *, as_json: bool) -> None:
    seen = digest_of(digest) if digest is not None else None

    async def act(commands: Commands) -> Effect:
        return await commands.decide((await commands.article(ref)).id, action, notes=notes, seen=seen)

    _act(settings, act, as_json=as_json)


def _act(
    settings: Settings,
    act: Callable[[Commands], Awaitable[Effect | Sequence[Effect]]],
    *,
    as_json: bool,
) -> None:
    async def work() -> Effect | Sequence[Effect]:
        async with acting(settings) as desk:
            return await act(desk.commands)

    done = run(work())
    if as_json:
        print_json(done)
        return
    for effect in [done] if isinstance(done, Effect) else done:
        say(f"{effect.name} ({effect.id}): {effect.state}; {effect.message}")
