"""The waterfall of an article: from a real Temporal run, and from span files in every half-finished state."""

import asyncio
import json
import sysconfig
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import Tracer, get_current_span
from rich.console import Console
from temporalio import activity, workflow
from temporalio.common import RetryPolicy
from temporalio.contrib.opentelemetry import TracingInterceptor
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from citeloop import telemetry
from citeloop.telemetry import Attribute, SpanEvent, SpanLine
from starter import trace

ARTICLE = "01JD9Z3W5R8QK7T1V2X4Y6Z8AA"
OTHER = "01JD9Z3W5R8QK7T1V2X4Y6Z8BB"
WORKFLOW = f"article/TENANT/{ARTICLE}"
SECOND = 1_000_000_000


def span(name: str, number: int, *, parent: int | None = None, run: str = "", of: str = "", **more: object) -> SpanLine:
    attributes: dict[str, object] = {"temporalRunID": run} if run else {}
    if of:
        attributes["temporalWorkflowID"] = f"article/TENANT/{of}"
    fields = {
        "trace_id": "a" * 32,
        "span_id": f"{number:016x}",
        "parent_id": None if parent is None else f"{parent:016x}",
        "name": name,
        "kind": "internal",
        "start_ns": number * SECOND,
        "end_ns": number * SECOND + SECOND // 2,
        "status": "unset",
        "attributes": attributes,
    }
    given = dict(more)
    extra = given.pop("attributes", {})
    assert isinstance(extra, dict)
    attributes.update(extra)
    return SpanLine.model_validate({**fields, **given})


def write(home: Path, file: str, *spans: SpanLine, tail: str = "") -> None:
    path = home / "traces" / file
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{one.model_dump_json()}\n" for one in spans) + tail)


def shown(home: Path) -> str:
    console = Console(file=StringIO(), width=160)
    trace.render(trace.load(home, ARTICLE), console)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_before_anything_is_traced_the_waterfall_says_so(tmp_path: Path) -> None:
    assert "No spans" in shown(tmp_path)


def test_spans_of_several_processes_make_one_waterfall(tmp_path: Path) -> None:
    write(
        tmp_path,
        "worker-1.jsonl",
        span("RunWorkflow:Article", 1, run="R", of=ARTICLE),
        span("StartActivity:writing.generate", 2, parent=1, run="R", of=ARTICLE),
    )
    write(tmp_path, "worker-2.jsonl", span("RunActivity:writing.generate", 5, parent=2, run="R", of=ARTICLE))
    write(tmp_path, "worker-3.jsonl", span("POST", 6, parent=5))
    found = trace.rows(trace.load(tmp_path, ARTICLE))
    assert [(row.depth, row.label) for row in found] == [
        (0, "Article workflow"),
        (1, "writing.generate"),
        (2, "POST"),
    ]
    assert found[1].waited_from_ns == 2 * SECOND


def test_a_half_written_last_line_and_foreign_lines_are_skipped(tmp_path: Path) -> None:
    good = span("RunWorkflow:Article", 1, run="R", of=ARTICLE)
    write(tmp_path, "worker-1.jsonl", good, tail=f"not json {ARTICLE}\n" + good.model_dump_json()[:90])
    assert trace.load(tmp_path, ARTICLE).spans == (good,)


def test_a_span_read_twice_around_a_rotation_counts_once(tmp_path: Path) -> None:
    one = span("RunWorkflow:Article", 1, run="R", of=ARTICLE)
    write(tmp_path, "worker-1.jsonl", one)
    write(tmp_path, "worker-1.jsonl.1", one)
    assert trace.load(tmp_path, ARTICLE).spans == (one,)


def test_a_call_whose_activity_still_runs_is_shown_without_its_parent(tmp_path: Path) -> None:
    write(
        tmp_path,
        "worker-1.jsonl",
        span("RunWorkflow:Article", 1, run="R", of=ARTICLE),
        span("StartActivity:writing.generate", 2, parent=1, run="R", of=ARTICLE),
        span("POST", 4, parent=99),
    )
    found = {row.label: row for row in trace.rows(trace.load(tmp_path, ARTICLE))}
    assert found["POST"].end_ns is not None
    assert found["writing.generate"].end_ns is None
    assert found["writing.generate"].outcome == "waits or runs"
    assert found["Article workflow"].outcome == "running"


def test_in_a_trace_shared_with_its_campaign_only_this_articles_spans_are_taken(tmp_path: Path) -> None:
    write(
        tmp_path,
        "worker-1.jsonl",
        span("RunWorkflow:Campaign", 1, run="C", attributes={"temporalWorkflowID": "campaign/TENANT/X"}),
        span("RunWorkflow:Article", 2, parent=1, run="R", of=ARTICLE),
        span("RunActivity:writing.generate", 3, parent=2, run="R", of=ARTICLE),
        span("POST ours", 4, parent=3),
        span("RunWorkflow:Article", 5, parent=1, run="S", of=OTHER),
        span("RunActivity:writing.generate", 6, parent=5, run="S", of=OTHER),
        span("POST theirs", 7, parent=6),
        span("POST whose", 8, parent=98),
    )
    names = [one.name for one in trace.load(tmp_path, ARTICLE).spans]
    assert names == ["RunWorkflow:Article", "RunActivity:writing.generate", "POST ours"]


def test_a_span_known_only_by_its_article_attribute_belongs_to_it(tmp_path: Path) -> None:
    write(tmp_path, "api-1.jsonl", span("POST /callbacks", 3, attributes={Attribute.ARTICLE: ARTICLE}))
    assert [row.label for row in trace.rows(trace.load(tmp_path, ARTICLE))] == ["POST /callbacks"]


def test_between_two_attempts_the_next_one_is_announced(tmp_path: Path) -> None:
    failed = {"status": "error", "status_message": "overloaded: busy"}
    spans = [
        span("RunWorkflow:Article", 1, run="R", of=ARTICLE),
        span("StartActivity:writing.generate", 2, parent=1, run="R", of=ARTICLE),
        span("RunActivity:writing.generate", 3, parent=2, run="R", of=ARTICLE, **failed),
    ]
    write(tmp_path, "worker-1.jsonl", *spans)
    assert trace.rows(trace.load(tmp_path, ARTICLE))[-1].outcome == "next attempt"

    second = span("RunActivity:writing.generate", 4, parent=2, run="R", of=ARTICLE)
    write(tmp_path, "worker-1.jsonl", *spans, second)
    assert [row.outcome for row in trace.rows(trace.load(tmp_path, ARTICLE))[1:]] == ["error", "ok"]

    moved_on = span("StartActivity:writing.generate", 5, parent=1, run="R", of=ARTICLE)
    write(tmp_path, "worker-1.jsonl", *spans, moved_on)
    assert [row.outcome for row in trace.rows(trace.load(tmp_path, ARTICLE))[1:]] == ["error", "waits or runs"]


def test_a_run_that_went_on_as_another_is_not_running_any_more(tmp_path: Path) -> None:
    write(
        tmp_path,
        "worker.jsonl",
        span("RunWorkflow:Article", 1, run="first", of=ARTICLE),
        span("RunWorkflow:Article", 5, run="second", of=ARTICLE),
    )
    first, second = trace.rows(trace.load(tmp_path, ARTICLE))
    assert (first.end_ns, first.outcome) == (5 * SECOND, "continued")
    assert (second.end_ns, second.outcome) == (None, "running")


def test_errors_are_shown_with_their_message_and_square_brackets_survive(tmp_path: Path) -> None:
    write(
        tmp_path,
        "worker-1.jsonl",
        span("RunWorkflow:Article", 1, run="R", of=ARTICLE),
        span(
            "RunActivity:writing.generate",
            3,
            run="R",
            of=ARTICLE,
            status="error",
            status_message="garbled: [bold]HTML[/bold]\nsecond line",
            attributes={Attribute.CHANNEL: "qwen", Attribute.ATTEMPT: 2, Attribute.OUTCOME: "garbled"},
        ),
    )
    text = shown(tmp_path)
    assert "garbled: [bold]HTML[/bold]" in text
    assert "second line" not in text
    (line,) = [line for line in text.splitlines() if "writing.generate" in line]
    assert line.split()[:4] == ["writing.generate", "qwen", "2", "garbled"]


def test_a_wait_that_was_recorded_as_an_exception_is_no_failure(tmp_path: Path) -> None:
    waited = SpanEvent(name="exception", at_ns=4 * SECOND, attributes={"exception.message": "rate limited"})
    write(tmp_path, "w-1.jsonl", span("RunActivity:writing.generate", 3, run="R", of=ARTICLE, events=(waited,)))
    assert not trace.rows(trace.load(tmp_path, ARTICLE))[-1].failed


def test_queries_are_left_out_and_signals_are_shown(tmp_path: Path) -> None:
    write(
        tmp_path,
        "worker-1.jsonl",
        span("RunWorkflow:Article", 1, run="R", of=ARTICLE),
        span("HandleQuery:progress", 2, run="R", of=ARTICLE),
        span("HandleSignal:pause", 3, run="R", of=ARTICLE),
    )
    assert [row.label for row in trace.rows(trace.load(tmp_path, ARTICLE))] == ["Article workflow", "signal pause"]


def test_json_is_the_list_of_spans_with_whole_ids(tmp_path: Path) -> None:
    write(tmp_path, "worker-1.jsonl", span("RunWorkflow:Article", 1, run="R", of=ARTICLE))
    (one,) = json.loads(trace.as_json(trace.load(tmp_path, ARTICLE)))
    assert one["name"] == "RunWorkflow:Article"
    assert len(one["trace_id"]) == 32
    assert json.loads(trace.as_json(trace.load(tmp_path, OTHER))) == []


@pytest.mark.parametrize("width", [60, 100, 200])
def test_it_renders_at_any_width(width: int, tmp_path: Path) -> None:
    write(
        tmp_path,
        "worker-1.jsonl",
        span("RunWorkflow:Article", 1, run="R", of=ARTICLE),
        span("RunActivity:writing.generate", 500_000, run="R", of=ARTICLE),
    )
    console = Console(file=StringIO(), width=width)
    trace.render(trace.load(tmp_path, ARTICLE), console)
    assert isinstance(console.file, StringIO)
    assert "5.8 d" in console.file.getvalue()


class Writing:
    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    @activity.defn(name="writing.generate")
    async def generate(self) -> str:
        attempt = activity.info().attempt
        get_current_span().set_attributes({Attribute.CHANNEL: "deepseek", Attribute.ATTEMPT: attempt})
        with self._tracer.start_as_current_span("POST /chat/completions") as call:
            call.set_attribute("http.response.status_code", 503 if attempt == 1 else 200)
            await asyncio.sleep(0.05)
        if attempt == 1:
            raise RuntimeError("overloaded: come back later")
        return "text"


@workflow.defn(name="Article")
class OneStage:
    def __init__(self) -> None:
        self.free = False

    @workflow.run
    async def run(self) -> None:
        await workflow.execute_activity(
            "writing.generate",
            start_to_close_timeout=timedelta(seconds=10),
            retry_policy=RetryPolicy(initial_interval=timedelta(milliseconds=100)),
        )
        await workflow.wait_condition(lambda: self.free)

    @workflow.signal
    def resume(self) -> None:
        self.free = True


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[TracerProvider]:
    made = telemetry.configure("worker", home=tmp_path, otlp_endpoint=None)
    yield made
    telemetry.shutdown(made)


async def test_a_real_run_is_followed_while_it_runs_and_to_its_end(provider: TracerProvider, tmp_path: Path) -> None:
    temporal = Path(sysconfig.get_path("scripts")) / "temporal"
    tracer = provider.get_tracer("temporal")
    async with await WorkflowEnvironment.start_local(
        dev_server_existing_path=str(temporal),
        dev_server_extra_args=["--dynamic-config-value", 'history.timerProcessorMaxTimeShift="10ms"'],
        interceptors=[TracingInterceptor(tracer, always_create_workflow_spans=True)],
    ) as env:
        worker = Worker(
            env.client,
            task_queue="q",
            workflows=[OneStage],
            activities=[Writing(tracer).generate],
            workflow_runner=UnsandboxedWorkflowRunner(),
        )
        async with worker:
            handle = await env.client.start_workflow(OneStage.run, id=WORKFLOW, task_queue="q")
            for _ in range(100):
                found = trace.rows(trace.load(tmp_path, ARTICLE))
                if len([row for row in found if row.label == "writing.generate"]) == 2:
                    break
                await asyncio.sleep(0.1)
            head = next(row for row in found if row.label == "Article workflow")
            assert (head.outcome, head.end_ns) == ("running", None)

            await handle.signal("resume")
            await handle.result()
    telemetry.shutdown(provider)

    found = trace.rows(trace.load(tmp_path, ARTICLE))
    attempts = [row for row in found if row.label == "writing.generate"]
    assert [(row.attempt, row.failed, row.channel) for row in attempts] == [
        ("1", True, "deepseek"),
        ("2", False, "deepseek"),
    ]
    assert "overloaded: come back later" in attempts[0].message
    assert attempts[1].waited_from_ns == attempts[0].end_ns
    calls = [row for row in found if row.label == "POST /chat/completions"]
    assert [(row.depth, row.outcome) for row in calls] == [(2, "503"), (2, "200")]
    assert "signal resume" in [row.label for row in found]
    head = next(row for row in found if row.label == "Article workflow")
    assert head.end_ns is not None
    assert head.outcome == ""
