"""Corrections and withdrawals of pages that stand: idempotent by the site's own id, so repeated until done."""

from datetime import UTC, datetime

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities import failures
from activities.heartbeat import beating
from activities.inspecting import ping
from activities.posts import Prepared, prepare
from activities.sites import left_alone, visit, world_at
from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.outside import ChannelGone, Outside
from citeloop.channels.ports import Call, Post, Publisher, Undecidable
from citeloop.models.plan import Stage
from citeloop.models.work import CorrectionKind, PublicationState, Receipt, Step
from citeloop.store.database import Database, Scope
from citeloop.store.repositories import articles, corrections, publications
from citeloop.store.repositories.publications import Publication
from workflows import stages
from workflows.stages import Errand, GivenUp, PageRef

STANDS = frozenset({PublicationState.PUBLISHED, PublicationState.SENT, PublicationState.PARKED})


class CorrectingActivities(stages.Correcting):
    def __init__(self, database: Database, outside: Outside) -> None:
        self._database = database
        self._outside = outside

    @activity.defn(name="correcting.next")
    async def next(self, page: PageRef) -> Errand | None:
        async with self._database.tenant(page.tenant_id) as scope:
            found = await corrections.next_open(scope, page.article_id, page.site)
            if found is None:
                return None
            plan = await articles.plan(scope, page.article_id)
        return Errand(
            page=page,
            correction_id=found.id,
            kind=found.kind,
            keyword=plan.keyword,
            route=plan.route(Stage.PUBLISH, page.site),
            weight=plan.weight,
            draft_id=found.draft_id,
            patience=plan.park_for,
        )

    @activity.defn(name="correcting.carry_out")
    async def carry_out(self, errand: Errand) -> Receipt:
        page = errand.page
        async with beating():
            async with self._database.tenant(page.tenant_id) as scope:
                row = await publications.get(scope, page.article_id, page.site)
                outside = await world_at(scope, self._outside, page.site)
            if row is None or row.state not in STANDS:
                return await self._nothing_there(errand, row)
            async with visit(self._database, page.tenant_id, outside, page.site) as waiting:
                if waiting is not None:
                    raise failures.limited(waiting.reason, waiting.until - datetime.now(UTC))
                try:
                    if errand.kind is CorrectionKind.WITHDRAW:
                        await self._withdraw(errand, row, outside)
                    else:
                        await self._correct(errand, row, outside)
                except ChannelGone as error:
                    raise ApplicationError(str(error), type=failures.CHANNEL_GONE, non_retryable=True) from error
                except ChannelError as error:
                    await left_alone(self._database, page.tenant_id, outside, page.site, error)
                    raise failures.fault(error, spent=False) from error
        return await self._receipt(page)

    @activity.defn(name="correcting.give_up")
    async def give_up(self, given_up: GivenUp) -> None:
        page = given_up.page
        async with self._database.tenant(page.tenant_id) as scope:
            if await corrections.end(scope, given_up.correction_id, given_up.problem or "it failed"):
                detail = f"{page.site} was not changed: {given_up.problem}"
                await articles.told(scope, page.article_id, "correction", detail[:500])

    async def _withdraw(self, errand: Errand, row: Publication, outside: Outside) -> None:
        """A site on which the post is not to be found has nothing left to withdraw."""
        publisher = outside.publisher(row.site)
        call = Call(purchase_id=errand.correction_id, policy=errand.route.policy)
        post = Post(marker=row.marker, slug=row.slug, title=errand.keyword, html="")
        remote_id = row.remote_id or await _found(publisher, post, call)
        if remote_id is not None:
            await publisher.withdraw(post, remote_id, call)
        told = await ping(outside, row.site, row.url) if row.url else ()
        async with self._database.tenant(errand.page.tenant_id) as scope:
            why = await _said(scope, errand)
            await publications.advance(scope, row.id, expected=STANDS, to=PublicationState.WITHDRAWN, reason=why)
            await _end(scope, errand, f"withdrawn from {row.site}: {'; '.join((why, *told))}")

    async def _correct(self, errand: Errand, row: Publication, outside: Outside) -> None:
        page = errand.page
        async with self._database.tenant(page.tenant_id) as scope:
            plan = await articles.plan(scope, page.article_id)
            prepared = await prepare(scope, _step(errand), plan, outside, "")
        if not isinstance(prepared, Prepared):
            raise ChannelError(Fault.INVALID, prepared.reason)
        publisher = outside.publisher(row.site)
        call = Call(purchase_id=errand.correction_id, policy=errand.route.policy)
        remote_id = row.remote_id or await _found(publisher, prepared.post, call)
        if remote_id is None:
            raise ChannelError(Fault.INVALID, f"{row.site}: the post is not there any more; publish it anew")
        placed = await publisher.update(prepared.post, remote_id, call)
        async with self._database.tenant(page.tenant_id) as scope:
            await publications.advance(
                scope,
                row.id,
                expected={PublicationState.PUBLISHED},
                to=PublicationState.PUBLISHED,
                remote_id=row.remote_id or placed.remote_id,
                url=placed.url or row.url,
                reason="; ".join(placed.notes),
                digest=prepared.draft_digest,
            )
            await _end(scope, errand, f"corrected on {row.site}: {await _said(scope, errand)}")

    async def _nothing_there(self, errand: Errand, row: Publication | None) -> Receipt:
        """Withdrawn before, or never published: the first is what a withdrawal wants."""
        state = row.state if row is not None else None
        wanted = errand.kind is CorrectionKind.WITHDRAW and state is PublicationState.WITHDRAWN
        async with self._database.tenant(errand.page.tenant_id) as scope:
            problem = "" if wanted else f"nothing of it stands on {errand.page.site}: {state or 'not published'}"
            await corrections.end(scope, errand.correction_id, problem)
        return await self._receipt(errand.page)

    async def _receipt(self, page: PageRef) -> Receipt:
        async with self._database.tenant(page.tenant_id) as scope:
            row = await publications.get(scope, page.article_id, page.site)
        if row is None:
            return Receipt(publication_id="", site=page.site, state=PublicationState.FAILED)
        return Receipt(publication_id=row.id, site=row.site, state=row.state, url=row.url, reason=row.reason[:300])


async def _found(publisher: Publisher, post: Post, call: Call) -> str | None:
    """The site's own id of our post, where it never told us."""
    try:
        placed = await publisher.look_up(post, call)
    except Undecidable:
        words = "the site has told no id of the post and cannot be asked for it: take it away by hand"
        raise ChannelError(Fault.INVALID, words) from None
    return placed.remote_id if placed is not None else None


async def _said(scope: Scope, errand: Errand) -> str:
    found = await corrections.get(scope, errand.correction_id)
    assert found is not None
    return f"by {found.by}" + (f": {found.reason}" if found.reason else "")


async def _end(scope: Scope, errand: Errand, detail: str) -> None:
    if await corrections.end(scope, errand.correction_id):
        await articles.told(scope, errand.page.article_id, "correction", detail[:500])


def _step(errand: Errand) -> Step:
    return Step(
        tenant_id=errand.page.tenant_id,
        campaign_id=None,
        article_id=errand.page.article_id,
        plan_digest="",
        stage=Stage.PUBLISH,
        route=errand.page.site,
        draft_id=errand.draft_id,
    )
