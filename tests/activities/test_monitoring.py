import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities.failures import CHANNEL_GONE
from activities.monitoring import purchase_id
from citeloop.channels.ports import Call, Post
from citeloop.models import ids
from citeloop.models.measure import Reading
from citeloop.models.plan import Plan
from citeloop.models.work import Held, Sampled, SampleStatus, SampleStep, Waiting
from citeloop.store.repositories import campaigns, purchases, samples
from tests.activities.workshop import QUICK, Workshop

WINDOW = datetime(2026, 11, 1, tzinfo=UTC)


def question(workshop: Workshop, plan: Plan, **changes: Any) -> SampleStep:
    step = SampleStep(
        tenant_id=plan.tenant_id,
        campaign_id=plan.campaign_id,
        article_id=plan.article_id,
        manifest_id=plan.manifest_id,
        prompt_id=ids.prompt_id(plan.keyword, plan.locale),
        engine=workshop.name("perplexity"),
        window="baseline",
        window_start=WINDOW,
    )
    return step.model_copy(update=changes)


async def ask(workshop: Workshop, step: SampleStep) -> Sampled:
    sampled: Sampled | Held | Waiting = await workshop.run(workshop.monitoring().sample, step)
    assert isinstance(sampled, Sampled)
    return sampled


async def kept(workshop: Workshop, step: SampleStep) -> Reading | None:
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        return await samples.find(scope, step)


async def test_an_answer_is_kept_with_its_evidence_and_never_asked_twice(workshop: Workshop) -> None:
    step = question(workshop, await workshop.article())
    first = await ask(workshop, step)
    assert (first.status, first.named) == (SampleStatus.OK, False)
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        answer = await samples.find_answer(scope, step)
        purchase = await purchases.get(scope, purchase_id(step))
    assert answer is not None
    assert answer.searched
    assert answer.raw
    assert purchase is not None
    assert await ask(workshop, step) == first
    assert await workshop.calls("perplexity") == 1


async def test_an_article_and_its_campaign_share_one_answer(workshop: Workshop) -> None:
    campaign_id, plans = await workshop.campaign(("vector database", 3))
    step = question(workshop, plans["vector database"])
    first = await ask(workshop, step)
    assert await ask(workshop, step.model_copy(update={"article_id": None})) == first
    assert step.campaign_id == campaign_id
    assert await workshop.calls("perplexity") == 1


async def test_another_window_replicate_or_engine_is_another_answer(workshop: Workshop) -> None:
    step = question(workshop, await workshop.article())
    await ask(workshop, step)
    await ask(workshop, step.model_copy(update={"replicate": 1}))
    await ask(workshop, step.model_copy(update={"window": "after", "window_start": WINDOW + timedelta(days=1)}))
    ledger = await workshop.sandbox.ledger()
    assert (ledger["totals"]["calls"], ledger["totals"]["bought_twice"]) == (3, 0)


async def test_an_engine_that_did_not_name_us_does_so_after_a_page_is_published(workshop: Workshop) -> None:
    plan = await workshop.article("walnut harvest ledgers")
    before = await ask(workshop, question(workshop, plan))
    post = Post(
        marker="m-1",
        slug="walnut-harvest-ledgers",
        title="Where to keep walnut harvest ledgers? Acmebase",
        html="<h2>What is Acmebase?</h2><p>Acmebase keeps walnut harvest ledgers. Acmebase runs offline.</p>",
    )
    await workshop.outside().publisher(workshop.name("blog")).publish(post, Call(purchase_id="p", policy=QUICK))
    after = await ask(workshop, question(workshop, plan, window="after", window_start=WINDOW + timedelta(days=1)))
    assert (before.named, before.cited) == (False, False)
    assert (after.named, after.cited) == (True, True)


async def test_an_answer_without_a_search_is_told_apart(workshop: Workshop) -> None:
    await workshop.sandbox.configure(perplexity={"not_searched": 1.0})
    step = question(workshop, await workshop.article())
    assert (await ask(workshop, step)).status is SampleStatus.SEARCH_NOT_TRIGGERED
    reading = await kept(workshop, step)
    assert reading is not None
    assert reading.status is SampleStatus.SEARCH_NOT_TRIGGERED


async def test_an_engine_that_fails_for_good_leaves_a_failed_sample_which_is_not_zero(workshop: Workshop) -> None:
    await workshop.sandbox.configure(perplexity={"http_500": 1.0})
    step = question(workshop, await workshop.article())
    with pytest.raises(ApplicationError) as raised:
        await ask(workshop, step)
    assert not raised.value.non_retryable
    assert await kept(workshop, step) is None
    assert (await ask(workshop, step)).status is SampleStatus.FAILED
    await workshop.sandbox.configure(perplexity={"http_500": 0.0})
    assert (await ask(workshop, step)).status is SampleStatus.FAILED
    assert await workshop.calls("perplexity") == 2


async def test_a_refused_question_is_kept_as_refused(workshop: Workshop) -> None:
    await workshop.sandbox.configure(perplexity={"refuse": ["vector"]})
    assert (await ask(workshop, question(workshop, await workshop.article()))).status is SampleStatus.REFUSED


async def test_a_limited_engine_is_waited_for(workshop: Workshop) -> None:
    await workshop.sandbox.configure(perplexity={"rate": 0.01, "burst": 1, "retry_after": 600})
    step = question(workshop, await workshop.article())
    await ask(workshop, step)
    limited = await workshop.run(workshop.monitoring().sample, step.model_copy(update={"replicate": 1}))
    assert isinstance(limited, Waiting)


async def test_a_missing_key_is_waited_for_and_pauses_the_engine(workshop: Workshop) -> None:
    del workshop.environ["SANDBOX_KEY"]
    with pytest.raises(ApplicationError) as raised:
        await ask(workshop, question(workshop, await workshop.article()))
    assert (raised.value.type, raised.value.category) == ("unauthorized", ApplicationErrorCategory.BENIGN)
    assert (await workshop.row("perplexity")).paused


async def test_a_vanished_engine_is_gone(workshop: Workshop) -> None:
    step = question(workshop, await workshop.article())
    await workshop.lose_channel("perplexity")
    with pytest.raises(ApplicationError) as raised:
        await ask(workshop, step)
    assert (raised.value.type, raised.value.non_retryable) == (CHANNEL_GONE, True)


async def test_a_held_campaign_asks_nothing(workshop: Workshop) -> None:
    campaign_id, plans = await workshop.campaign(("vector database", 3))
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        await campaigns.hold(scope, campaign_id, "budget")
    step = question(workshop, plans["vector database"], article_id=None)
    held = await workshop.run(workshop.monitoring().sample, step)
    assert held == Held(by="campaign", reason="budget")
    assert await workshop.calls("perplexity") == 0


async def test_two_workers_who_ask_at_once_keep_one_answer(workshop: Workshop) -> None:
    step = question(workshop, await workshop.article())
    told = await asyncio.gather(ask(workshop, step), ask(workshop, step))
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        taken = await samples.of_keyword(scope, step.manifest_id, step.prompt_id)
    assert len(taken) == 1
    assert told[0].status is told[1].status is SampleStatus.OK
