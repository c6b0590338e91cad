"""Publishing at most once: reserve, look up, send once, confirm; a lost reply is looked up, never repeated blindly."""

import asyncio
from collections.abc import Awaitable
from datetime import UTC, datetime, timedelta
from typing import Unpack

from temporalio import activity

from activities import inspecting
from activities.heartbeat import beating
from activities.posts import Prepared, prepare
from activities.sites import left_alone, visit, world_at
from activities.till import NO_DELAY_GIVEN
from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.outside import Outside
from citeloop.channels.ports import Call, Placed, Publisher, Undecidable
from citeloop.models.work import Held, PublicationState, Receipt, Step, Waiting
from citeloop.store.database import Database, Scope
from citeloop.store.repositories import articles, callbacks, publications
from citeloop.store.repositories.publications import Fields, Publication
from workflows import options, stages

ON_THE_WIRE = frozenset({PublicationState.SENDING, PublicationState.UNKNOWN})
NOT_SENT = frozenset({PublicationState.RESERVED, PublicationState.FAILED})
UNDECIDED = ON_THE_WIRE | {PublicationState.PARKED}
FIRST_LOOK = timedelta(seconds=1)
LAST_LOOK = timedelta(minutes=5)
LOOKS_FOR = timedelta(hours=2)
"""How long a site that cannot be asked is asked again, until a person has to look."""


class PublishingActivities(stages.Publishing):
    def __init__(self, database: Database, outside: Outside, callback_base: str) -> None:
        self._database = database
        self._outside = outside
        self._callback_base = callback_base

    @activity.defn(name="publishing.publish")
    async def publish(self, step: Step) -> Receipt | Held | Waiting:
        async with beating():
            async with self._database.tenant(step.tenant_id) as scope:
                held = await articles.find_hold(scope, step.article_id)
                if held is not None:
                    return held
                outside = await world_at(scope, self._outside, step.route)
            async with visit(self._database, step.tenant_id, outside, step.route) as waiting:
                return waiting or await self._visited(step, outside)

    async def _visited(self, step: Step, outside: Outside) -> Receipt:
        async with self._database.tenant(step.tenant_id) as scope:
            plan = await articles.enter(scope, step, channel=step.route, attempt=activity.info().attempt)
            post = await prepare(scope, step, plan, outside, self._callback_base)
        if isinstance(post, Receipt):
            return post
        if post.publication.state not in NOT_SENT:
            return _receipt(post.publication)
        return await self._send(step, post, outside)

    async def _send(self, step: Step, post: Prepared, outside: Outside) -> Receipt:
        call = Call(purchase_id=post.publication.id, policy=post.policy)
        try:
            publisher = outside.publisher(step.route)
            placed = await publisher.look_up(post.post, call)
        except Undecidable:
            placed = None
        except ChannelError as error:
            await left_alone(self._database, step.tenant_id, outside, step.route, error)
            return await self._not_sent(step, post.publication, error)
        if placed is not None:
            receipt = await self._placed(step, post, placed, expected=NOT_SENT)
            return await self._looked_at(step, post, receipt, outside)
        async with self._database.tenant(step.tenant_id) as scope:
            sending = await publications.advance(
                scope,
                post.publication.id,
                expected=NOT_SENT,
                to=PublicationState.SENDING,
                sent_at=datetime.now(UTC),
                digest=post.draft_digest,
            )
        if sending is None:
            return await self._current(step)
        # A cancel must not cut a request that may be on the wire: it is finished, recorded, and then obeyed.
        receipt = await _finished(self._send_once(step, post, outside, publisher, call))
        return await self._looked_at(step, post, receipt, outside)

    async def _looked_at(self, step: Step, post: Prepared, receipt: Receipt, outside: Outside) -> Receipt:
        """The page as an answer engine finds it, while the visit lasts; what cannot be looked at yet is left to
        a page check of its own."""
        if receipt.state is not PublicationState.PUBLISHED:
            return receipt
        try:
            async with asyncio.timeout(options.INSPECTION.total_seconds()):
                reading = await inspecting.look(outside, step.route, receipt.url, post.post)
                if reading.readable is None:
                    return receipt
                reading = await inspecting.told(outside, step.route, reading)
        except TimeoutError:
            return receipt
        async with self._database.tenant(step.tenant_id) as scope:
            await publications.read(scope, receipt.publication_id, reading)
        return receipt.model_copy(update={"readable": reading.readable})

    async def _send_once(
        self, step: Step, post: Prepared, outside: Outside, publisher: Publisher, call: Call
    ) -> Receipt:
        try:
            placed = await publisher.publish(post.post, call)
        except ChannelError as error:
            await left_alone(self._database, step.tenant_id, outside, step.route, error)
            if error.fault is not Fault.UNKNOWN:
                return await self._not_sent(step, post.publication, error, expected=ON_THE_WIRE)
            return await self._moved(
                step,
                post.publication,
                expected={PublicationState.SENDING},
                to=PublicationState.UNKNOWN,
                look_again=datetime.now(UTC) + FIRST_LOOK,
                reason=error.message,
                sent_at=datetime.now(UTC),
            )
        return await self._placed(step, post, placed, expected=ON_THE_WIRE)

    @activity.defn(name="publishing.reconcile")
    async def reconcile(self, step: Step) -> Receipt:
        async with beating():
            async with self._database.tenant(step.tenant_id) as scope:
                row = await _with_callbacks(scope, step)
                outside = await world_at(scope, self._outside, step.route)
                post = await self._prepared(scope, step, outside) if row is not None else None
            if row is None:
                return Receipt(publication_id="", site=step.route, state=PublicationState.RESERVED)
            if row.state not in UNDECIDED:
                return _receipt(row)
            if not isinstance(post, Prepared):
                return await self._park(step, row, post.reason if post is not None else "")
            async with visit(self._database, step.tenant_id, outside, step.route) as waiting:
                if waiting is not None:
                    return await self._current(step, look_again=waiting.until)
                return await self._looked_up(step, post, row, outside)

    async def _looked_up(self, step: Step, post: Prepared, row: Publication, outside: Outside) -> Receipt:
        """Found: ours. Twice not found, the second time after the site's longest: provably absent."""
        call = Call(purchase_id=row.id, policy=post.policy)
        try:
            placed = await outside.publisher(step.route).look_up(post.post, call)
        except Undecidable as undecidable:
            reason = str(undecidable) or "the site cannot be asked whether it has the post"
            return await self._park(step, row, reason)
        except ChannelError as error:
            await left_alone(self._database, step.tenant_id, outside, step.route, error)
            if datetime.now(UTC) - _in_doubt_since(row) > LOOKS_FOR:
                return await self._park(step, row, f"every look-up failed: {error.message}")
            return await self._in_doubt(step, row, row.look_ups, error.message, delay=error.delay)
        if placed is not None:
            return await self._placed(step, post, placed, expected=UNDECIDED)
        looks = row.look_ups + 1
        settled = (row.sent_at or row.updated_at) + post.max_server_time
        if row.state is PublicationState.SENDING:
            settled += post.policy.total
        if looks >= 2 and datetime.now(UTC) >= settled:  # noqa: PLR2004 - the law says two
            reason = f"absent in {looks} look-ups, the last after {post.max_server_time.total_seconds():g} s"
            return await self._moved(
                step, row, expected=UNDECIDED, to=PublicationState.RESERVED, reason=reason, look_ups=0
            )
        return await self._in_doubt(step, row, looks, row.reason or "not there yet", settled=settled)

    @activity.defn(name="publishing.inbox")
    async def inbox(self, step: Step) -> Receipt:
        async with beating():
            async with self._database.tenant(step.tenant_id) as scope:
                row = await _with_callbacks(scope, step)
                assert row is not None
                overdue = row.deadline is not None and datetime.now(UTC) >= row.deadline
                if row.state is PublicationState.SENT and overdue:
                    await publications.advance(
                        scope,
                        row.id,
                        expected={PublicationState.SENT},
                        to=PublicationState.UNKNOWN,
                        reason="no callback before the deadline",
                    )
            return await self._current(step)

    async def _placed(
        self, step: Step, post: Prepared, placed: Placed, *, expected: frozenset[PublicationState]
    ) -> Receipt:
        deadline = datetime.now(UTC) + post.callback_deadline
        return await self._moved(
            step,
            post.publication,
            expected=expected,
            to=PublicationState.PUBLISHED if placed.confirmed else PublicationState.SENT,
            remote_id=placed.remote_id,
            url=placed.url,
            reason="; ".join(placed.notes),
            deadline=None if placed.confirmed else deadline,
        )

    async def _not_sent(
        self,
        step: Step,
        row: Publication,
        error: ChannelError,
        *,
        expected: frozenset[PublicationState] = NOT_SENT,
    ) -> Receipt:
        """Certainly nothing was inserted: wait and send again, or give up where the same would come back."""
        final = error.fault in {Fault.INVALID, Fault.UNAUTHORIZED, Fault.REFUSED}
        state = PublicationState.FAILED if final else PublicationState.RESERVED
        again = None if final else datetime.now(UTC) + (error.delay or NO_DELAY_GIVEN)
        return await self._moved(step, row, expected=expected, to=state, look_again=again, reason=error.message)

    async def _park(self, step: Step, row: Publication, reason: str) -> Receipt:
        return await self._moved(step, row, expected=UNDECIDED, to=PublicationState.PARKED, reason=reason)

    async def _in_doubt(
        self,
        step: Step,
        row: Publication,
        looks: int,
        reason: str,
        *,
        delay: timedelta | None = None,
        settled: datetime | None = None,
    ) -> Receipt:
        """Look again after as long as it has been in doubt. SENDING stays: a lost worker may still be sending."""
        sending = row.state is PublicationState.SENDING
        state = PublicationState.SENDING if sending else PublicationState.UNKNOWN
        now = datetime.now(UTC)
        again = now + (delay or min(max(FIRST_LOOK, now - _in_doubt_since(row)), LAST_LOOK))
        if settled is not None and now < settled < again:
            again = settled
        return await self._moved(
            step, row, expected=UNDECIDED, to=state, look_again=again, reason=reason, look_ups=looks
        )

    async def _prepared(self, scope: Scope, step: Step, outside: Outside) -> Prepared | Receipt:
        plan = await articles.plan(scope, step.article_id)
        return await prepare(scope, step, plan, outside, self._callback_base)

    async def _moved(
        self,
        step: Step,
        row: Publication,
        *,
        expected: frozenset[PublicationState] | set[PublicationState],
        to: PublicationState,
        look_again: datetime | None = None,
        **fields: Unpack[Fields],
    ) -> Receipt:
        """Where the post stands then: moved, or as somebody else has moved it meanwhile."""
        async with self._database.tenant(step.tenant_id) as scope:
            moved = await publications.advance(scope, row.id, expected=expected, to=to, **fields)
        return _receipt(moved, look_again) if moved is not None else await self._current(step, look_again)

    async def _current(self, step: Step, look_again: datetime | None = None) -> Receipt:
        async with self._database.tenant(step.tenant_id) as scope:
            row = await publications.get(scope, step.article_id, step.route)
        assert row is not None
        return _receipt(row, look_again)


async def _with_callbacks(scope: Scope, step: Step) -> Publication | None:
    """The publication after what its site has said; a callback counts however late it comes."""
    row = await publications.get(scope, step.article_id, step.route)
    if row is None:
        return None
    await callbacks.apply(scope, row.id)
    await callbacks.delivered(scope, row.id)
    return await publications.get(scope, step.article_id, step.route)


def _in_doubt_since(row: Publication) -> datetime:
    """When the reply, or the callback, failed to come."""
    sent_at = row.sent_at or row.updated_at
    return max(sent_at, row.deadline or sent_at)


async def _finished(work: Awaitable[Receipt]) -> Receipt:
    """Run to the end even when cancelled meanwhile; the cancel is raised afterwards."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


def _receipt(row: Publication, look_again: datetime | None = None) -> Receipt:
    return Receipt(
        publication_id=row.id,
        site=row.site,
        state=row.state,
        url=row.url,
        reason=row.reason[:300],
        look_again=look_again or row.deadline,
        readable=row.readable,
    )
