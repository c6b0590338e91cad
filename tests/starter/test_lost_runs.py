"""Articles whose run was terminated in the Temporal UI, or ended by the server, and those whose faults are spent."""

import pytest

from citeloop.models import ids
from citeloop.models.plan import Stage, State
from citeloop.models.work import Progress
from citeloop.store.repositories import articles
from starter.commands import PATIENCE
from starter.errors import Conflict
from starter.launching import Launcher
from starter.telling import Teller
from tests.installation import Installation


async def terminated(installation: Installation, keyword: str) -> str:
    """An article that waits for its review, in the store alone."""
    article_id = await installation.submit(keyword)
    await installation.until(article_id, State.REVIEW)
    await installation.workflow(article_id).terminate()
    return article_id


async def test_an_article_whose_run_is_gone_is_cancelled_where_it_stands(installation: Installation) -> None:
    article_id = await terminated(installation, "terminated and cancelled")
    effect = await installation.commands.cancel(article_id, "enough")
    assert (effect.answered, effect.state, effect.message) == (True, State.CANCELLED, "cancelled; its run was gone")
    article = await installation.article(article_id)
    assert (article.state, article.reason, article.stage) == (State.CANCELLED, "enough", Stage.REVIEW)
    with pytest.raises(Conflict, match="has ended: cancelled"):
        await installation.commands.cancel(article_id, "again")


async def test_an_article_whose_run_is_gone_is_retried_from_what_is_kept(installation: Installation) -> None:
    article_id = await terminated(installation, "terminated and retried")
    before = await installation.article(article_id)
    effect = await installation.commands.retry(article_id)
    assert (effect.answered, effect.message.startswith("its run was gone; begun anew: ")) == (True, True)
    again = await installation.until(article_id, State.REVIEW)
    assert (again.attempts, again.done, again.ended_at) == (before.attempts, before.done, None)
    with pytest.raises(Conflict, match="is review; only a parked, failed or cancelled one is retried"):
        await installation.commands.retry(article_id)
    await installation.commands.cancel(article_id, "enough")


async def test_a_failed_article_is_retried_with_a_fresh_count_of_faults(installation: Installation) -> None:
    article_id = await terminated(installation, "failed and retried")
    async with installation.database.tenant(installation.tenant.id) as scope:
        saved = await articles.saved_progress(scope, article_id)
        assert saved is not None
        await articles.note(scope, article_id, saved.model_copy(update={"state": State.FAILED, "retries": 1}))
    await installation.commands.retry(article_id)
    await installation.until(article_id, State.REVIEW)
    assert (await installation.workflow(article_id).query("progress", result_type=Progress)).retries == 2
    await installation.commands.cancel(article_id, "enough")
    await installation.until(article_id, State.CANCELLED)
    await installation.commands.retry(article_id)
    assert (await installation.workflow(article_id).query("progress", result_type=Progress)).retries == 2
    await installation.commands.cancel(article_id, "enough")


async def test_what_a_door_starts_as_it_is_being_cancelled_hears_it(installation: Installation) -> None:
    """The start is found to have come too late only when it is recorded."""
    article_id = await terminated(installation, "cancelled and begun at once")
    async with installation.database.tenant(installation.tenant.id) as scope:
        plan = await articles.plan(scope, article_id)
        assert await articles.cancel_lost(scope, article_id, "too late")
    teller = Teller(installation.client, plan.tenant_id, PATIENCE)
    await Launcher(installation.client, installation.database, plan.tenant_id, teller)._run(plan, again=True)
    ended = await installation.client.get_workflow_handle(ids.workflow_id(plan.tenant_id, article_id)).result()
    assert (ended["state"], ended["reason"]) == ("cancelled", "too late")
