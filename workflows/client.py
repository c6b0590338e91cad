"""How worker and doors connect to Temporal, and how an article and a campaign are started."""

from datetime import timedelta

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import Link, SpanContext
from temporalio.client import Client
from temporalio.common import (
    SearchAttributePair,
    TypedSearchAttributes,
    WorkflowIDConflictPolicy,
    WorkflowIDReusePolicy,
)
from temporalio.contrib.opentelemetry import TracingInterceptor
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.envconfig import ClientConfig
from temporalio.exceptions import WorkflowAlreadyStartedError

from citeloop.models import ids
from citeloop.models.plan import Plan
from citeloop.models.work import Progress
from workflows import options
from workflows.article import ArticleWorkflow
from workflows.campaign import CampaignWorkflow
from workflows.correction import CorrectionWorkflow
from workflows.orders import ArticleOrder, CampaignOrder, CorrectionOrder
from workflows.stages import PageRef
from workflows.steering import CAMPAIGN, CHANNEL, PRIORITY, STAGE, STATE, TENANT

CONNECT_PATIENCE = timedelta(seconds=5)


async def connect(address: str | None = None, namespace: str | None = None, *, lazy: bool = False) -> Client:
    """A client with our converter and tracing.

    TEMPORAL_* variables and a client profile (TEMPORAL_PROFILE) are honoured; `address` is what to use where
    they name none. RuntimeError when nothing answers there; `lazy`: only when it is first used.
    """
    profile = ClientConfig.load_client_connect_config()
    target = {"target_host": address or "localhost:7233", "namespace": namespace or "default", **profile}
    return await Client.connect(
        **target,  # type: ignore[arg-type]  # the profile's keys are connect's own
        data_converter=pydantic_data_converter,
        interceptors=[TracingInterceptor(always_create_workflow_spans=True)],
        lazy=lazy,
    )


async def start_article(
    client: Client,
    plan: Plan,
    progress: Progress | None = None,
    *,
    again: bool = False,
    link: SpanContext | None = None,
) -> str:
    """Start the article's one workflow, or find it running; returns the run id.

    again: allow a new run although an earlier one ended (a person's retry, from `progress`).
    link: the campaign's span. Each article is a trace of its own, linked to it.
    """
    tracer = trace.get_tracer("citeloop.workflows")
    token = otel_context.attach(otel_context.Context())
    try:
        attributes = {
            "citeloop.tenant": plan.tenant_id,
            "citeloop.campaign": plan.campaign_id or "",
            "citeloop.article": plan.article_id,
        }
        links = [Link(link)] if link is not None and link.is_valid else []
        with tracer.start_as_current_span("article", attributes=attributes, links=links) as root:
            # Ended here, hence exported now: an article that waits for weeks shows no missing parent.
            span = trace.set_span_in_context(trace.NonRecordingSpan(root.get_span_context()))
        inner = otel_context.attach(span)
        try:
            return await _start_article(client, plan, progress, again=again)
        finally:
            otel_context.detach(inner)
    finally:
        otel_context.detach(token)


async def _start_article(client: Client, plan: Plan, progress: Progress | None, *, again: bool) -> str:
    reuse = WorkflowIDReusePolicy.ALLOW_DUPLICATE if again else WorkflowIDReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY
    try:
        handle = await client.start_workflow(
            ArticleWorkflow.run,
            ArticleOrder(plan=plan, progress=progress),
            id=ids.workflow_id(plan.tenant_id, plan.article_id),
            task_queue=options.WORKFLOWS,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            id_reuse_policy=reuse,
            priority=options.priority(plan.tenant_id, plan.weight, options.PRODUCTION),
            search_attributes=TypedSearchAttributes(
                [
                    SearchAttributePair(TENANT, plan.tenant_id),
                    SearchAttributePair(CAMPAIGN, plan.campaign_id or "none"),
                    SearchAttributePair(STAGE, str(plan.stages[0])),
                    SearchAttributePair(STATE, "running"),
                    SearchAttributePair(CHANNEL, _first_channel(plan)),
                    SearchAttributePair(PRIORITY, plan.priority),
                ]
            ),
            static_summary=plan.keyword[:200],
            request_eager_start=True,  # from a worker, which then does the first task itself
        )
    except WorkflowAlreadyStartedError as closed:
        # Done before, and not to be done again: the row in the store tells how it ended.
        return closed.run_id or ""
    return handle.first_execution_run_id or handle.result_run_id or ""


def _first_channel(plan: Plan) -> str:
    routes = plan.routes.get(plan.stages[0], ())
    return routes[0].name if routes else "none"


async def start_campaign(client: Client, order: CampaignOrder) -> str:
    """Start a campaign's one workflow, or find it running; returns the run id."""
    try:
        handle = await client.start_workflow(
            CampaignWorkflow.run,
            order,
            id=ids.campaign_workflow_id(order.tenant_id, order.campaign_id),
            task_queue=options.WORKFLOWS,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY,
            priority=options.priority(order.tenant_id, 1.0, 1),
            search_attributes=TypedSearchAttributes(
                [SearchAttributePair(TENANT, order.tenant_id), SearchAttributePair(CAMPAIGN, order.campaign_id)]
            ),
        )
    except WorkflowAlreadyStartedError as closed:
        return closed.run_id or ""
    return handle.first_execution_run_id or handle.result_run_id or ""


async def start_correction(client: Client, page: PageRef, *, tell: bool = True) -> str:
    """The page's one workflow: started, or found running; returns the run id.

    tell: that more is to be done, so that a run which is about to end looks again.
    """
    handle = await client.start_workflow(
        CorrectionWorkflow.run,
        CorrectionOrder(page=page),
        id=ids.correction_workflow_id(page.tenant_id, page.article_id, page.site),
        task_queue=options.WORKFLOWS,
        id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
        start_signal="asked" if tell else None,
        priority=options.priority(page.tenant_id, 1.0, 1),
        search_attributes=TypedSearchAttributes([SearchAttributePair(TENANT, page.tenant_id)]),
    )
    return handle.first_execution_run_id or handle.result_run_id or ""
