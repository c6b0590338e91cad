"""Today's article with two stages changed round: what a careless change looks like to an open run."""

from temporalio import workflow

from citeloop.models.plan import Stage
from citeloop.models.work import Ended
from workflows.article import ArticleWorkflow
from workflows.orders import ArticleOrder


@workflow.defn(name="Article")
class HastyArticle(ArticleWorkflow):
    @workflow.init
    def __init__(self, order: ArticleOrder) -> None:
        super().__init__(order)

    @workflow.run
    async def run(self, order: ArticleOrder) -> Ended:
        await self._through(Stage.GENERATE, self._generate)
        await self._through(Stage.ILLUSTRATE, self._illustrate)
        return await super().run(order)
