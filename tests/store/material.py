"""A brand, a manifest, a campaign and articles to store."""

from datetime import UTC, datetime

from citeloop.models import ids
from citeloop.models.brand import Alias, Brand, Entity, Fact
from citeloop.models.measure import Manifest, Prompt
from citeloop.models.plan import Kind, Plan, Route, Stage
from citeloop.models.request import CampaignRequest, KeywordLine
from citeloop.models.work import Draft, SampleStep, Step
from citeloop.store.database import Scope
from citeloop.store.repositories import articles, brands, campaigns, manifests
from citeloop.store.repositories.articles import NewArticle
from citeloop.store.repositories.campaigns import NewCampaign

WINDOW = datetime(2026, 11, 1, tzinfo=UTC)


def brand(name: str = "Milvus") -> Brand:
    return Brand(
        entity=Entity(name=name, aliases=(Alias(text=name),)),
        homepage="https://milvus.io",
        facts=(Fact(id="f1", text="It is open source.", source_url="https://milvus.io/docs"),),
    )


def manifest(*prompts: Prompt) -> Manifest:
    asked = prompts or tuple(prompt(keyword) for keyword in ("向量数据库", "vector database"))
    return Manifest(
        id=ids.new_id(), brand=brand().entity, prompts=asked, engines=("doubao", "qwen"), matcher_version="1"
    )


def prompt(keyword: str, locale: str = "en") -> Prompt:
    return Prompt(id=ids.prompt_id(keyword, locale), text=f"{keyword}?", locale=locale, keyword=keyword)


def plan(
    tenant_id: str,
    brand_id: str,
    *,
    keyword: str = "vector database",
    campaign_id: str | None = None,
    manifest_id: str = "manifest",
    priority: int = 3,
) -> Plan:
    routes = {
        Stage.MONITOR: (Route(name="qwen", queue="channel.qwen"),),
        Stage.GENERATE: (Route(name="deepseek", queue="channel.deepseek"),),
    }
    return Plan(
        tenant_id=tenant_id,
        article_id=ids.article_id(tenant_id, campaign_id or "alone", keyword, "en", Kind.ARTICLE),
        campaign_id=campaign_id,
        brand_id=brand_id,
        manifest_id=manifest_id,
        keyword=keyword,
        locale="en",
        routes=routes,
        priority=priority,
    )


async def one_article(scope: Scope, keyword: str = "vector database") -> Plan:
    made = plan(scope.tenant_id, await brands.put(scope, brand()), keyword=keyword)
    await articles.submit(scope, [NewArticle(plan=made, position=0)])
    return made


async def one_campaign(scope: Scope, size: int, *, name: str = "autumn") -> tuple[str, list[Plan]]:
    """Keywords `k000`, `k001`, …; the even ones have priority 2, the odd ones 3."""
    brand_id = await brands.put(scope, brand())
    asked = manifest()
    await manifests.put(scope, asked)
    keywords = tuple(KeywordLine(keyword=f"k{n:03}") for n in range(size))
    request = CampaignRequest(name=name, keywords=keywords)
    campaign_id = ids.new_id()
    created = await campaigns.create(
        scope,
        NewCampaign(
            id=campaign_id, name=name, brand_id=brand_id, manifest_id=asked.id, request=request, fingerprint="f"
        ),
    )
    assert created
    plans = [
        plan(
            scope.tenant_id,
            brand_id,
            keyword=line.keyword,
            campaign_id=campaign_id,
            manifest_id=asked.id,
            priority=2 + n % 2,
        )
        for n, line in enumerate(keywords)
    ]
    await articles.submit(scope, [NewArticle(plan=each, position=n) for n, each in enumerate(plans)])
    return campaign_id, plans


def step(of: Plan, stage: Stage = Stage.GENERATE, route: str = "deepseek") -> Step:
    return Step(
        tenant_id=of.tenant_id,
        campaign_id=of.campaign_id,
        article_id=of.article_id,
        plan_digest=of.digest,
        stage=stage,
        route=route,
    )


def draft(body: str, *, stage: Stage = Stage.REWRITE, channel: str = "deepseek", round_: int = 0) -> Draft:
    return Draft(
        id=ids.new_id(),
        digest=ids.text_digest(body),
        stage=stage,
        round=round_,
        channel=channel,
        title="A title",
        chars=len(body),
    )


def sample_step(tenant_id: str, asked: Manifest, *, window_start: datetime = WINDOW, replicate: int = 0) -> SampleStep:
    return SampleStep(
        tenant_id=tenant_id,
        campaign_id=None,
        article_id=None,
        manifest_id=asked.id,
        prompt_id=asked.prompts[0].id,
        engine="qwen",
        window="baseline",
        window_start=window_start,
        replicate=replicate,
    )
