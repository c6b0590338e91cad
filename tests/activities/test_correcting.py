from typing import Any

import httpx
import pytest
from temporalio.exceptions import ApplicationError

from activities.correcting import CorrectingActivities
from citeloop.channels.outside import Outside
from citeloop.models.work import Action, CorrectionKind, Draft, PublicationState, Receipt, Step
from citeloop.store.repositories import articles, corrections, publications
from citeloop.store.repositories.corrections import Correction, CorrectionState
from tests.activities.test_callbacks import call_back, inbox
from tests.activities.test_publishing import publish, set_row
from tests.activities.workshop import Workshop
from workflows.stages import Errand, GivenUp, PageRef

NEW = "# Vectors in files, corrected\n\nAcmebase stores vectors in plain files.\n"


class Desk:
    """One published page, and what is asked of it."""

    def __init__(self, workshop: Workshop, step: Step, receipt: Receipt) -> None:
        self.workshop = workshop
        self.step = step
        self.receipt = receipt

    @property
    def page(self) -> PageRef:
        return PageRef(tenant_id=self.step.tenant_id, article_id=self.step.article_id, site=self.step.route)

    async def ask(self, kind: CorrectionKind, draft: Draft | None = None) -> Correction:
        async with self.workshop.database.tenant(self.workshop.tenant.id) as scope:
            row = await publications.get(scope, self.step.article_id, self.step.route)
            assert row is not None
            return await corrections.ask(
                scope,
                publication_id=row.id,
                article_id=row.article_id,
                site=row.site,
                kind=kind,
                by="ann",
                reason="a wrong price",
                draft_id=draft.id if draft else None,
                draft_digest=draft.digest if draft else "",
            )

    async def next(self) -> Errand | None:
        found: Errand | None = await self.workshop.run(self.workshop.correcting().next, self.page)
        return found

    async def carry_out(self) -> Receipt:
        errand = await self.next()
        assert errand is not None
        receipt: Receipt = await self.workshop.run(self.workshop.correcting().carry_out, errand)
        return receipt

    async def history(self) -> list[Correction]:
        async with self.workshop.database.tenant(self.workshop.tenant.id) as scope:
            return await corrections.of_article(scope, self.step.article_id)

    async def new_draft(self, *, approved: bool = True) -> Draft:
        async with self.workshop.database.tenant(self.workshop.tenant.id) as scope:
            plan = await articles.plan(scope, self.step.article_id)
        draft = (await self.workshop.draft(plan, NEW)).model_copy(update={"title": "Vectors in files, corrected"})
        if approved:
            await self.workshop.decided(plan, draft, Action.APPROVE)
        return draft

    async def shown(self) -> httpx.Response:
        async with httpx.AsyncClient(trust_env=False) as http:
            return await http.get(self.receipt.url)


@pytest.fixture(params=["blog", "hook"])
async def desk(workshop: Workshop, request: pytest.FixtureRequest) -> Desk:
    """A page on a WordPress site, and one on a site fed by webhooks."""
    return await published(workshop, request.param)


async def published(workshop: Workshop, part: str) -> Desk:
    step = await workshop.approved(await workshop.article(), part)
    receipt = await publish(workshop, step)
    if part == "hook":
        await call_back(workshop, step, "msg_1", url=f"{workshop.sandbox.url}/hook/pages/1")
        receipt = await inbox(workshop, step)
    assert receipt.state is PublicationState.PUBLISHED
    return Desk(workshop, step, receipt)


async def test_a_corrected_text_stands_at_the_same_address(desk: Desk) -> None:
    await desk.ask(CorrectionKind.CORRECT, await desk.new_draft())
    receipt = await desk.carry_out()
    assert (receipt.state, receipt.url) == (PublicationState.PUBLISHED, desk.receipt.url)
    page = (await desk.shown()).text
    assert "plain files" in page
    assert "Acmebase stores vectors in files." not in page
    (one,) = await desk.history()
    assert (one.state, one.by, one.reason) == (CorrectionState.DONE, "ann", "a wrong price")
    assert await desk.next() is None
    assert (await desk.workshop.posts("hook" if "hook" in desk.step.route else "blog"))[1] == 0


async def test_a_withdrawn_page_is_gone_for_readers_and_told_in_the_events(desk: Desk) -> None:
    await desk.ask(CorrectionKind.WITHDRAW)
    assert (await desk.carry_out()).state is PublicationState.WITHDRAWN
    assert (await desk.shown()).status_code == 404
    async with desk.workshop.database.tenant(desk.workshop.tenant.id) as scope:
        events = await articles.events(scope, desk.step.article_id)
    assert events[-1].kind == "correction"
    assert events[-1].detail == f"withdrawn from {desk.step.route}: by ann: a wrong price"


async def test_a_withdrawal_that_was_carried_out_before_is_done(desk: Desk) -> None:
    await desk.ask(CorrectionKind.WITHDRAW)
    await desk.carry_out()
    await desk.ask(CorrectionKind.WITHDRAW)
    assert (await desk.carry_out()).state is PublicationState.WITHDRAWN
    assert [one.state for one in await desk.history()] == [CorrectionState.DONE, CorrectionState.DONE]


async def test_the_same_withdrawal_asked_for_twice_is_one(desk: Desk) -> None:
    first = await desk.ask(CorrectionKind.WITHDRAW)
    assert await desk.ask(CorrectionKind.WITHDRAW) == first
    assert len(await desk.history()) == 1


async def test_a_lost_reply_to_a_withdrawal_is_repeated_without_harm(desk: Desk) -> None:
    """As after a worker that died between the site's answer and our row."""
    await desk.ask(CorrectionKind.WITHDRAW)
    errand = await desk.next()
    assert errand is not None
    await desk.workshop.run(desk.workshop.correcting().carry_out, errand)
    await set_row(desk.workshop, desk.step, PublicationState.PUBLISHED)
    again: Receipt = await desk.workshop.run(desk.workshop.correcting().carry_out, errand)
    assert again.state is PublicationState.WITHDRAWN


async def test_a_text_that_nobody_approved_is_put_nowhere(desk: Desk) -> None:
    await desk.ask(CorrectionKind.CORRECT, await desk.new_draft(approved=False))
    with pytest.raises(ApplicationError, match="not approved") as refused:
        await desk.carry_out()
    assert refused.value.non_retryable
    assert "plain files" not in (await desk.shown()).text


async def test_a_post_whose_id_was_never_told_is_looked_up_and_withdrawn(workshop: Workshop) -> None:
    desk = await published(workshop, "blog")
    await set_row(workshop, desk.step, PublicationState.PARKED, remote_id="")
    await desk.ask(CorrectionKind.WITHDRAW)
    assert (await desk.carry_out()).state is PublicationState.WITHDRAWN
    assert (await desk.shown()).status_code == 404


async def test_a_site_that_is_away_is_a_fault_to_be_tried_again(workshop: Workshop) -> None:
    desk = await published(workshop, "blog")
    await workshop.change_site("blog", base_url="http://127.0.0.1:9")
    await desk.ask(CorrectionKind.WITHDRAW)
    with pytest.raises(ApplicationError) as away:
        await desk.carry_out()
    assert not away.value.non_retryable
    assert [one.state for one in await desk.history()] == [CorrectionState.ASKED]


async def test_what_is_given_up_is_told_with_its_reason(workshop: Workshop) -> None:
    desk = await published(workshop, "blog")
    asked = await desk.ask(CorrectionKind.WITHDRAW)
    given_up = GivenUp(page=desk.page, correction_id=asked.id, problem="the login is refused")
    await workshop.run(workshop.correcting().give_up, given_up)
    (one,) = await desk.history()
    assert (one.state, one.problem) == (CorrectionState.FAILED, "the login is refused")


async def test_the_page_keeps_its_slug_when_a_later_draft_has_another_title(workshop: Workshop) -> None:
    desk = await published(workshop, "blog")
    draft = await desk.new_draft()
    later = desk.step.model_copy(update={"draft_id": draft.id})
    await set_row(workshop, desk.step, PublicationState.UNKNOWN, look_ups=0)
    receipt: Any = await workshop.run(workshop.publishing().reconcile, later)
    assert (receipt.state, receipt.url) == (PublicationState.PUBLISHED, desk.receipt.url)


async def test_search_engines_are_told_of_a_page_that_is_gone(workshop: Workshop) -> None:
    desk = await published(workshop, "blog")
    await workshop.change_site("blog", indexnow_key="0123456789abcdef")
    await desk.ask(CorrectionKind.WITHDRAW)
    pings: list[httpx.Request] = []

    def taken(request: httpx.Request) -> httpx.Response:
        pings.append(request)
        return httpx.Response(200)

    errand = await desk.next()
    assert errand is not None
    async with httpx.AsyncClient(
        mounts={"https://api.indexnow.org": httpx.MockTransport(taken)}, trust_env=False
    ) as http:
        hands = CorrectingActivities(workshop.database, Outside(workshop.catalog, workshop.environ, http))
        await workshop.run(hands.carry_out, errand)
    (ping,) = pings
    assert desk.receipt.url.encode() in ping.content
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        events = await articles.events(scope, desk.step.article_id)
    assert events[-1].detail.endswith("IndexNow was told")
