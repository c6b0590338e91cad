"""Names each activity attempt's span: whose article, which stage and channel, which attempt, what came of it."""

from typing import Any

from opentelemetry import trace
from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from citeloop.models.work import SampleStep, Step


class ActivityNames(Interceptor):
    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002
        return _Named(super().intercept_activity(next))


class _Named(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002
        span = trace.get_current_span()
        info = activity.info()
        span.set_attribute("citeloop.attempt", info.attempt)
        span.set_attribute("citeloop.queue", info.task_queue)
        for argument in input.args:
            span.set_attributes(_who(argument))
        try:
            result = await super().execute_activity(input)
        except ApplicationError as error:
            span.set_attribute("citeloop.outcome", error.type or "error")
            raise
        except BaseException as error:
            span.set_attribute("citeloop.outcome", type(error).__name__)
            raise
        span.set_attribute("citeloop.outcome", str(getattr(result, "kind", "ok")))
        return result


def _who(argument: object) -> dict[str, str | int]:
    if isinstance(argument, Step):
        stage, channel = str(argument.stage), argument.route
    elif isinstance(argument, SampleStep):
        stage, channel = "monitor", argument.engine
    else:
        stage, channel = "", ""
    known = {
        "citeloop.tenant": getattr(argument, "tenant_id", None),
        "citeloop.campaign": getattr(argument, "campaign_id", None),
        "citeloop.article": getattr(argument, "article_id", None),
        "citeloop.stage": stage,
        "citeloop.channel": channel,
    }
    return {name: value for name, value in known.items() if value}
