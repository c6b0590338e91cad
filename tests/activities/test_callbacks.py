from datetime import UTC, datetime, timedelta

import pytest

from citeloop.models import ids
from citeloop.models.work import PublicationState, Receipt, Step
from citeloop.store.repositories import callbacks, publications
from citeloop.store.repositories.callbacks import Delivery, Inbound
from citeloop.store.repositories.publications import Publication
from tests.activities.test_publishing import publish, reconcile
from tests.activities.workshop import Workshop
from tests.channels.servers import Peer, raw_server

PAGE = "https://hook.example/pages/1"


async def inbox(workshop: Workshop, step: Step) -> Receipt:
    receipt: Receipt = await workshop.run(workshop.publishing().inbox, step)
    return receipt


async def kept(workshop: Workshop, step: Step) -> Publication:
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        found = await publications.get(scope, step.article_id, step.route)
    assert found is not None
    return found


async def call_back(workshop: Workshop, step: Step, event_id: str, url: str = PAGE, remote_id: str = "r1") -> Delivery:
    """What the door writes when the site calls back."""
    token = (await kept(workshop, step)).token
    event = Inbound(
        event_id=event_id, type="article.published", remote_id=remote_id, url=url, received_at=datetime.now(UTC)
    )
    async with workshop.database.operator() as op:
        delivery = await callbacks.receive(op, token, event)
    assert delivery is not None
    return delivery


@pytest.fixture
async def sent(workshop: Workshop) -> Step:
    step = await workshop.approved(await workshop.article(), "hook")
    receipt = await publish(workshop, step)
    assert receipt.state is PublicationState.SENT
    assert receipt.look_again is not None
    assert timedelta(seconds=25) < receipt.look_again - datetime.now(UTC) <= timedelta(seconds=30)
    return step


async def test_a_callback_confirms(workshop: Workshop, sent: Step) -> None:
    await call_back(workshop, sent, ids.new_id())
    receipt = await inbox(workshop, sent)
    assert (receipt.state, receipt.url) == (PublicationState.PUBLISHED, PAGE)


async def test_a_callback_that_names_nothing_keeps_what_the_site_has_told_before(
    workshop: Workshop, sent: Step
) -> None:
    told = (await kept(workshop, sent)).remote_id
    await call_back(workshop, sent, ids.new_id(), url="", remote_id="")
    assert (await inbox(workshop, sent)).state is PublicationState.PUBLISHED
    assert (await kept(workshop, sent)).remote_id == told != ""


async def test_a_doubled_callback_changes_nothing(workshop: Workshop, sent: Step) -> None:
    event_id = ids.new_id()
    assert (await call_back(workshop, sent, event_id)).fresh
    assert not (await call_back(workshop, sent, event_id)).fresh
    first = await inbox(workshop, sent)
    late = await call_back(workshop, sent, event_id, url="https://elsewhere.example/")
    assert (late.fresh, late.delivered) == (False, True)
    assert await inbox(workshop, sent) == first
    assert await workshop.posts("hook") == (1, 0)


async def test_a_second_event_does_not_move_a_published_page(workshop: Workshop, sent: Step) -> None:
    await call_back(workshop, sent, ids.new_id())
    first = await inbox(workshop, sent)
    await call_back(workshop, sent, ids.new_id(), url="https://elsewhere.example/")
    assert await inbox(workshop, sent) == first


async def test_before_the_deadline_an_empty_inbox_is_waited_for(workshop: Workshop, sent: Step) -> None:
    assert (await inbox(workshop, sent)).state is PublicationState.SENT


async def test_no_callback_before_the_deadline_is_unknown_and_looked_up(workshop: Workshop) -> None:
    await workshop.change_site("hook", callback_deadline=timedelta(0))
    step = await workshop.approved(await workshop.article(), "hook")
    await publish(workshop, step)
    overdue = await inbox(workshop, step)
    assert (overdue.state, overdue.reason) == (PublicationState.UNKNOWN, "no callback before the deadline")
    found = await reconcile(workshop, step)
    assert (found.state, bool(found.url)) == (PublicationState.PUBLISHED, True)
    assert await workshop.posts("hook") == (1, 0)


async def test_a_callback_past_the_deadline_still_counts_even_for_a_parked_post(workshop: Workshop) -> None:
    async def no_look_up(peer: Peer) -> None:
        await peer.reply(202 if peer.head.startswith("POST") else 405, b"{}", content_type="application/json")

    async with raw_server(no_look_up) as server:
        await workshop.change_site("hook", base_url=server.url, callback_deadline=timedelta(0))
        step = await workshop.approved(await workshop.article(), "hook")
        assert (await publish(workshop, step)).state is PublicationState.SENT
        assert (await inbox(workshop, step)).state is PublicationState.UNKNOWN
        parked = await reconcile(workshop, step)
        assert (parked.state, "cannot be asked" in parked.reason) == (PublicationState.PARKED, True)
        await call_back(workshop, step, ids.new_id())
        confirmed = await reconcile(workshop, step)
    assert (confirmed.state, confirmed.url, confirmed.reason) == (PublicationState.PUBLISHED, PAGE, "")
    assert sum(peer.head.startswith("POST") for peer in server.peers) == 1


async def test_a_lost_reply_of_a_webhook_is_adopted_and_then_confirmed(workshop: Workshop) -> None:
    await workshop.sandbox.configure(hook={"lost_reply": 1.0})
    step = await workshop.approved(await workshop.article(), "hook")
    assert (await publish(workshop, step)).state is PublicationState.UNKNOWN
    assert (await reconcile(workshop, step)).state is PublicationState.PUBLISHED
    assert await workshop.posts("hook") == (1, 0)
