"""What can be done to brands: put under a handle, as a whole or in part. Every change is a new revision."""

from collections.abc import Sequence

from citeloop.models.brand import Brand, Entity, Fact
from citeloop.rules.planning import check_brand
from citeloop.store.database import Database, Scope
from citeloop.store.repositories import brand_handles
from citeloop.store.repositories.brand_handles import BrandRevision
from citeloop.store.repositories.tenants import TenantRow
from starter.finding import no_brand


class BrandCommands:
    """Campaigns that were submitted keep the revision they were submitted with."""

    def __init__(self, database: Database, tenant: TenantRow) -> None:
        self._database = database
        self._tenant = tenant

    async def put(self, handle: str, brand: Brand) -> tuple[BrandRevision, bool]:
        """The brand as it stands now, and whether the handle is new. RequestError."""
        check_brand(brand)
        async with self._database.tenant(self._tenant.id) as scope:
            made = await brand_handles.put(scope, handle, brand)
            return await _standing(scope, handle), made

    async def put_facts(self, handle: str, facts: Sequence[Fact]) -> BrandRevision:
        """`facts`: at least one. Missing when there is no such brand, RequestError."""
        async with self._database.tenant(self._tenant.id) as scope:
            brand = (await _locked(scope, handle)).brand
            return await self._changed(scope, handle, brand.model_copy(update={"facts": tuple(facts)}))

    async def put_rivals(self, handle: str, rivals: Sequence[Entity]) -> BrandRevision:
        async with self._database.tenant(self._tenant.id) as scope:
            brand = (await _locked(scope, handle)).brand
            return await self._changed(scope, handle, brand.model_copy(update={"rivals": tuple(rivals)}))

    async def _changed(self, scope: Scope, handle: str, brand: Brand) -> BrandRevision:
        check_brand(brand)
        await brand_handles.put(scope, handle, brand)
        return await _standing(scope, handle)


async def _locked(scope: Scope, handle: str) -> BrandRevision:
    found = await brand_handles.locked(scope, handle)
    if found is None:
        raise no_brand(handle)
    return found


async def _standing(scope: Scope, handle: str) -> BrandRevision:
    found = await brand_handles.get(scope, handle)
    assert found is not None
    return found
