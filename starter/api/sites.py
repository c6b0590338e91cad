"""The tenant's own sites: where its articles are published. Secrets go in and never come out."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Response, status
from pydantic import Field, JsonValue, SecretStr

from citeloop.models.channel import SiteKind
from citeloop.models.record import Record
from citeloop.models.site import SiteEntry, SiteState, SiteView
from starter.api import examples
from starter.api.answers import ALWAYS, KEY_NEEDED, WRITING, answers, body, plain_text, problems
from starter.api.paging import NAME, Limit, Page, paged
from starter.api.wiring import CallerDep
from starter.site_commands import Changes
from starter.site_files import CONCURRENCY

router = APIRouter(prefix="/v1/sites", tags=["sites"], dependencies=[KEY_NEEDED])

Name = Annotated[str, Path(pattern=NAME, description="The site's name.", examples=["blog"])]
Label = Annotated[str, Field(pattern=NAME)]
Labels = Annotated[tuple[Label, ...], Field(max_length=20, description="By which you group your sites.")]
Url = Annotated[str, Field(max_length=500, description="Its secret stays bound to scheme, host and port.")]
User = Annotated[str, Field(max_length=200, description="The login: WordPress's user, WeChat's AppID.")]
Secret = Annotated[
    SecretStr,
    Field(
        max_length=1000,
        description="WordPress: an application password. Webhook: `whsec_…`. Ghost: `id:secret`. Halo: `pat_…`. "
        "WeChat: the AppSecret. Left out: the one that is kept.",
    ),
]
Rate = Annotated[str, Field(max_length=40, description="Visits, such as 12/min or 500/h.")]
Concurrency = Annotated[int, Field(ge=1, le=10, description="Visits at once.")]
Settings = Annotated[
    dict[str, JsonValue],
    Field(max_length=20, description="What channels.toml may say of a site besides: tags, owned, timeouts …"),
]
_WRITTEN = [Depends(plain_text)]


class SitePage(Page[SiteView]):
    pass


class SiteBody(Record):
    kind: SiteKind
    base_url: Url
    user: User = ""
    secret: Secret = SecretStr("")
    rate: Rate | None = None
    concurrency: Concurrency = CONCURRENCY
    labels: Labels = ()
    settings: Settings = Field(default_factory=dict)


class SiteChange(Record):
    """What is left out stays. labels and settings are replaced as a whole; an empty rate is no limit."""

    base_url: Url | None = None
    user: User | None = None
    secret: Secret = SecretStr("")
    rate: Rate | None = None
    concurrency: Concurrency | None = None
    labels: Labels | None = None
    settings: Settings | None = None
    state: SiteState | None = None


class SiteChecked(Record):
    site: str
    ok: bool
    problems: tuple[str, ...]
    """What keeps articles from it, each with its remedy."""
    notes: tuple[str, ...]


@router.get("", summary="List sites", responses=answers(examples.page(examples.SITE, "blog")))
async def list_sites(
    caller: CallerDep,
    kind: Annotated[SiteKind | None, Query(description="Only sites of this kind.")] = None,
    label: Annotated[str | None, Query(pattern=NAME, description="Only those that bear this label.")] = None,
    after: Annotated[str | None, Query(pattern=NAME, description="`next` of the page before.")] = None,
    limit: Limit = 50,
) -> SitePage:
    """By name. Sites of channels.toml are the operator's and not among them."""
    found = await caller.sites.page(after=after, limit=limit + 1, kind=kind, label=label)
    items, next_ = paged(found, limit, lambda site: site.name)
    return SitePage(items=items, next=next_)


@router.get("/{site}", summary="Show a site", responses=answers(examples.SITE, 404))
async def show_site(site: Name, caller: CallerDep) -> SiteView:
    return await caller.sites.show(site)


@router.put(
    "/{site}",
    summary="Put a site",
    responses=answers(examples.SITE, 409, *WRITING, also={201: (SiteView, "The site is new")}),
    openapi_extra=body(examples.SITE_BODY),
    dependencies=_WRITTEN,
)
async def put_site(site: Name, given: SiteBody, caller: CallerDep, response: Response) -> SiteView:
    """All of it. 409: channels.toml has a site of that name."""
    values = given.model_dump(exclude={"secret"})
    entry = SiteEntry.model_validate({"name": site, **values})
    stored, made = await caller.sites.put(entry, given.secret.get_secret_value().strip())
    response.status_code = status.HTTP_201_CREATED if made else status.HTTP_200_OK
    return stored


@router.patch(
    "/{site}",
    summary="Change a site",
    responses=answers(examples.SITE, 404, 409, *WRITING),
    openapi_extra=body({"rate": "6/min", "state": "paused"}),
    dependencies=_WRITTEN,
)
async def change_site(site: Name, given: SiteChange, caller: CallerDep) -> SiteView:
    """Articles that are on their way to it find the change at their next visit."""
    changes = Changes.model_validate(given.model_dump(exclude={"secret"}))
    return await caller.sites.change(site, changes, given.secret.get_secret_value().strip())


@router.delete(
    "/{site}",
    summary="Remove a site",
    status_code=status.HTTP_204_NO_CONTENT,
    responses=problems(*ALWAYS, 403, 404),
)
async def remove_site(site: Name, caller: CallerDep) -> None:
    """Its secret goes with it; what stands on it stays there."""
    await caller.sites.remove(site)


@router.post("/{site}/check", summary="Check a site", responses=answers(examples.SITE_CHECKED, 403, 404))
async def check_site(site: Name, caller: CallerDep) -> SiteChecked:
    """Address, login, rights, and what its hosting does; takes up to 20 s and leaves nothing behind."""
    report = await caller.sites.check(site, caller.parts.outside)
    problems = tuple(problem.removeprefix(f"{site}: ") for problem in report.problems)
    return SiteChecked(site=site, ok=report.ok, problems=problems, notes=report.notes)
