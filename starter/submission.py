"""Submitting is one write: brand, manifest, campaign and articles in one transaction, or nothing."""

import hashlib

from citeloop.models import ids
from citeloop.models.brand import Brand
from citeloop.models.channel import Catalog
from citeloop.models.measure import Manifest
from citeloop.models.plan import Plan
from citeloop.models.record import Record
from citeloop.models.request import CampaignRequest
from citeloop.rules import planning
from citeloop.store.database import Database, Scope
from citeloop.store.repositories import (
    article_views,
    articles,
    brands,
    campaign_views,
    campaigns,
    idempotency,
    manifests,
)
from citeloop.store.repositories.articles import NewArticle
from citeloop.store.repositories.campaigns import NewCampaign
from citeloop.store.repositories.idempotency import Claim
from citeloop.store.repositories.tenants import TenantRow
from starter.errors import Conflict
from starter.finding import find_brand
from starter.site_commands import with_registered


class Stored(Record):
    """What stands in the store now. `new` is 0 when the same thing was submitted before."""

    campaign_id: str | None
    article_ids: tuple[str, ...]
    new: int


class Desk:
    """Writes submissions for one tenant."""

    def __init__(self, database: Database, catalog: Catalog, tenant: TenantRow) -> None:
        self._database = database
        self._catalog = catalog
        self._tenant = tenant

    async def sketch(self, brand: Brand, request: CampaignRequest) -> Plan:
        """The first article's plan, unsaved: which channels and sites would be used. Raises RequestError."""
        first = request.model_copy(update={"keywords": request.keywords[:1]})
        async with self._database.tenant(self._tenant.id) as scope:
            catalog = await with_registered(scope, self._catalog, request.sites)
        return self._build(catalog, brand, first, brand_id="", campaign_id=None)[1][0]

    async def holds(self, key: str | None) -> bool:
        """Whether something was submitted under the key: the same again needs no channel and no site."""
        if key is None:
            return False
        async with self._database.tenant(self._tenant.id) as scope:
            if await article_views.get(scope, ids.digest_id("article", self._tenant.id, key)) is not None:
                return True
            return await campaign_views.exists(scope, ids.digest_id("campaign", self._tenant.id, key))

    async def campaign(
        self, brand: Brand | str, request: CampaignRequest, key: str | None, asked: str | None = None
    ) -> Stored:
        """Raises RequestError, Missing, and Conflict when `key` was used for another request.

        brand: itself, or the handle under which it stands.

        asked: the digest of what the caller sent, where that is not (brand, request) itself.
        """
        async with self._database.tenant(self._tenant.id) as scope:
            brand_id, brand = await _kept(scope, brand)
            print_ = _print(brand_id, request)
            campaign_id = ids.digest_id("campaign", self._tenant.id, key or print_)
            if key is not None:
                mine = Claim(fingerprint=asked or print_, campaign_id=campaign_id)
                if (there := await _claimed(scope, key, mine)) is not None:
                    return there
            catalog = await with_registered(scope, self._catalog, request.sites)
            manifest, plans = self._build(catalog, brand, request, brand_id=brand_id, campaign_id=campaign_id)
            await manifests.put(scope, manifest)
            campaign = NewCampaign(
                id=campaign_id,
                name=request.name,
                brand_id=brand_id,
                manifest_id=manifest.id,
                request=request,
                fingerprint=print_,
            )
            if not await campaigns.create(scope, campaign):
                await _same_or_conflict(scope, campaign)
            return await _submit(scope, plans, campaign_id)

    async def article(
        self, brand: Brand | str, request: CampaignRequest, key: str | None, asked: str | None = None
    ) -> Stored:
        """One keyword by itself. The same keyword, locale and kind are the same article, unless `key` differs."""
        async with self._database.tenant(self._tenant.id) as scope:
            brand_id, brand = await _kept(scope, brand)
            own: dict[str, str] = {}
            if key is not None:
                own["article_id"] = ids.digest_id("article", self._tenant.id, key)
                mine = Claim(fingerprint=asked or _print(brand_id, request), article_id=own["article_id"])
                if (there := await _claimed(scope, key, mine)) is not None:
                    return there
            catalog = await with_registered(scope, self._catalog, request.sites)
            manifest, (plan,) = self._build(catalog, brand, request, brand_id=brand_id, campaign_id=None)
            plan = plan.model_copy(update=own)
            await manifests.put(scope, manifest)
            return await _submit(scope, (plan,), None)

    def _build(
        self, catalog: Catalog, brand: Brand, request: CampaignRequest, *, brand_id: str, campaign_id: str | None
    ) -> tuple[Manifest, tuple[Plan, ...]]:
        return planning.build(
            request,
            catalog,
            brand,
            tenant_id=self._tenant.id,
            brand_id=brand_id,
            campaign_id=campaign_id,
            weight=self._tenant.weight,
        )


async def _kept(scope: Scope, brand: Brand | str) -> tuple[str, Brand]:
    """The revision that stands in the store, and its id."""
    if isinstance(brand, str):
        stored = await find_brand(scope, brand)
        return stored.revision, stored.brand
    return await brands.put(scope, brand), brand


async def _submit(scope: Scope, plans: tuple[Plan, ...], campaign_id: str | None) -> Stored:
    new = await articles.submit(
        scope, [NewArticle(plan=plan, position=position) for position, plan in enumerate(plans)]
    )
    return Stored(campaign_id=campaign_id, article_ids=tuple(plan.article_id for plan in plans), new=len(new))


def _print(brand_id: str, request: CampaignRequest) -> str:
    return hashlib.sha256(f"{brand_id}\n{request.model_dump_json()}".encode()).hexdigest()


async def _claimed(scope: Scope, key: str, mine: Claim) -> Stored | None:
    """What the same request under the same key has made; None when the key is ours now."""
    there = await idempotency.claim(scope, key, mine)
    if there is None:
        return None
    if there.fingerprint != mine.fingerprint:
        raise Conflict("it was used for another request", "idempotency key", "choose a new key")
    if there.campaign_id is None:
        assert there.article_id is not None
        return Stored(campaign_id=None, article_ids=(there.article_id,), new=0)
    article_ids = await campaign_views.article_ids(scope, there.campaign_id)
    return Stored(campaign_id=there.campaign_id, article_ids=article_ids, new=0)


async def _same_or_conflict(scope: Scope, campaign: NewCampaign) -> None:
    there = await campaigns.get(scope, campaign.id)
    if there is not None and there.fingerprint != campaign.fingerprint:
        raise Conflict(
            f"it was used for another request, campaign {there.name!r}", "idempotency key", "choose a new key"
        )
