import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from activities.publishing import PublishingActivities
from citeloop.channels.ports import Call, Post
from citeloop.models.channel import Generator, SiteKind
from citeloop.models.work import Action, Held, PublicationState, Receipt, Step, Waiting
from citeloop.rules import rendering
from citeloop.store.repositories import articles, publications
from citeloop.store.repositories.publications import Publication
from tests.activities.workshop import QUICK, Workshop, environment
from tests.channels.servers import Peer, raw_server
from workflows import options

SETTLED = 4.2
"""Seconds: a little more than the sites' max_server_time."""


async def publish(workshop: Workshop, step: Step, hands: PublishingActivities | None = None) -> Receipt:
    receipt: Receipt | Held | Waiting = await workshop.run((hands or workshop.publishing()).publish, step)
    assert isinstance(receipt, Receipt)
    return receipt


async def reconcile(workshop: Workshop, step: Step) -> Receipt:
    receipt: Receipt = await workshop.run(workshop.publishing().reconcile, step)
    return receipt


async def row(workshop: Workshop, step: Step) -> Publication | None:
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        return await publications.get(scope, step.article_id, step.route)


async def set_row(workshop: Workshop, step: Step, to: PublicationState, **fields: Any) -> None:
    """As an earlier worker may have left it."""
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        kept = await publications.reserve(
            scope,
            article_id=step.article_id,
            site=step.route,
            kind="wordpress",
            marker=rendering.marker(step.article_id),
            digest="d",
        )
        await publications.advance(scope, kept.id, expected=set(PublicationState), to=to, **fields)


async def test_an_approved_text_is_reserved_looked_up_sent_once_and_confirmed(workshop: Workshop) -> None:
    plan = await workshop.article()
    receipt = await publish(workshop, await workshop.approved(plan))
    assert receipt.state is PublicationState.PUBLISHED
    assert receipt.reason.startswith("without JSON-LD: ")
    async with httpx.AsyncClient(trust_env=False) as http:
        page = (await http.get(receipt.url)).text
    assert "Acmebase stores vectors in files." in page
    assert rendering.marker(plan.article_id) in page
    assert await workshop.posts() == (1, 0)


async def test_published_once_it_is_never_sent_again(workshop: Workshop) -> None:
    step = await workshop.approved(await workshop.article())
    first = await publish(workshop, step)
    assert await publish(workshop, step) == first
    assert await reconcile(workshop, step) == first
    assert await workshop.posts() == (1, 0)


@pytest.mark.parametrize("decided", ["not at all", "sent back", "on another text"])
async def test_only_the_text_that_was_approved_is_published(workshop: Workshop, decided: str) -> None:
    plan = await workshop.article()
    step = await workshop.approved(plan)
    if decided != "on another text":
        draft = await workshop.draft(plan)
        if decided == "sent back":
            await workshop.decided(plan, draft, Action.SEND_BACK)
        step = step.model_copy(update={"draft_id": draft.id})
    else:
        draft = await workshop.draft(plan)
        await workshop.decided(plan, draft, Action.APPROVE, digest="0" * 64)
        step = step.model_copy(update={"draft_id": draft.id})
    receipt = await publish(workshop, step)
    assert receipt.state is PublicationState.FAILED
    assert "approved" in receipt.reason
    assert await row(workshop, step) is None
    assert await workshop.posts() == (0, 0)


async def test_a_held_article_is_not_published(workshop: Workshop) -> None:
    plan = await workshop.article()
    step = await workshop.approved(plan)
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        await articles.hold(scope, plan.article_id, "wait")
    assert isinstance(await workshop.run(workshop.publishing().publish, step), Held)
    assert await row(workshop, step) is None


async def test_a_new_page_is_looked_at_while_the_visit_lasts(workshop: Workshop) -> None:
    step = await workshop.approved(await workshop.article())
    receipt = await publish(workshop, step)
    assert receipt.readable is True
    kept = await row(workshop, step)
    assert kept is not None
    assert kept.readable is True


async def test_a_page_that_cannot_be_looked_at_yet_is_left_to_the_page_check(
    workshop: Workshop, tmp_path: Path
) -> None:
    await workshop.change_site("blog", kind=SiteKind.FOLDER, folder=str(tmp_path), generator=Generator.HUGO)
    step = await workshop.approved(await workshop.article())
    receipt = await publish(workshop, step)
    assert (receipt.state, receipt.readable) == (PublicationState.PUBLISHED, None)


async def test_a_page_that_takes_too_long_to_look_at_is_published_all_the_same(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(options, "INSPECTION", timedelta(0))
    receipt = await publish(workshop, await workshop.approved(await workshop.article()))
    assert (receipt.state, receipt.readable) == (PublicationState.PUBLISHED, None)


async def test_a_post_that_bears_our_marker_already_is_adopted(workshop: Workshop) -> None:
    plan = await workshop.article()
    step = await workshop.approved(plan)
    marker = rendering.marker(plan.article_id)
    ours = Post(marker=marker, slug="elsewhere", title="Found", html="<p>Here already.</p>")
    standing = await workshop.outside().publisher(step.route).publish(ours, Call(purchase_id="p", policy=QUICK))
    receipt = await publish(workshop, step)
    assert (receipt.state, receipt.url) == (PublicationState.PUBLISHED, standing.url)
    assert await workshop.posts() == (1, 0)


async def test_a_lost_reply_is_looked_up_and_adopted(workshop: Workshop) -> None:
    await workshop.sandbox.configure(blog={"lost_reply": 1.0})
    step = await workshop.approved(await workshop.article())
    lost = await publish(workshop, step)
    assert lost.state is PublicationState.UNKNOWN
    assert lost.look_again is not None
    again = await publish(workshop, step)
    assert again.state is PublicationState.UNKNOWN
    assert (await reconcile(workshop, step)).state is PublicationState.PUBLISHED
    assert await workshop.posts() == (1, 0)


async def test_a_site_that_inserts_slowly_is_waited_for_and_posts_once(workshop: Workshop) -> None:
    await workshop.change_site("blog", max_server_time=timedelta(seconds=10))
    await workshop.sandbox.configure(blog={"slow_insert": 1.0, "slow_insert_seconds": 3.0})
    step = await workshop.approved(await workshop.article())
    states = [(await publish(workshop, step)).state]
    while states[-1] is PublicationState.UNKNOWN:
        await asyncio.sleep(0.3)
        states.append((await reconcile(workshop, step)).state)
    assert states[:2] == [PublicationState.UNKNOWN] * 2
    assert states[-1] is PublicationState.PUBLISHED
    assert await workshop.posts() == (1, 0)


async def test_absent_counts_after_two_empty_look_ups_and_the_sites_longest(workshop: Workshop) -> None:
    await workshop.sandbox.configure(blog={"http_500": 1.0})
    step = await workshop.approved(await workshop.article())
    assert (await publish(workshop, step)).state is PublicationState.UNKNOWN
    early = [await reconcile(workshop, step) for _ in range(3)]
    assert {receipt.state for receipt in early} == {PublicationState.UNKNOWN}
    settled = early[-1].look_again
    assert settled is not None
    assert settled - datetime.now(UTC) < timedelta(seconds=SETTLED)
    await asyncio.sleep(SETTLED)
    absent = await reconcile(workshop, step)
    assert absent.state is PublicationState.RESERVED
    assert "absent in 4 look-ups" in absent.reason
    await workshop.sandbox.configure(blog={"http_500": 0.0})
    assert (await publish(workshop, step)).state is PublicationState.PUBLISHED
    assert await workshop.posts() == (1, 0)


async def test_a_look_up_that_failed_is_no_empty_one(workshop: Workshop) -> None:
    await workshop.sandbox.configure(blog={"http_500": 1.0})
    step = await workshop.approved(await workshop.article())
    await publish(workshop, step)
    await workshop.sandbox.configure(blog={"password": "another"})
    failed = [await reconcile(workshop, step) for _ in range(2)]
    assert {receipt.state for receipt in failed} == {PublicationState.UNKNOWN}
    await workshop.sandbox.configure(blog={"password": "sandbox app pass"})
    await asyncio.sleep(SETTLED)
    assert (await reconcile(workshop, step)).state is PublicationState.UNKNOWN
    assert (await reconcile(workshop, step)).state is PublicationState.RESERVED


async def test_a_site_that_cannot_be_asked_for_hours_is_left_to_a_person(workshop: Workshop) -> None:
    await workshop.sandbox.configure(blog={"password": "another"})
    step = await workshop.approved(await workshop.article())
    await set_row(workshop, step, PublicationState.UNKNOWN, sent_at=datetime.now(UTC) - timedelta(hours=3))
    receipt = await reconcile(workshop, step)
    assert receipt.state is PublicationState.PARKED
    assert "every look-up failed" in receipt.reason


async def test_a_worker_lost_while_sending_may_still_be_sending(workshop: Workshop) -> None:
    step = await workshop.approved(await workshop.article())
    await set_row(workshop, step, PublicationState.SENDING, sent_at=datetime.now(UTC) - timedelta(seconds=SETTLED))
    states = [(await reconcile(workshop, step)).state for _ in range(3)]
    assert set(states) == {PublicationState.SENDING}
    long_ago = datetime.now(UTC) - timedelta(seconds=SETTLED) - QUICK.total
    await set_row(workshop, step, PublicationState.SENDING, sent_at=long_ago)
    assert (await reconcile(workshop, step)).state is PublicationState.RESERVED


async def test_two_workers_race_for_one_reservation_and_post_once(workshop: Workshop) -> None:
    await workshop.sandbox.configure(blog={"latency": [0.05, 0.1]})
    workers = [workshop.publishing() for _ in range(2)]
    for round_ in range(5):
        step = await workshop.approved(await workshop.article(f"keyword {round_}"))
        receipts = await asyncio.gather(*(publish(workshop, step, hands) for hands in workers))
        assert PublicationState.PUBLISHED in {receipt.state for receipt in receipts}
        assert (await reconcile(workshop, step)).state is PublicationState.PUBLISHED
        assert await workshop.posts() == (round_ + 1, 0)


async def test_a_cancel_during_the_send_is_obeyed_after_the_outcome_is_recorded(workshop: Workshop) -> None:
    await workshop.sandbox.configure(blog={"latency": [0.5, 0.5]})
    step = await workshop.approved(await workshop.article())
    running = environment()
    task = asyncio.create_task(running.run(workshop.publishing().publish, step))
    async with asyncio.timeout(5):
        while (kept := await row(workshop, step)) is None or kept.state is not PublicationState.SENDING:
            await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    kept = await row(workshop, step)
    assert kept is not None
    assert (kept.state, bool(kept.url)) == (PublicationState.PUBLISHED, True)


async def test_a_login_that_is_refused_is_final_and_says_so(workshop: Workshop) -> None:
    await workshop.sandbox.configure(blog={"password": "another"})
    receipt = await publish(workshop, await workshop.approved(await workshop.article()))
    assert (receipt.state, receipt.look_again) == (PublicationState.FAILED, None)
    assert "application password" in receipt.reason


async def test_a_password_that_is_not_set_is_final_and_named(workshop: Workshop) -> None:
    del workshop.environ["SANDBOX_BLOG_PASSWORD"]
    receipt = await publish(workshop, await workshop.approved(await workshop.article()))
    assert receipt.state is PublicationState.FAILED
    assert "SANDBOX_BLOG_PASSWORD is not set" in receipt.reason


@asynccontextmanager
async def maintenance(workshop: Workshop) -> AsyncIterator[None]:
    """The blog's host answers 503 with a delay to everything."""

    async def busy(peer: Peer) -> None:
        await peer.reply(503, b"{}", retry_after="7", content_type="application/json")

    async with raw_server(busy) as server:
        await workshop.change_site("blog", base_url=server.url)
        yield


async def test_a_site_in_maintenance_keeps_the_reservation_and_names_when_to_come_back(workshop: Workshop) -> None:
    step = await workshop.approved(await workshop.article())
    async with maintenance(workshop):
        receipt = await publish(workshop, step)
    assert receipt.state is PublicationState.RESERVED
    assert receipt.look_again is not None
    assert timedelta(seconds=5) < receipt.look_again - datetime.now(UTC) <= timedelta(seconds=7)


async def test_a_failed_post_may_be_tried_again(workshop: Workshop) -> None:
    await workshop.sandbox.configure(blog={"html_403": 1.0})
    step = await workshop.approved(await workshop.article())
    assert (await publish(workshop, step)).state is PublicationState.FAILED
    await workshop.sandbox.configure(blog={"html_403": 0.0})
    assert (await publish(workshop, step)).state is PublicationState.PUBLISHED


async def test_a_site_that_vanished_fails_before_and_parks_after_sending(workshop: Workshop) -> None:
    step = await workshop.approved(await workshop.article("one"))
    sent = await workshop.approved(await workshop.article("two"))
    await set_row(workshop, sent, PublicationState.UNKNOWN, sent_at=datetime.now(UTC))
    workshop.catalog = workshop.catalog.model_copy(update={"sites": ()})
    receipt = await publish(workshop, step)
    assert (receipt.state, "not in channels.toml" in receipt.reason) == (PublicationState.FAILED, True)
    parked = await reconcile(workshop, sent)
    assert (parked.state, "not in channels.toml" in parked.reason) == (PublicationState.PARKED, True)


async def test_without_a_reservation_there_is_nothing_to_reconcile(workshop: Workshop) -> None:
    step = await workshop.approved(await workshop.article())
    assert (await reconcile(workshop, step)).state is PublicationState.RESERVED
    assert await row(workshop, step) is None
