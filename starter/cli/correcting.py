"""correct, unpublish: what is done to pages that stand already."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated

import typer

from citeloop.models.work import Flag
from citeloop.settings import Settings
from starter import files
from starter.cli.output import hint, print_json, say
from starter.cli.session import AsJson, Ref, acting, run, settings_of
from starter.errors import CommandError
from starter.page_commands import Corrected, PageCommands

Site = Annotated[str | None, typer.Option(help="Only on this site; default: wherever it stands.")]
Reason = Annotated[str, typer.Option(help="Why; stands in the article's events.")]


def correct(
    context: typer.Context,
    ref: Ref,
    file: Annotated[Path | None, typer.Option(help="The new text: Markdown that begins with one `# ` title.")] = None,
    draft: Annotated[str | None, typer.Option(help="Or the id of one of the article's drafts.")] = None,
    site: Site = None,
    reason: Reason = "",
    as_json: AsJson = False,
) -> None:
    """Put another text on pages that are published; you approve it by asking.

    Example: citeloop correct 01J8… --file corrected.md --reason "the price has changed"
    """
    if (file is None) == (draft is None):
        raise CommandError("name the new text, by one of --file and --draft", "file", "see `citeloop correct --help`")
    text = files.read_text(file, "file") if file is not None else None

    async def act(pages: PageCommands) -> Corrected:
        return await pages.correct(ref, text=text, draft_id=draft, site=site, reason=reason)

    _act(settings_of(context), act, as_json=as_json)


def unpublish(
    context: typer.Context, ref: Ref, site: Site = None, reason: Reason = "", as_json: AsJson = False
) -> None:
    """Take an article's pages away from their sites; it is measured no longer.

    Example: citeloop unpublish "vector database" --site blog --reason "wrong product"
    """

    async def act(pages: PageCommands) -> Corrected:
        return await pages.unpublish(ref, site=site, reason=reason)

    _act(settings_of(context), act, as_json=as_json)


def _act(settings: Settings, act: Callable[[PageCommands], Awaitable[Corrected]], *, as_json: bool) -> None:
    async def work() -> Corrected:
        async with acting(settings) as desk:
            return await act(desk.pages)

    done = run(work())
    if as_json:
        print_json(done)
    else:
        say(f"{done.name} ({done.id}): {done.message}")
        for page in done.pages:
            say(f"  {page.site}: {page.kind} {page.state} {page.problem or page.url}".rstrip())
        for flag in done.flags:
            hint(_flagged(flag))
    if done.message == "failed":
        raise typer.Exit(1)


def _flagged(flag: Flag) -> str:
    return f"{flag.severity} ({flag.rule}): {flag.message}" + (f": {flag.excerpt}" if flag.excerpt else "")
