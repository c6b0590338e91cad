"""CorrectionWorkflow: one page on one site is corrected or withdrawn, also weeks after its article has ended."""

import contextlib

from temporalio import workflow
from temporalio.exceptions import ActivityError, FailureError

with workflow.unsafe.imports_passed_through():
    from citeloop.models import ids
    from citeloop.models.plan import Stage
    from citeloop.models.work import CorrectionKind, PublicationState, Receipt, Step

from workflows import options
from workflows.orders import CorrectionOrder
from workflows.stages import Correcting, Errand, GivenUp, Inspecting, PageQuery


@workflow.defn(name="Correction")
class CorrectionWorkflow:
    """One for each page, so that two people's corrections are carried out one after the other."""

    @workflow.init
    def __init__(self, order: CorrectionOrder) -> None:
        self._page = order.page
        self._asked = True

    @workflow.run
    async def run(self, _: CorrectionOrder) -> int:
        """How many corrections it has seen to their end."""
        ended = 0
        while self._asked:
            self._asked = False
            while (errand := await self._next()) is not None:
                await self._see_to(errand)
                ended += 1
        return ended

    async def _next(self) -> Errand | None:
        return await workflow.execute_local_activity_method(Correcting.next, self._page, **options.ledger())

    async def _see_to(self, errand: Errand) -> None:
        try:
            receipt = await workflow.execute_activity_method(Correcting.carry_out, errand, **options.errand(errand))
        except ActivityError as error:
            given_up = GivenUp(page=self._page, correction_id=errand.correction_id, problem=str(error.cause or error))
            await workflow.execute_local_activity_method(Correcting.give_up, given_up, **options.ledger())
            return
        if receipt.state is PublicationState.WITHDRAWN:
            await self._tell_article()
        elif errand.kind is CorrectionKind.CORRECT:
            await self._look_at(errand, receipt)

    async def _tell_article(self) -> None:
        """A page that is gone is measured no longer; an article that has ended need not know."""
        article = workflow.get_external_workflow_handle(ids.workflow_id(self._page.tenant_id, self._page.article_id))
        with contextlib.suppress(FailureError):
            await article.signal("withdrawn", self._page.site)

    async def _look_at(self, errand: Errand, receipt: Receipt) -> None:
        step = Step(
            tenant_id=self._page.tenant_id,
            campaign_id=None,
            article_id=self._page.article_id,
            plan_digest="",
            stage=Stage.PUBLISH,
            route=receipt.site,
            draft_id=errand.draft_id,
        )
        with contextlib.suppress(ActivityError):
            await workflow.execute_activity_method(
                Inspecting.page, PageQuery(step=step), **options.errand_inspection(errand)
            )

    @workflow.signal
    def asked(self) -> None:
        """Something more is to be done; what, stands in the store."""
        self._asked = True
