import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from citeloop.models.measure import Answer, Citation, Reading
from citeloop.models.work import SampleStatus
from citeloop.store.database import Database
from citeloop.store.errors import NotFound
from citeloop.store.repositories import articles, campaigns, manifests, samples
from citeloop.store.repositories.tenants import TenantRow
from citeloop.store.statements import text
from tests.store.material import WINDOW, manifest, one_campaign, prompt, sample_step

NAMED = Reading(status=SampleStatus.OK, named=True, rank=1, prominence=0.75, rivals_named=("Qdrant",), grounded=True)
ANSWER = Answer(text="Milvus 很好", cited=(Citation(url="https://milvus.io"),), searched=True, raw="{}")


async def test_a_manifest_comes_back_as_it_was(database: Database, tenant: TenantRow) -> None:
    asked = manifest(*(prompt(f"关键词 {n}", "zh-CN") for n in range(300)))
    async with database.tenant(tenant.id) as scope:
        await manifests.put(scope, asked)
        await manifests.put(scope, asked.model_copy(update={"replicates": 5}))
        assert await manifests.get(scope, asked.id) == asked
        one = await manifests.with_prompt(scope, asked.id, asked.prompts[7].id)
        with pytest.raises(NotFound, match="no manifest nothing"):
            await manifests.get(scope, "nothing")
    assert one == asked.model_copy(update={"prompts": (asked.prompts[7],)})


async def test_a_place_in_the_measurement_holds_one_sample(database: Database, tenant: TenantRow) -> None:
    asked = manifest()
    step = sample_step(tenant.id, asked)
    async with database.tenant(tenant.id) as scope:
        await manifests.put(scope, asked)
        assert await samples.find(scope, step) is None

    async def put(reading: Reading) -> None:
        async with database.tenant(tenant.id) as scope:
            await samples.put(scope, step, reading, ANSWER)

    await put(NAMED)
    await asyncio.gather(*(put(Reading(status=SampleStatus.FAILED)) for _ in range(5)))
    async with database.tenant(tenant.id) as scope:
        assert await samples.find(scope, step) == NAMED
        assert await samples.find_answer(scope, step) == ANSWER
        assert await samples.find(scope, step.model_copy(update={"replicate": 1})) is None
        (sample,) = await samples.of_keyword(scope, asked.id, "向量数据库")
        assert await samples.of_keyword(scope, asked.id, asked.prompts[0].id) == [sample]
    assert (sample.keyword, sample.engine, sample.window, sample.window_start) == (
        "向量数据库",
        "qwen",
        "baseline",
        WINDOW,
    )
    assert sample.reading == NAMED


async def test_a_sample_of_no_known_prompt_is_refused(database: Database, tenant: TenantRow) -> None:
    asked = manifest()
    async with database.tenant(tenant.id) as scope:
        await manifests.put(scope, asked)
        with pytest.raises(NotFound, match="has no prompt unknown"):
            await samples.put(
                scope, sample_step(tenant.id, asked).model_copy(update={"prompt_id": "unknown"}), NAMED, None
            )


async def test_samples_are_found_by_article_and_by_campaign(database: Database, tenant: TenantRow) -> None:
    async with database.tenant(tenant.id) as scope:
        campaign_id, plans = await one_campaign(scope, 1)
        view = await campaigns.get(scope, campaign_id)
        assert view is not None
        asked = await manifests.get(scope, view.manifest_id)
        own = sample_step(tenant.id, asked).model_copy(update={"article_id": plans[0].article_id})
        shared = sample_step(tenant.id, asked, replicate=1)
        for step in (own, shared):
            await samples.put(scope, step, NAMED, None)
        of_article = await samples.of_article(scope, plans[0].article_id)
        of_campaign = await samples.of_campaign(scope, campaign_id)
        assert await articles.any_plan(scope, campaign_id) == plans[0]
    assert [sample.replicate for sample in of_article] == [0]
    assert [sample.replicate for sample in of_campaign] == [0, 1]


async def test_samples_stand_in_their_months_partition_and_others_in_the_default(
    database: Database, tenant: TenantRow
) -> None:
    asked = manifest()
    now = datetime.now(UTC)
    where = text("SELECT tableoid::regclass::text FROM samples WHERE manifest_id = :manifest ORDER BY window_start")
    async with database.tenant(tenant.id) as scope:
        await manifests.put(scope, asked)
        for window_start in (now, now + timedelta(days=4000)):
            await samples.put(scope, sample_step(tenant.id, asked, window_start=window_start), NAMED, None)
        partitions = (await scope.sql.execute(where, {"manifest": asked.id})).scalars()
        direct = text(f"SELECT count(*) FROM {partitions[0]} WHERE tenant_id <> :tenant")
        assert (await scope.sql.execute(direct, {"tenant": tenant.id})).scalar_one() == 0
    assert partitions == [f"samples_{now:%Y_%m}", "samples_default"]


async def test_partitions_are_made_ahead_and_protected(database: Database) -> None:
    async with database.operator() as op:
        await samples.prepare_months(op, 5)
        assert await samples.prepare_months(op, 5) == 0
        assert await samples.prepare_months(op, 6) == 1
        naked = text(
            "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid "
            "WHERE i.inhparent = 'samples'::regclass AND NOT (c.relrowsecurity AND c.relforcerowsecurity)"
        )
        assert (await op.sql.execute(naked)).scalars() == []
