"""One article on one site: at most once, or unknown and looked up. Never sent again unseen."""

import contextlib
from datetime import UTC, timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError

from citeloop.models.plan import CallPolicy, Route, Stage, State
from citeloop.models.work import PublicationState, Receipt
from workflows import options
from workflows.life import Life, together
from workflows.stages import Inspecting, PageQuery, Publishing


async def at_its_time(life: Life) -> None:
    """Sleeps until the plan's time, by a durable timer of ours; pause and cancel work meanwhile."""
    when = life.plan.publish_at
    if when is None or when <= workflow.now() or life.progress.published_at is not None:
        return
    await life.paused()
    await life.record(State.SCHEDULED, f"scheduled for {when.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC")
    while (left := when - workflow.now()) > timedelta(0):
        with contextlib.suppress(TimeoutError):
            await workflow.wait_condition(lambda: life.steering.paused, timeout=left)
        life.steering.guard()
        await life.paused()


async def publish_to(life: Life, route: Route) -> Receipt:
    """From reservation to a receipt that needs nothing more: published, failed, or parked for a person."""
    receipt = next((r for r in life.progress.receipts if r.site == route.name), None)
    if receipt is None:
        receipt = Receipt(publication_id="", site=route.name, state=PublicationState.RESERVED)
    elif receipt.state is not PublicationState.PUBLISHED:
        receipt = await _reconciled(life, route)
        if receipt.state is PublicationState.FAILED:  # nothing was inserted, and a person has asked for another try
            receipt = receipt.model_copy(update={"state": PublicationState.RESERVED, "look_again": None})
    refusals = 0
    while True:
        match receipt.state:
            case PublicationState.RESERVED if refusals < route.policy.max_faults:
                why, backoff = f"{route.name}: {receipt.reason}", _backoff(route.policy, refusals)
                await life.wait(receipt.look_again, why, at_least=backoff)
                receipt, refusals = await _sent(life, route), refusals + 1
            case PublicationState.SENDING | PublicationState.UNKNOWN:
                await life.wait(receipt.look_again, f"{route.name}: {receipt.reason}")
                receipt = await _reconciled(life, route)
            case PublicationState.SENT:
                receipt = await _confirmed(life, route, receipt)
            case PublicationState.PUBLISHED if receipt.readable is None:
                return await _inspected(life, route, receipt)
            case _:
                return receipt
        _keep(life, receipt)


def _backoff(policy: CallPolicy, refusals: int) -> timedelta:
    """Longer after each: the site may be down for an hour."""
    return min(policy.backoff * 2 ** min(refusals - 1, 20), policy.backoff_max) if refusals else timedelta(0)


async def look_again(life: Life) -> None:
    """Before the first measuring, at the pages that could not be looked at when they were published."""
    unseen = {r.site: r for r in life.progress.receipts if stands(r) and r.readable is None}
    routes = [route for route in life.plan.routes.get(Stage.PUBLISH, ()) if route.name in unseen]
    await together(_inspected(life, route, unseen[route.name], late=True) for route in routes)


def stands(receipt: Receipt) -> bool:
    return receipt.state is PublicationState.PUBLISHED


def missing(life: Life) -> str:
    """Empty, or the sites that have no page of the article, and why."""
    settled = {PublicationState.PUBLISHED, PublicationState.WITHDRAWN}
    return "; ".join(f"{r.site}: {_said(r)}" for r in life.progress.receipts if r.state not in settled)


def _said(receipt: Receipt) -> str:
    state = "not posted" if receipt.state is PublicationState.RESERVED else receipt.state
    return f"{state}: {receipt.reason}"


def unreadable(life: Life) -> str:
    """Empty while engines can read one of the pages, or nobody knows."""
    pages = [r for r in life.progress.receipts if stands(r)]
    if not pages or any(receipt.readable is not False for receipt in pages):
        return ""
    return f"engines cannot read {', '.join(r.site for r in pages)}"


async def _inspected(life: Life, route: Route, receipt: Receipt, *, late: bool = False) -> Receipt:
    """A page check never holds an article up: what it cannot find out stays unknown."""
    query = PageQuery(step=life.step(Stage.PUBLISH, route), late=late)
    with contextlib.suppress(ActivityError):
        reading = await life.call(Inspecting.page, query, options.inspection(life.plan, route))
        receipt = receipt.model_copy(update={"readable": reading.readable})
    life.steering.guard()
    _keep(life, receipt)
    return receipt


def withdrawn(life: Life, site: str) -> None:
    """The page on this site was taken away; what the stages hold of it counts no longer."""
    life.steering.withdrawn.add(site)
    for receipt in life.progress.receipts:
        if receipt.site == site:
            _keep(life, receipt)


def _keep(life: Life, receipt: Receipt) -> None:
    if receipt.site in life.steering.withdrawn:
        receipt = receipt.model_copy(update={"state": PublicationState.WITHDRAWN})
    others = tuple(r for r in life.progress.receipts if r.site != receipt.site)
    life.set(receipts=(*others, receipt))


async def _sent(life: Life, route: Route) -> Receipt:
    await life.gate(Stage.PUBLISH)
    try:
        return await life.ask(Publishing.publish, life.step(Stage.PUBLISH, route), options.send(life.plan, route))
    except ActivityError:
        return await _reconciled(life, route)


async def _reconciled(life: Life, route: Route) -> Receipt:
    return await life.call(
        Publishing.reconcile, life.step(Stage.PUBLISH, route), options.call(life.plan, Stage.PUBLISH, route)
    )


async def _confirmed(life: Life, route: Route, receipt: Receipt) -> Receipt:
    """The site will call back; at the deadline the inbox is read all the same."""
    patience = receipt.look_again - workflow.now() if receipt.look_again is not None else timedelta(0)
    with contextlib.suppress(TimeoutError):
        await workflow.wait_condition(
            lambda: route.name in life.steering.callbacks, timeout=max(patience, timedelta(0))
        )
    life.steering.callbacks.discard(route.name)
    life.steering.guard()
    summary = f"callbacks · {life.plan.keyword} · {route.name}"
    return await life.call(Publishing.inbox, life.step(Stage.PUBLISH, route), options.desk(life.plan, summary))
