"""Brands by handle, with their facts and rivals as parts that are read and replaced."""

from typing import Annotated

from fastapi import APIRouter, Body, Depends, Path, Query, Response, status

from citeloop.models.brand import Brand, Entity, Fact
from citeloop.models.record import Record
from citeloop.store.repositories import brand_handles
from citeloop.store.repositories.brand_handles import BrandRevision, BrandSummary
from starter.api import examples
from starter.api.answers import KEY_NEEDED, WRITING, answers, body, plain_text
from starter.api.paging import HANDLE, ULID, Limit, Page, paged
from starter.api.wiring import Caller, CallerDep
from starter.brand_commands import BrandCommands
from starter.finding import no_brand

router = APIRouter(prefix="/v1/brands", tags=["brands"], dependencies=[KEY_NEEDED])

Handle = Annotated[str, Path(pattern=HANDLE, description="The brand's handle.", examples=["milvus"])]
Named = Annotated[
    str,
    Path(pattern=f"({HANDLE})|({ULID})", description="A handle, or the id of one revision.", examples=["milvus"]),
]


class BrandPage(Page[BrandSummary]):
    pass


class Facts(Record):
    revision: str
    facts: tuple[Fact, ...]


class Rivals(Record):
    revision: str
    rivals: tuple[Entity, ...]


_FACTS = {"revision": examples.BRAND_REVISION["revision"], "facts": examples.FACTS}
_RIVALS = {"revision": examples.BRAND_REVISION["revision"], "rivals": examples.RIVALS}


@router.get("", summary="List brands", responses=answers(examples.BRANDS))
async def list_brands(
    caller: CallerDep,
    after: Annotated[str | None, Query(pattern=HANDLE, description="`next` of the page before.")] = None,
    limit: Limit = 50,
) -> BrandPage:
    async with caller.database.tenant(caller.tenant.id) as scope:
        found = await brand_handles.list_(scope, after=after, limit=limit + 1)
    items, next_ = paged(found, limit, lambda brand: brand.handle)
    return BrandPage(items=items, next=next_)


@router.get("/{brand}", summary="Show a brand", responses=answers(examples.BRAND_REVISION, 404))
async def show_brand(brand: Named, caller: CallerDep) -> BrandRevision:
    """As it stands under its handle, or as it stood in one revision."""
    return await standing(caller, brand)


@router.put(
    "/{brand}",
    summary="Put a brand",
    responses=answers(examples.BRAND_REVISION, *WRITING, also={201: (BrandRevision, "The handle is new")}),
    openapi_extra=body(examples.BRAND),
    dependencies=[Depends(plain_text)],
)
async def put_brand(brand: Handle, content: Brand, caller: CallerDep, response: Response) -> BrandRevision:
    """A changed brand is a new revision; campaigns keep the one they were submitted with."""
    stored, made = await BrandCommands(caller.database, caller.tenant).put(brand, content)
    response.status_code = status.HTTP_201_CREATED if made else status.HTTP_200_OK
    return stored


@router.get("/{brand}/facts", summary="List a brand's facts", responses=answers(_FACTS, 404))
async def show_facts(brand: Named, caller: CallerDep) -> Facts:
    return _facts(await standing(caller, brand))


@router.put(
    "/{brand}/facts",
    summary="Replace a brand's facts",
    responses=answers(_FACTS, 404, *WRITING),
    openapi_extra=body(examples.FACTS),
    dependencies=[Depends(plain_text)],
)
async def put_facts(brand: Handle, facts: Annotated[tuple[Fact, ...], Body(min_length=1)], caller: CallerDep) -> Facts:
    """At least one: without facts nothing can be claimed."""
    return _facts(await BrandCommands(caller.database, caller.tenant).put_facts(brand, facts))


@router.get("/{brand}/rivals", summary="List a brand's rivals", responses=answers(_RIVALS, 404))
async def show_rivals(brand: Named, caller: CallerDep) -> Rivals:
    return _rivals(await standing(caller, brand))


@router.put(
    "/{brand}/rivals",
    summary="Replace a brand's rivals",
    responses=answers(_RIVALS, 404, *WRITING),
    openapi_extra=body(examples.RIVALS),
    dependencies=[Depends(plain_text)],
)
async def put_rivals(brand: Handle, rivals: tuple[Entity, ...], caller: CallerDep) -> Rivals:
    return _rivals(await BrandCommands(caller.database, caller.tenant).put_rivals(brand, rivals))


async def standing(caller: Caller, named: str) -> BrandRevision:
    """By handle, else by revision. Missing when there is no such brand."""
    async with caller.database.tenant(caller.tenant.id) as scope:
        found = await brand_handles.get(scope, named) or await brand_handles.get_revision(scope, named)
    if found is None:
        raise no_brand(named)
    return found


def _facts(stored: BrandRevision) -> Facts:
    return Facts(revision=stored.revision, facts=stored.brand.facts)


def _rivals(stored: BrandRevision) -> Rivals:
    return Rivals(revision=stored.revision, rivals=stored.brand.rivals)
