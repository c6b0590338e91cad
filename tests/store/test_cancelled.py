"""Articles and campaigns that were cancelled: what still reaches them, and what does not."""

from citeloop.models.plan import Stage, State
from citeloop.models.work import Progress
from citeloop.store.database import Database
from citeloop.store.repositories import articles, campaigns
from citeloop.store.repositories.tenants import TenantRow
from tests.store.material import one_article, one_campaign


async def test_a_cancelled_article_takes_no_late_note_until_it_is_reopened(
    database: Database, tenant: TenantRow
) -> None:
    running = Progress(stage=Stage.REWRITE, state=State.RUNNING)
    async with database.tenant(tenant.id) as scope:
        plan = await one_article(scope)
        assert await articles.note(scope, plan.article_id, Progress(state=State.CANCELLED, reason="no")) is None
        assert await articles.note(scope, plan.article_id, running) == "no"
        late = await articles.find(scope, plan.article_id)
        happened = await articles.events(scope, plan.article_id)
        await articles.reopen(scope, plan.article_id)
        assert await articles.note(scope, plan.article_id, running) is None
        again = await articles.find(scope, plan.article_id)
    assert late is not None
    assert (late.state, late.reason, late.ended_at is not None) == (State.CANCELLED, "no", True)
    assert [event.state for event in happened] == ["cancelled"]
    assert again is not None
    assert (again.state, again.stage, again.ended_at) == (State.RUNNING, Stage.REWRITE, None)


async def test_a_run_may_still_tell_how_a_cancelled_article_ended(database: Database, tenant: TenantRow) -> None:
    progress = Progress(state=State.CANCELLED, reason="enough", done=(Stage.GENERATE,))
    async with database.tenant(tenant.id) as scope:
        campaign_id, (plan,) = await one_campaign(scope, 1)
        await articles.cancel_unstarted(scope, campaign_id, "enough")
        assert await articles.note(scope, plan.article_id, progress) is None
        assert await articles.saved_progress(scope, plan.article_id) == progress


async def test_whoever_starts_what_was_cancelled_meanwhile_is_told_why(database: Database, tenant: TenantRow) -> None:
    async with database.tenant(tenant.id) as scope:
        campaign_id, (first, second) = await one_campaign(scope, 2)
        assert await articles.started(scope, first.article_id, "run") is None
        await articles.cancel_unstarted(scope, campaign_id, "enough")
        told = [await articles.started(scope, plan.article_id, "run") for plan in (first, second)]
        await articles.reopen(scope, second.article_id)
        assert await articles.started(scope, second.article_id, "another run") is None
    assert told == [None, "enough"]


async def test_an_article_without_a_run_ends_where_it_stands_and_one_that_has_ended_stays(
    database: Database, tenant: TenantRow
) -> None:
    standing = Progress(stage=Stage.REVIEW, state=State.REVIEW, done=(Stage.GENERATE,), retries=1)
    async with database.tenant(tenant.id) as scope:
        plan = await one_article(scope)
        await articles.note(scope, plan.article_id, standing)
        assert await articles.cancel_lost(scope, plan.article_id, "its run was gone")
        assert not await articles.cancel_lost(scope, plan.article_id, "again")
        lost = await articles.find(scope, plan.article_id)
        kept = await articles.saved_progress(scope, plan.article_id)
    assert lost is not None
    assert (lost.state, lost.stage, lost.reason) == (State.CANCELLED, Stage.REVIEW, "its run was gone")
    assert kept == standing


async def test_a_late_resume_does_not_let_a_cancelled_campaign_go(database: Database, tenant: TenantRow) -> None:
    async with database.tenant(tenant.id) as scope:
        campaign_id, _ = await one_campaign(scope, 1)
        for state, held in (("paused", False), ("cancelled", True)):
            await campaigns.hold(scope, campaign_id, "wait")
            await campaigns.note(scope, campaign_id, state)
            await campaigns.hold(scope, campaign_id, None)
            assert (await campaigns.find_hold(scope, campaign_id) is not None) is held


async def test_a_cancelled_campaigns_hold_is_handed_down_to_what_is_still_open(
    database: Database, tenant: TenantRow
) -> None:
    async with database.tenant(tenant.id) as scope:
        campaign_id, (ended, still_open) = await one_campaign(scope, 2)
        await articles.note(scope, ended.article_id, Progress(state=State.CANCELLED, reason="enough"))
        await campaigns.hold(scope, campaign_id, "enough")
        await campaigns.hand_hold_down(scope, campaign_id)
        merely_held = await articles.find_hold(scope, ended.article_id)
        await campaigns.note(scope, campaign_id, "cancelled")
        await campaigns.hand_hold_down(scope, campaign_id)
        freed, held = [await articles.find_hold(scope, plan.article_id) for plan in (ended, still_open)]
    assert merely_held is not None
    assert freed is None
    assert held is not None
    assert (held.by, held.reason) == ("article", "enough")


async def test_the_articles_of_a_cancelled_campaign_wait_for_no_baseline(database: Database, tenant: TenantRow) -> None:
    async with database.tenant(tenant.id) as scope:
        campaign_id, _ = await one_campaign(scope, 1)
        before = await campaigns.baseline_ready(scope, campaign_id)
        await campaigns.note(scope, campaign_id, "cancelled")
        assert (before, await campaigns.baseline_ready(scope, campaign_id)) == (False, True)
