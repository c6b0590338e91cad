"""Spans end up in a file or at a collector, soon, once, and without secrets."""

import json
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.trace import Link, SpanKind, Status, StatusCode

from citeloop import telemetry
from citeloop.telemetry import Attribute, FileExporter, Scrubbed, SpanLine


def lines(home: Path) -> list[SpanLine]:
    return [
        SpanLine.model_validate_json(line)
        for file in sorted((home / "traces").glob("*.jsonl*"))
        for line in file.read_text().splitlines()
    ]


def until(ready: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if ready():
            return True
        time.sleep(0.02)
    return False


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[TracerProvider]:
    made = telemetry.configure("worker", home=tmp_path, otlp_endpoint=None)
    yield made
    telemetry.shutdown(made)


def test_a_span_is_one_line_with_its_ids_times_status_links_and_events(
    provider: TracerProvider, tmp_path: Path
) -> None:
    tracer = provider.get_tracer("test")
    with tracer.start_as_current_span("campaign") as campaign:
        pass
    with tracer.start_as_current_span(
        "writing.generate",
        kind=SpanKind.SERVER,
        links=[Link(campaign.get_span_context())],
        attributes={Attribute.ARTICLE: "A1", Attribute.ATTEMPT: 2, "tags": ["a", "b"]},
    ) as parent:
        with tracer.start_as_current_span("POST /chat/completions", kind=SpanKind.CLIENT):
            pass
        parent.add_event("retry", {"delay_s": 1.5})
        parent.set_status(Status(StatusCode.ERROR, "overloaded: try later"))
    telemetry.shutdown(provider)

    by_name = {line.name: line for line in lines(tmp_path)}
    generate, call = by_name["writing.generate"], by_name["POST /chat/completions"]
    assert call.parent_id == generate.span_id
    assert call.trace_id == generate.trace_id != by_name["campaign"].trace_id
    assert (generate.kind, call.kind) == ("server", "client")
    assert generate.start_ns <= call.start_ns <= call.end_ns <= generate.end_ns
    assert (generate.status, generate.status_message) == ("error", "overloaded: try later")
    assert generate.attributes == {"citeloop.article": "A1", "citeloop.attempt": 2, "tags": ("a", "b")}
    assert generate.links[0].span_id == by_name["campaign"].span_id
    assert generate.events[0].name == "retry"
    assert generate.events[0].attributes == {"delay_s": 1.5}
    assert generate.service == "worker"


def test_the_trace_id_stands_first_on_the_line(provider: TracerProvider, tmp_path: Path) -> None:
    with provider.get_tracer("test").start_as_current_span("one"):
        pass
    telemetry.shutdown(provider)
    (file,) = (tmp_path / "traces").iterdir()
    assert file.read_text().startswith('{"trace_id":"')


def test_a_finished_span_is_in_the_file_within_a_second_while_the_process_runs_on(
    provider: TracerProvider, tmp_path: Path
) -> None:
    with provider.get_tracer("test").start_as_current_span("one"):
        pass
    assert until(lambda: len(lines(tmp_path)) == 1, 1.0)


def test_the_resource_names_the_service_and_the_process(provider: TracerProvider) -> None:
    assert provider.resource.attributes["service.name"] == "worker"
    assert provider.resource.attributes["service.instance.id"]


def test_a_full_file_is_rotated_and_only_the_newest_are_kept(tmp_path: Path) -> None:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(FileExporter(tmp_path / "traces", "worker", rotate_at=1, kept=3)))
    tracer = provider.get_tracer("test")
    for number in range(7):
        with tracer.start_as_current_span(f"span {number}"):
            pass
    provider.shutdown()

    files = sorted((tmp_path / "traces").iterdir())
    assert [file.suffix for file in files] == [".jsonl", ".1", ".2", ".3"]
    assert [json.loads(file.read_text())["name"] for file in files] == [
        "span 6",
        "span 5",
        "span 4",
        "span 3",
    ]


def test_a_directory_that_cannot_be_written_loses_spans_but_raises_nothing(tmp_path: Path) -> None:
    exporter = FileExporter(tmp_path / "traces", "worker")
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    (tmp_path / "traces").rmdir()
    with provider.get_tracer("test").start_as_current_span("lost"):
        pass
    (tmp_path / "traces").mkdir()
    with provider.get_tracer("test").start_as_current_span("kept"):
        pass
    assert [line.name for line in lines(tmp_path)] == ["kept"]


SECRETS = [
    "Authorization: Bearer abcdef0123456789",
    "header was Bearer eyJhbGciOiJIUzI1NiJ9.e30.x",
    "Basic dXNlcjpwYXNzd29yZA==",
    "key sk-live0123456789abcdef",
    "pplx-0123456789abcdef0123",
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "postgresql://app:hunter2hunter2@db/citeloop",
    "https://api.example.com/v1?key=0123456789&x=1",
    "bce-v3/ALTAK-0123456789/abcdef",
]


@pytest.mark.parametrize("secret", SECRETS)
def test_what_looks_like_a_secret_is_blanked(secret: str) -> None:
    scrubbed = telemetry.scrub(f"before {secret} after")
    assert telemetry.REDACTED in scrubbed
    assert scrubbed.startswith("before ")
    assert scrubbed.endswith(" after")
    for part in ("0123456789", "eyJhbGci", "dXNlcjpw", "MfKQ9r8G", "hunter2"):
        assert part not in scrubbed


@pytest.mark.parametrize(
    "text",
    [
        "rate_limited: 429, try again in 7 s",
        "向量数据库怎么选型",
        "https://api.deepseek.com/v1/chat/completions",
        "http://127.0.0.1:4318/v1/traces?page=2",
        "article/01JD9Z3W5R8QK7T1V2X4Y6Z8A0/01JD9Z3W5R8QK7T1V2X4Y6Z8A1",
        "the basic plan, risk-adjusted",
        "disk-based index",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert telemetry.scrub(text) == text


def test_secrets_leave_neither_by_attributes_nor_events_nor_status(provider: TracerProvider, tmp_path: Path) -> None:
    secret = "sk-live0123456789abcdef"

    def call() -> None:
        with provider.get_tracer("test").start_as_current_span("call") as span:
            span.set_attribute("http.request.header.authorization", "opaque")
            span.set_attribute("db.password", "opaque")
            span.set_attribute("note", [f"with {secret}", "clean"])
            span.set_attribute("usage.input_tokens", 12)
            span.add_event("sent", {"header": f"Bearer {secret}"})
            raise ValueError(f"refused key {secret}")

    with pytest.raises(ValueError, match="sk-live"):
        call()
    telemetry.shutdown(provider)

    (line,) = lines(tmp_path)
    text = line.model_dump_json()
    assert secret not in text
    assert "opaque" not in text
    assert line.attributes["usage.input_tokens"] == 12
    assert line.attributes["note"] == (f"with {telemetry.REDACTED}", "clean")
    assert "refused key" in line.status_message
    assert [event.name for event in line.events] == ["sent", "exception"]


@pytest.fixture
def collector() -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    received: list[tuple[str, bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", received
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("suffix", ["", "/", "/v1/traces"])
def test_with_an_otlp_endpoint_spans_go_there_scrubbed_and_no_file_is_made(
    suffix: str, collector: tuple[str, list[tuple[str, bytes]]], tmp_path: Path
) -> None:
    address, received = collector
    provider = telemetry.configure("api", home=tmp_path, otlp_endpoint=address + suffix)
    with provider.get_tracer("test").start_as_current_span("call", attributes={"x": "Bearer 0123456789abcdef"}):
        pass
    telemetry.shutdown(provider)

    ((path, body),) = received
    assert path == "/v1/traces"
    (resource,) = ExportTraceServiceRequest.FromString(body).resource_spans
    assert any(a.key == "service.name" and a.value.string_value == "api" for a in resource.resource.attributes)
    (span,) = resource.scope_spans[0].spans
    assert span.attributes[0].value.string_value == telemetry.REDACTED
    assert not list(tmp_path.iterdir())


def test_the_scrubber_passes_flush_and_shutdown_on(tmp_path: Path) -> None:
    inner = FileExporter(tmp_path / "traces", "worker")
    assert Scrubbed(inner).force_flush()
