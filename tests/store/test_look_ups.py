"""What is read for every article or every few seconds says what it always said, and reads no more than it must."""

from collections.abc import Mapping

import asyncpg
import pytest

from citeloop.models import ids
from citeloop.models.plan import Plan, Stage, State
from citeloop.store.database import Database, Scope
from citeloop.store.errors import NotFound
from citeloop.store.repositories import article_views, articles, brands, drafts, manifests, samples, tenants
from citeloop.store.repositories.articles import NewArticle
from citeloop.store.repositories.tenants import TenantRow
from citeloop.store.statements import Statement, text
from starter.embedded.postgres import EmbeddedPostgres
from tests.store.material import brand, draft, one_article, one_campaign, plan

CENSUS = text("""
SELECT count(*) FILTER (WHERE started_at IS NULL) AS waiting,
       count(*) FILTER (WHERE started_at IS NOT NULL AND state IN ('submitted', 'running', 'paused')) AS active,
       count(*) FILTER (WHERE started_at IS NOT NULL) AS open,
       count(*) FILTER (WHERE started_at IS NOT NULL AND state = 'review') AS review,
       count(*) FILTER (WHERE state = 'scheduled') AS scheduled
FROM articles WHERE tenant_id = :tenant AND campaign_id = :campaign AND ended_at IS NULL
""")
"""Said plainly."""
NEIGHBOURS = text("""
SELECT d.id FROM articles mine
JOIN articles other ON other.tenant_id = mine.tenant_id AND other.id <> mine.id
 AND other.campaign_id IS NOT DISTINCT FROM mine.campaign_id AND other.brand_id = mine.brand_id
JOIN LATERAL (
  SELECT id, created_at FROM drafts
  WHERE tenant_id = other.tenant_id AND article_id = other.id AND stage = 'rewrite'
  ORDER BY created_at DESC, id DESC LIMIT 1) d ON true
WHERE mine.tenant_id = :tenant AND mine.id = :article
ORDER BY d.created_at DESC LIMIT :limit
""")
"""Said plainly."""
STAND = text("""
UPDATE articles SET state = :state, started_at = CASE WHEN :started THEN now() END,
  ended_at = CASE WHEN :ended THEN now() END WHERE tenant_id = :tenant AND id = :id
""")
MANY_ARTICLES = text("""
INSERT INTO articles (tenant_id, id, campaign_id, brand_id, manifest_id, keyword, locale, kind, priority, position,
                      plan, state, stage, started_at, ended_at)
SELECT tenant_id, 'many' || n, campaign_id, brand_id, manifest_id, 'many' || n, locale, kind, priority, n, plan,
       CASE WHEN n % 100 = 0 THEN 'running' ELSE 'measured' END, stage, now(), CASE WHEN n % 100 <> 0 THEN now() END
FROM articles, generate_series(1, 4000) n WHERE tenant_id = :tenant AND id = :id
""")
MANY_DRAFTS = text("""
INSERT INTO drafts (tenant_id, id, article_id, digest, stage, round, channel, title, chars, body, created_at)
SELECT tenant_id, stage || id, id, '', stage, 0, '', '', 0, '', now() + position * interval '1 s'
FROM (SELECT tenant_id, id, position, unnest(ARRAY['generate', 'rewrite']) AS stage FROM articles
      WHERE tenant_id = :tenant AND id LIKE 'many%') a
""")


async def test_the_census_says_what_a_plain_count_says(database: Database, tenant: TenantRow) -> None:
    cases = [(state, started, ended) for state in State for started in (False, True) for ended in (False, True)]
    async with database.tenant(tenant.id) as scope:
        campaign_id, plans = await one_campaign(scope, 2 * len(cases))
        other_id, _ = await one_campaign(scope, 3, name="other")
        await one_article(scope)
        for n, (state, started, ended) in enumerate(cases * 2):
            values = {"id": plans[n].article_id, "state": str(state), "started": started, "ended": ended}
            await scope.sql.execute(STAND, {"tenant": scope.tenant_id, **values})
        for asked in (campaign_id, other_id, "none"):
            plainly = (await scope.sql.execute(CENSUS, {"tenant": scope.tenant_id, "campaign": asked})).one()
            assert (await articles.census(scope, asked)).model_dump() == plainly._asdict()
        census = await articles.census(scope, campaign_id)
    assert census == article_views.Census(waiting=2 * len(State), active=6, open=2 * len(State), review=2, scheduled=4)


async def test_the_neighbours_are_those_that_a_plain_join_finds(database: Database, tenant: TenantRow) -> None:
    async with database.operator() as op:
        stranger = await tenants.ensure(op, f"tenant {ids.new_id()}")
    async with database.tenant(stranger.id) as scope:
        await written(scope, await one_article(scope))
    async with database.tenant(tenant.id) as scope:
        _, campaign = await one_campaign(scope, 12)
        _, other = await one_campaign(scope, 3, name="other")
        lone = [await one_article(scope, f"lone {n}") for n in range(4)]
        revised = await brands.put(scope, brand("Zilliz"))
        changed = [plan(scope.tenant_id, revised, keyword=f"changed {n}") for n in range(2)]
        await articles.submit(scope, [NewArticle(plan=each, position=0) for each in changed])
    for n, each in enumerate((*campaign[2:], *other, *lone, *changed, *campaign[5:9], campaign[5])):
        async with database.tenant(tenant.id) as scope:
            await written(scope, each, round_=n)
    async with database.tenant(tenant.id) as scope:
        await drafts.add(scope, campaign[7].article_id, draft("raw", stage=Stage.GENERATE), "raw")
        await drafts.add(scope, campaign[1].article_id, draft("unwritten", stage=Stage.GENERATE), "unwritten")
        counted = []
        for mine in (campaign[0], campaign[5], campaign[11], other[0], lone[1], changed[0]):
            for limit in (2000, 3, 1):
                values = {"tenant": scope.tenant_id, "article": mine.article_id, "limit": limit}
                plainly = [row.id for row in await scope.sql.execute(NEIGHBOURS, values)]
                assert list(await drafts.sketches_of_others(scope, mine.article_id, limit)) == plainly
                counted.append(len(plainly))
        assert await drafts.sketches_of_others(scope, "none") == {}
    assert counted == [10, 3, 1, 9, 3, 1, 9, 3, 1, 2, 2, 1, 3, 3, 1, 1, 1, 1]


async def test_two_rewrites_of_one_instant_count_once(database: Database, tenant: TenantRow) -> None:
    async with database.tenant(tenant.id) as scope:
        mine, other = await one_article(scope, "mine"), await one_article(scope, "other")
        made = {await written(scope, other) for _ in range(3)}
        # Only the owner may change a draft: the three are made anew, at one instant.
        again = text(
            "INSERT INTO drafts (tenant_id, id, article_id, digest, stage, round, channel, title, chars, body, "
            "created_at) SELECT tenant_id, 'again' || id, article_id, digest, stage, round, channel, title, chars, "
            "body, now() + interval '1 hour' FROM drafts WHERE tenant_id = :tenant"
        )
        await scope.sql.execute(again, {"tenant": scope.tenant_id})
        found = await drafts.sketches_of_others(scope, mine.article_id)
    assert list(found) == [f"again{max(made)}"]


async def test_census_and_neighbours_are_read_by_their_indexes(
    postgres: EmbeddedPostgres, database: Database, tenant: TenantRow
) -> None:
    async with database.tenant(tenant.id) as scope:
        campaign_id, (first,) = await one_campaign(scope, 1)
        await scope.sql.execute(MANY_ARTICLES, {"tenant": scope.tenant_id, "id": first.article_id})
        await scope.sql.execute(MANY_DRAFTS, {"tenant": scope.tenant_id})
    owner = await asyncpg.connect(postgres.url("owner"))
    try:
        await owner.execute("ANALYZE articles, drafts")
    finally:
        await owner.close()
    async with database.tenant(tenant.id) as scope:
        census = await explained(scope, article_views._CENSUS, {"campaign": campaign_id})
        neighbours = await explained(scope, drafts._OTHERS, {"article": first.article_id, "limit": 50})
        found = await drafts.sketches_of_others(scope, first.article_id, 50)
    assert "articles_open" in census
    assert "articles_to_admit" in census
    assert "Seq Scan" not in census
    assert "Backward using rewrites_newest" in neighbours
    assert "Seq Scan" not in neighbours
    assert "Sort" not in neighbours
    assert list(found) == [f"rewritemany{n}" for n in range(4000, 3950, -1)]


async def test_a_page_of_questions_is_a_part_of_them_in_their_order(database: Database, tenant: TenantRow) -> None:
    async with database.tenant(tenant.id) as scope:
        campaign_id, (first, *_) = await one_campaign(scope, 2)
        asked = tuple(prompt.id for prompt in (await manifests.get(scope, first.manifest_id)).prompts)
        pages = [await manifests.page(scope, campaign_id, controls=False, first=n, limit=1) for n in range(3)]
        controls = await manifests.page(scope, campaign_id, controls=True, first=0, limit=9)
        with pytest.raises(NotFound, match="nowhere"):
            await manifests.page(scope, "nowhere", controls=False, first=0, limit=1)
    assert pages == [(first.manifest_id, page) for page in (asked[:1], asked[1:], ())]
    assert controls == (first.manifest_id, ())


async def test_a_keywords_question_is_found_by_its_index(
    postgres: EmbeddedPostgres, database: Database, tenant: TenantRow
) -> None:
    async with database.tenant(tenant.id) as scope:
        _, (first,) = await one_campaign(scope, 1)
        many = text(
            "INSERT INTO prompts (tenant_id, manifest_id, id, position, text, locale, keyword, branded) "
            "SELECT :tenant, :manifest, 'many' || n, 100 + n, '', 'en', 'keyword ' || n, false "
            "FROM generate_series(1, 4000) n"
        )
        await scope.sql.execute(many, {"tenant": scope.tenant_id, "manifest": first.manifest_id})
    owner = await asyncpg.connect(postgres.url("owner"))
    try:
        await owner.execute("ANALYZE prompts")
    finally:
        await owner.close()
    async with database.tenant(tenant.id) as scope:
        read = await explained(scope, samples._OF_KEYWORD, {"manifest": first.manifest_id, "asked": "keyword 7"})
    assert "prompts_by_keyword" in read


async def written(scope: Scope, of: Plan, *, round_: int = 0) -> str:
    made = draft(ids.new_id(), round_=round_)
    await drafts.add(scope, of.article_id, made, "body", sketch=(round_,))
    return made.id


async def explained(scope: Scope, statement: Statement, values: Mapping[str, object]) -> str:
    """The plan that Postgres makes for these very values."""
    asked = text("SELECT 1")
    asked.sql, asked.names = f"EXPLAIN {statement.sql}", statement.names
    return "\n".join((await scope.sql.execute(asked, {"tenant": scope.tenant_id, **values})).scalars())
