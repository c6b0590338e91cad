"""One article on one site: at most once, or unknown and looked up. Never sent again unseen."""

import contextlib
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError

from citeloop.models.plan import Route, Stage
from citeloop.models.work import PublicationState, Receipt
from workflows import options
from workflows.life import Life
from workflows.stages import Publishing


async def publish_to(life: Life, route: Route) -> Receipt:
    """From reservation to a receipt that needs nothing more: published, failed, or parked for a person."""
    receipt = next((r for r in life.progress.receipts if r.site == route.name), None)
    if receipt is None:
        receipt = Receipt(publication_id="", site=route.name, state=PublicationState.RESERVED)
    elif receipt.state is not PublicationState.PUBLISHED:
        receipt = await _reconciled(life, route)
    sends = 0
    while True:
        match receipt.state:
            case PublicationState.RESERVED if sends < route.policy.max_faults:
                await life.sleep_until(receipt.look_again)
                receipt, sends = await _sent(life, route), sends + 1
            case PublicationState.SENDING | PublicationState.UNKNOWN:
                await life.sleep_until(receipt.look_again)
                receipt = await _reconciled(life, route)
            case PublicationState.SENT:
                receipt = await _confirmed(life, route, receipt)
            case _:
                return receipt
        others = tuple(r for r in life.progress.receipts if r.site != route.name)
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
