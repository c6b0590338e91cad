"""One tenant's work, stored for real, and its activities run as the worker would run them."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar

import asyncpg
import httpx
from temporalio.testing import ActivityEnvironment

from activities.correcting import CorrectingActivities
from activities.illustrating import IllustratingActivities
from activities.inspecting import InspectingActivities
from activities.monitoring import MonitoringActivities
from activities.publishing import PublishingActivities
from activities.reviewing import ReviewingActivities
from activities.writing import WritingActivities
from citeloop.channels.outside import Outside
from citeloop.models import ids
from citeloop.models.brand import Alias, Brand, Entity, Fact
from citeloop.models.channel import Catalog, ChannelSpec, Price, Role, SiteKind, SiteSpec
from citeloop.models.plan import CallPolicy, Plan, Stage
from citeloop.models.request import CampaignRequest, KeywordLine
from citeloop.models.work import Action, Decision, Draft, Step
from citeloop.rules import duplicates, planning
from citeloop.store.database import Database
from citeloop.store.repositories import articles, brands, campaigns, channels, decisions, drafts, manifests
from citeloop.store.repositories.articles import NewArticle
from citeloop.store.repositories.campaigns import NewCampaign
from citeloop.store.repositories.channels import ChannelRow
from citeloop.store.repositories.tenants import TenantRow
from tests.fixtures_sandbox import Sandbox

Order = TypeVar("Order")
Result = TypeVar("Result")

QUICK = CallPolicy(
    connect=timedelta(seconds=2),
    first_byte=timedelta(seconds=2),
    between_chunks=timedelta(seconds=2),
    total=timedelta(seconds=5),
    heartbeat=timedelta(seconds=1),
    max_faults=2,
)
BRAND = Brand(
    entity=Entity(name="Acmebase", aliases=(Alias(text="Acmebase"),), domains=("acme.example",)),
    homepage="https://acme.example",
    facts=(
        Fact(id="f1", text="Acmebase stores vectors in files.", source_url="https://acme.example/files"),
        Fact(id="f2", text="Acmebase answers in 3 languages.", source_url="https://acme.example/languages"),
        Fact(id="f3", text="Acmebase runs without a network.", source_url="https://acme.example/offline"),
    ),
    control_prompts=("Which vector databases run on a laptop?",),
)
BODY = "# Vectors in files\n\nAcmebase stores vectors in files.\n"


class Workshop:
    """Channels and sites of its own, named `<sandbox part>-<suffix>`, so that no test meets another's holds."""

    def __init__(self, database: Database, sandbox: Sandbox, tenant: TenantRow) -> None:
        self.database = database
        self.sandbox = sandbox
        self.tenant = tenant
        self.suffix = ids.new_id()[-10:].lower()
        self.environ = dict(sandbox.environ)
        self.catalog = Catalog(
            channels=(
                self._channel("deepseek", Role.WRITE),
                self._channel("qwen", Role.WRITE),
                self._channel("images", Role.ILLUSTRATE, base="images/v1", dialect="openai_images"),
                self._channel("perplexity", Role.ANSWER, base="perplexity"),
            ),
            sites=(self._site("blog", SiteKind.WORDPRESS), self._site("hook", SiteKind.WEBHOOK)),
            allow_private_addresses=True,
        )
        self._outsides: list[Outside] = []

    def name(self, part: str) -> str:
        return f"{part}-{self.suffix}"

    async def open(self) -> None:
        async with self.database.operator() as op:
            await channels.sync(op, self.catalog)

    async def close(self) -> None:
        for outside in self._outsides:
            await outside.close()

    async def change_channel(self, part: str, **changes: Any) -> None:
        """As if channels.toml had been edited and the worker restarted."""
        edited = tuple(
            spec.model_copy(update=changes) if spec.name == self.name(part) else spec for spec in self.catalog.channels
        )
        self.catalog = self.catalog.model_copy(update={"channels": edited})
        await self.open()

    async def lose_channel(self, part: str) -> None:
        left = tuple(spec for spec in self.catalog.channels if spec.name != self.name(part))
        self.catalog = self.catalog.model_copy(update={"channels": left})
        await self.open()

    async def change_site(self, part: str, **changes: Any) -> None:
        edited = tuple(
            site.model_copy(update=changes) if site.name == self.name(part) else site for site in self.catalog.sites
        )
        self.catalog = self.catalog.model_copy(update={"sites": edited})
        await self.open()

    # the hands, each a worker of its own

    def outside(self) -> Outside:
        self._outsides.append(Outside(self.catalog, self.environ))
        return self._outsides[-1]

    def writing(self) -> WritingActivities:
        return WritingActivities(self.database, self.outside())

    def illustrating(self) -> IllustratingActivities:
        return IllustratingActivities(self.database, self.outside())

    def reviewing(self) -> ReviewingActivities:
        return ReviewingActivities(self.database)

    def publishing(self) -> PublishingActivities:
        return PublishingActivities(self.database, self.outside(), "http://127.0.0.1:9")

    def inspecting(self, http: httpx.AsyncClient | None = None) -> InspectingActivities:
        """`http`: the world as a test wants it, instead of the sandbox."""
        outside = Outside(self.catalog, self.environ, http) if http is not None else self.outside()
        return InspectingActivities(self.database, outside)

    def correcting(self) -> CorrectingActivities:
        return CorrectingActivities(self.database, self.outside())

    def monitoring(self) -> MonitoringActivities:
        return MonitoringActivities(self.database, self.outside())

    async def run(self, promise: Callable[[Order], Awaitable[Result]], order: Order) -> Result:
        return await environment().run(promise, order)

    # the work

    async def article(self, keyword: str = "vector database", **request: Any) -> Plan:
        """A lone article, submitted; writers in the order deepseek, qwen."""
        async with self.database.tenant(self.tenant.id) as scope:
            brand_id = await brands.put(scope, BRAND)
            manifest, (plan,) = planning.build(
                _request(keyword, **request),
                self.catalog,
                BRAND,
                tenant_id=self.tenant.id,
                brand_id=brand_id,
                campaign_id=None,
            )
            plan = _in_order(plan)
            await manifests.put(scope, manifest)
            await articles.submit(scope, [NewArticle(plan=plan, position=0)])
        return plan

    async def campaign(self, *keywords: tuple[str, int], **request: Any) -> tuple[str, dict[str, Plan]]:
        """(its id, plan by keyword) of `(keyword, priority)` lines, in this order."""
        campaign_id = ids.new_id()
        lines = tuple(KeywordLine(keyword=keyword, priority=priority) for keyword, priority in keywords)
        wanted = _request("", **request).model_copy(update={"keywords": lines})
        async with self.database.tenant(self.tenant.id) as scope:
            brand_id = await brands.put(scope, BRAND)
            manifest, plans = planning.build(
                wanted,
                self.catalog,
                BRAND,
                tenant_id=self.tenant.id,
                brand_id=brand_id,
                campaign_id=campaign_id,
            )
            await manifests.put(scope, manifest)
            await campaigns.create(
                scope,
                NewCampaign(
                    id=campaign_id,
                    name=f"campaign {self.suffix}",
                    brand_id=brand_id,
                    manifest_id=manifest.id,
                    request=wanted,
                    fingerprint="f",
                ),
            )
            await articles.submit(scope, [NewArticle(plan=plan, position=n) for n, plan in enumerate(plans)])
        return campaign_id, {plan.keyword: plan for plan in plans}

    def step(self, plan: Plan, stage: Stage, part: str, **changes: Any) -> Step:
        return Step(
            tenant_id=plan.tenant_id,
            campaign_id=plan.campaign_id,
            article_id=plan.article_id,
            plan_digest=plan.digest,
            stage=stage,
            route=self.name(part),
            **changes,
        )

    async def draft(self, plan: Plan, body: str = BODY) -> Draft:
        draft = Draft(
            id=ids.new_id(),
            digest=ids.text_digest(body),
            stage=Stage.REWRITE,
            round=0,
            channel=self.name("deepseek"),
            title=f"Vectors in files: {plan.keyword}",
            chars=len(body),
        )
        async with self.database.tenant(self.tenant.id) as scope:
            await drafts.add(scope, plan.article_id, draft, body, sketch=duplicates.sketch(body))
        return draft

    async def approved(self, plan: Plan, part: str = "blog") -> Step:
        """A draft that a person approved, ready to be published on that site."""
        draft = await self.draft(plan)
        await self.decided(plan, draft, Action.APPROVE)
        return self.step(plan, Stage.PUBLISH, part, draft_id=draft.id)

    async def decided(self, plan: Plan, draft: Draft, action: Action, digest: str | None = None) -> None:
        decision = Decision(action=action, draft_id=draft.id, draft_digest=digest or draft.digest, by="ann")
        async with self.database.tenant(self.tenant.id) as scope:
            await decisions.record(scope, plan.article_id, decision)

    # what came of it

    async def calls(self, part: str) -> int:
        """How often the sandbox's service was asked, whether it answered or not."""
        found = (await self.sandbox.ledger())["providers"].get(part)
        return int(found["calls"]) if found else 0

    async def posts(self, part: str = "blog") -> tuple[int, int]:
        """(posts, duplicates) that stand on the sandbox's site."""
        found = (await self.sandbox.ledger())["sites"].get(part, {"posts": 0, "duplicate_posts": 0})
        return found["posts"], found["duplicate_posts"]

    async def row(self, part: str) -> ChannelRow:
        async with self.database.operator() as op:
            return next(row for row in await channels.rows(op) if row.name == self.name(part))

    def _channel(self, part: str, role: Role, *, base: str = "", dialect: str = "openai_chat") -> ChannelSpec:
        return ChannelSpec(
            name=self.name(part),
            roles=frozenset({role}),
            dialect=dialect,
            base_url=f"{self.sandbox.url}/{base or f'{part}/v1'}",
            model="any",
            key_env="SANDBOX_KEY",
            stream=role is Role.WRITE,
            price=Price(input=2_000_000, output=8_000_000, call=100_000),
            policy=QUICK,
        )

    def _site(self, part: str, kind: SiteKind) -> SiteSpec:
        return SiteSpec(
            name=self.name(part),
            kind=kind,
            base_url=f"{self.sandbox.url}/{part}",
            user_env="SANDBOX_BLOG_USER" if kind is SiteKind.WORDPRESS else None,
            secret_env="SANDBOX_BLOG_PASSWORD" if kind is SiteKind.WORDPRESS else "SANDBOX_HOOK_SECRET",
            max_server_time=timedelta(seconds=4),
            callback_deadline=timedelta(seconds=30),
            policy=QUICK,
        )


def environment(*, attempt: int = 1, details: Sequence[Any] = ()) -> ActivityEnvironment:
    made = ActivityEnvironment()
    made.info = replace(
        made.info, attempt=attempt, heartbeat_timeout=timedelta(seconds=1), heartbeat_details=list(details)
    )
    return made


def _request(keyword: str, **changes: Any) -> CampaignRequest:
    lines = (KeywordLine(keyword=keyword or "unused"),)
    return CampaignRequest(name="one", keywords=lines).model_copy(update=changes)


def _in_order(plan: Plan) -> Plan:
    """Planning shares the articles out among the writers; the tests want to know who is first."""
    routes = {
        stage: tuple(sorted(found, key=lambda route: route.name)) if stage in {Stage.GENERATE, Stage.REWRITE} else found
        for stage, found in plan.routes.items()
    }
    return plan.model_copy(update={"routes": routes})


async def forget_vanished(owner_url: str) -> None:
    """Earlier tests' channels, which a reconciler would otherwise look after as well."""
    owner = await asyncpg.connect(owner_url)
    await owner.execute(
        "DELETE FROM channel_counts WHERE name IN (SELECT name FROM channels WHERE vanished);"
        "DELETE FROM channels WHERE vanished"
    )
    await owner.close()
