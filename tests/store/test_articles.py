from datetime import timedelta

import pytest

from citeloop.models.money import Money
from citeloop.models.plan import Stage, State
from citeloop.models.work import Measurement, Progress
from citeloop.store.database import Database
from citeloop.store.errors import NotFound
from citeloop.store.repositories import (
    articles,
    brands,
    campaigns,
    drafts,
    sweeping,
    tenants,
)
from citeloop.store.repositories.articles import NewArticle
from citeloop.store.repositories.tenants import TenantRow
from tests.store.material import brand, draft, one_article, one_campaign, step


async def test_an_article_submitted_twice_is_there_once_and_keeps_its_first_plan(
    database: Database, tenant: TenantRow
) -> None:
    async with database.tenant(tenant.id) as scope:
        plan = await one_article(scope)
    async with database.tenant(tenant.id) as scope:
        again = await articles.submit(scope, [NewArticle(plan=plan.model_copy(update={"locale": "de"}), position=7)])
        kept = await articles.plan(scope, plan.article_id)
    assert again == ()
    assert kept == plan
    assert kept.digest == plan.digest


async def test_ten_thousand_keywords_are_submitted_in_seconds(database: Database, tenant: TenantRow) -> None:
    async with database.tenant(tenant.id) as scope:
        campaign_id, plans = await one_campaign(scope, 10_000)
    async with database.tenant(tenant.id) as scope:
        view = await campaigns.get(scope, campaign_id)
        startable = await articles.startable(scope, campaign_id, 3)
    assert view is not None
    assert view.total == len(plans)
    assert view.counts == {State.SUBMITTED: 10_000}
    assert [plan.keyword for plan in startable] == ["k000", "k002", "k004"]


async def test_a_missing_article_is_named_in_the_error(database: Database, tenant: TenantRow) -> None:
    async with database.tenant(tenant.id) as scope:
        with pytest.raises(NotFound, match="no article 01MISSING"):
            await articles.plan(scope, "01MISSING")


async def test_brand_content_decides_the_revision(database: Database, tenant: TenantRow) -> None:
    async with database.tenant(tenant.id) as scope:
        first, same, other = [await brands.put(scope, each) for each in (brand(), brand(), brand("Zilliz"))]
        assert await brands.get(scope, other) == brand("Zilliz")
        page = await brands.list_(scope, after=None, limit=10)
    assert first == same
    assert first != other
    assert {stored.id for stored in page} == {first, other}


async def test_the_nearest_hold_is_found(database: Database, tenant: TenantRow) -> None:
    async with database.tenant(tenant.id) as scope:
        campaign_id, plans = await one_campaign(scope, 1)
        article_id = plans[0].article_id
        assert await articles.find_hold(scope, article_id) is None
        await tenants.hold(scope, "unpaid")
        by_tenant = await articles.find_hold(scope, article_id)
        await campaigns.hold(scope, campaign_id, "later")
        by_campaign = await articles.find_hold(scope, article_id)
        await articles.hold(scope, article_id, "wait")
        by_article = await articles.find_hold(scope, article_id)
        startable = await articles.startable(scope, campaign_id, 10)
    assert by_tenant is not None
    assert (by_tenant.by, by_tenant.reason) == ("tenant", "unpaid")
    assert by_campaign is not None
    assert (by_campaign.by, by_campaign.reason) == ("campaign", "later")
    assert by_article is not None
    assert (by_article.by, by_article.reason) == ("article", "wait")
    assert startable == []


async def test_only_a_change_of_stage_state_or_reason_is_an_event(database: Database, tenant: TenantRow) -> None:
    async with database.tenant(tenant.id) as scope:
        plan = await one_article(scope)
        await articles.enter(scope, step(plan), channel="deepseek", attempt=1)
        await articles.enter(scope, step(plan), channel="deepseek", attempt=2)
        running = Progress(stage=Stage.GENERATE, state=State.RUNNING)
        await articles.note(scope, plan.article_id, running)
        await articles.note(scope, plan.article_id, running.model_copy(update={"done": (Stage.GENERATE,)}))
        parked = Progress(stage=Stage.REVIEW, state=State.PARKED, reason="nobody decided")
        await articles.note(scope, plan.article_id, parked)
        happened = await articles.events(scope, plan.article_id)
        later = await articles.events(scope, plan.article_id, after=happened[0].seq)
        view = await articles.find(scope, plan.article_id)
        saved = await articles.saved_progress(scope, plan.article_id)
    assert [(event.kind, event.stage, event.state) for event in happened] == [
        ("enter", "generate", "running"),
        ("note", "review", "parked"),
    ]
    assert later == happened[1:]
    assert view is not None
    assert (view.attempts, view.state, view.reason) == (2, State.PARKED, "nobody decided")
    assert view.channel == "deepseek"
    assert saved == parked


async def test_an_ended_article_is_not_moved_by_a_late_stage_until_it_is_reopened(
    database: Database, tenant: TenantRow
) -> None:
    async with database.tenant(tenant.id) as scope:
        plan = await one_article(scope)
        await articles.note(scope, plan.article_id, Progress(state=State.CANCELLED, reason="no"))
        await articles.enter(scope, step(plan), channel="deepseek", attempt=1)
        late = await articles.find(scope, plan.article_id)
        await articles.reopen(scope, plan.article_id)
        await articles.enter(scope, step(plan), channel="deepseek", attempt=1)
        again = await articles.find(scope, plan.article_id)
    assert late is not None
    assert late.state is State.CANCELLED
    assert late.ended_at is not None
    assert again is not None
    assert again.state is State.RUNNING
    assert again.ended_at is None


async def test_the_census_counts_what_waits_works_and_is_open(database: Database, tenant: TenantRow) -> None:
    async with database.tenant(tenant.id) as scope:
        campaign_id, plans = await one_campaign(scope, 5)
        for plan, state in zip(plans[:3], (State.RUNNING, State.REVIEW, State.MEASURED), strict=True):
            await articles.started(scope, plan.article_id, "run")
            await articles.note(scope, plan.article_id, Progress(state=state))
        census = await articles.census(scope, campaign_id)
        open_ids = await articles.open_ids(scope, campaign_id, after=None, limit=10)
        cancelled = await articles.cancel_unstarted(scope, campaign_id, "enough")
        after = await articles.census(scope, campaign_id)
    assert (census.waiting, census.active, census.open) == (2, 1, 2)
    assert open_ids == sorted(plan.article_id for plan in plans[:2])
    assert cancelled == 2
    assert after.waiting == 0


async def test_priority_orders_what_is_not_started(database: Database, tenant: TenantRow) -> None:
    async with database.tenant(tenant.id) as scope:
        campaign_id, plans = await one_campaign(scope, 4)
        await articles.started(scope, plans[0].article_id, "run")
        await campaigns.prioritise(scope, campaign_id, 4)
        await articles.prioritise(scope, plans[3].article_id, 1)
        order = await articles.startable(scope, campaign_id, 10)
        running = await articles.plan(scope, plans[0].article_id)
    assert [(plan.keyword, plan.priority) for plan in order] == [("k003", 1), ("k001", 4), ("k002", 4)]
    assert running.priority == plans[0].priority


@pytest.mark.parametrize("of_campaign", [True, False])
async def test_paging_shows_every_article_once(database: Database, tenant: TenantRow, of_campaign: bool) -> None:
    async with database.tenant(tenant.id) as scope:
        campaign_id, plans = await one_campaign(scope, 23)
    seen: list[str] = []
    async with database.tenant(tenant.id) as scope:
        chosen = campaign_id if of_campaign else None
        while page := await articles.list_(scope, campaign_id=chosen, after=seen[-1] if seen else None, limit=5):
            seen += [view.id for view in page]
    expected = [plan.article_id for plan in plans]
    assert sorted(seen) == sorted(expected)
    if of_campaign:
        assert seen == expected


async def test_campaign_pages_are_complete_and_newest_first(database: Database, tenant: TenantRow) -> None:
    made: list[str] = []
    for n in range(7):
        async with database.tenant(tenant.id) as scope:
            made.append((await one_campaign(scope, 1, name=f"c{n}"))[0])
    seen: list[str] = []
    async with database.tenant(tenant.id) as scope:
        while page := await campaigns.list_(scope, after=seen[-1] if seen else None, limit=3):
            seen += [view.id for view in page]
    assert seen == made[::-1]


async def test_filters_keep_state_and_stage(database: Database, tenant: TenantRow) -> None:
    async with database.tenant(tenant.id) as scope:
        campaign_id, plans = await one_campaign(scope, 3)
        await articles.note(scope, plans[1].article_id, Progress(state=State.PARKED, stage=Stage.PUBLISH))
        parked = await articles.list_(scope, campaign_id=campaign_id, state=State.PARKED)
        publishing = await articles.list_(scope, stage=Stage.PUBLISH)
        neither = await articles.list_(scope, state=State.PARKED, stage=Stage.REVIEW)
    assert [view.id for view in parked] == [view.id for view in publishing] == [plans[1].article_id]
    assert neither == []


async def test_people_name_articles_by_id_beginning_or_keyword(database: Database, tenant: TenantRow) -> None:
    async with database.tenant(tenant.id) as scope:
        one = await one_article(scope, "向量数据库怎么选型")
        _, plans = await one_campaign(scope, 1)
        _, others = await one_campaign(scope, 1)
        for name in (one.article_id, one.article_id.lower(), one.article_id[:12], one.keyword):
            assert await articles.resolve(scope, name) == one.article_id
        with pytest.raises(NotFound, match="'k000' means several articles") as several:
            await articles.find(scope, "k000")
        assert await articles.find(scope, "nothing like it") is None
    assert plans[0].article_id in str(several.value)
    assert others[0].article_id in str(several.value)


async def test_the_view_tells_who_wrote_it_and_what_was_measured(database: Database, tenant: TenantRow) -> None:
    async with database.tenant(tenant.id) as scope:
        plan = await one_article(scope)
        await drafts.add(scope, plan.article_id, draft("first", stage=Stage.GENERATE), "first")
        await drafts.add(scope, plan.article_id, draft("second", channel="doubao"), "second")
        await articles.measured(scope, plan.article_id, Measurement(after_ok=4, after_named=3))
        await articles.note(scope, plan.article_id, Progress(state=State.MEASURED, done=tuple(Stage)))
        view = await articles.find(scope, plan.article_id)
    assert view is not None
    assert view.writer == "doubao"
    assert view.measurement == Measurement(after_ok=4, after_named=3)
    assert view.done == tuple(Stage)
    assert view.ended_at is not None
    assert view.cost == Money()


async def test_a_campaign_id_is_taken_once_and_its_windows_close_once(database: Database, tenant: TenantRow) -> None:
    async with database.tenant(tenant.id) as scope:
        campaign_id, _ = await one_campaign(scope, 1)
        view = await campaigns.get(scope, campaign_id)
        assert view is not None
        assert view.state == "submitted"
        assert await campaigns.baseline_ready(scope, campaign_id) is False
        await campaigns.close_window(scope, campaign_id, "after-1")
        assert await campaigns.baseline_ready(scope, campaign_id) is False
        await campaigns.close_window(scope, campaign_id, "baseline")
        closed = await campaigns.get(scope, campaign_id)
    async with database.tenant(tenant.id) as scope:
        await campaigns.close_window(scope, campaign_id, "baseline")
        again = await campaigns.get(scope, campaign_id)
        assert await campaigns.baseline_ready(scope, campaign_id)
        windows = await campaigns.closed_windows(scope, campaign_id)
        taken = await campaigns.create(
            scope,
            campaigns.NewCampaign(
                **view.model_dump(include={"id", "name", "brand_id", "manifest_id", "fingerprint"}),
                request=view.request,
            ),
        )
    assert closed is not None
    assert again is not None
    assert closed.baseline_at == again.baseline_at
    assert set(windows) == {"after-1", "baseline"}
    assert taken is False


async def test_the_sweeper_finds_what_was_never_started(database: Database, tenant: TenantRow) -> None:
    async with database.tenant(tenant.id) as scope:
        lost = await one_article(scope, "lost")
        held = await one_article(scope, "held")
        running = await one_article(scope, "running")
        await articles.hold(scope, held.article_id, "wait")
        await articles.started(scope, running.article_id, "run")
        campaign_id, _ = await one_campaign(scope, 2)
        noted_id, _ = await one_campaign(scope, 1)
        await campaigns.note(scope, noted_id, "running")
    async with database.operator() as op:
        lone = [row for row in await sweeping.unstarted(op, timedelta(0), 10_000) if row[0] == tenant.id]
        waiting = [row for row in await sweeping.unstarted_campaigns(op, timedelta(0), 10_000) if row[0] == tenant.id]
        young = await sweeping.unstarted(op, timedelta(hours=1))
    assert lone == [(tenant.id, lost.article_id)]
    assert waiting == [(tenant.id, campaign_id)]
    assert young == []


async def test_a_stage_that_begins_tells_which_stages_are_over(database: Database, tenant: TenantRow) -> None:
    """Long before the workflow's first note; a note that comes later knows more."""
    async with database.tenant(tenant.id) as scope:
        plan = await one_article(scope)
        rewriting = step(plan).model_copy(update={"stage": Stage.REWRITE, "done": (Stage.GENERATE,)})
        await articles.enter(scope, rewriting, channel="deepseek", attempt=1)
        entered = await articles.find(scope, plan.article_id)
        done = (Stage.GENERATE, Stage.REWRITE)
        await articles.note(scope, plan.article_id, Progress(state=State.REVIEW, stage=Stage.REVIEW, done=done))
        noted = await articles.find(scope, plan.article_id)
    assert entered is not None
    assert noted is not None
    assert (entered.done, noted.done) == ((Stage.GENERATE,), done)


async def test_a_scheduled_article_is_outside_the_window_and_not_produced(
    database: Database, tenant: TenantRow
) -> None:
    async with database.tenant(tenant.id) as scope:
        campaign_id, (plan, *_) = await one_campaign(scope, 2)
        await articles.started(scope, plan.article_id, "run")
        await articles.note(scope, plan.article_id, Progress(state=State.SCHEDULED, stage=Stage.PUBLISH))
        counted = await articles.census(scope, campaign_id)
    assert (counted.active, counted.scheduled, counted.open) == (0, 1, 1)
