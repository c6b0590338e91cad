"""Where spans go: to an OTLP collector, or to files that `citeloop trace` reads; never with a secret."""

import contextlib
import os
import re
import socket
import time
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from threading import Lock

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_INSTANCE_ID, SERVICE_NAME, Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Link, Status
from opentelemetry.util.types import AttributeValue
from pydantic import Field

from citeloop.models.record import Record

FLUSH_EVERY_MS = 400
ROTATE_AT = 50 * 1024 * 1024
ROTATED_KEPT = 5
KEEP_FOR_SECONDS = 14 * 24 * 3600


class Attribute(StrEnum):
    """What a span of ours says of itself, beside the conventions of OpenTelemetry and Temporal."""

    TENANT = "citeloop.tenant"
    CAMPAIGN = "citeloop.campaign"
    ARTICLE = "citeloop.article"
    STAGE = "citeloop.stage"
    CHANNEL = "citeloop.channel"
    ATTEMPT = "citeloop.attempt"
    OUTCOME = "citeloop.outcome"


Scalar = str | bool | int | float
Value = Scalar | tuple[Scalar, ...]


class SpanEvent(Record):
    name: str
    at_ns: int
    attributes: dict[str, Value] = Field(default_factory=dict)


class SpanLink(Record):
    trace_id: str
    span_id: str


class SpanLine(Record):
    """One finished span, as it stands on one line of a trace file. Ids in hex, times in UTC ns since 1970."""

    trace_id: str
    """First on the line, so that a reader can pick a trace without parsing the rest."""
    span_id: str
    parent_id: str | None
    name: str
    kind: str
    start_ns: int
    end_ns: int
    status: str
    status_message: str = ""
    service: str = ""
    attributes: dict[str, Value] = Field(default_factory=dict)
    links: tuple[SpanLink, ...] = ()
    events: tuple[SpanEvent, ...] = ()


def configure(service: str, *, home: Path, otlp_endpoint: str | None) -> TracerProvider:
    """Give this process its tracer provider, set as the global one too; end it with `shutdown`.

    otlp_endpoint: base address of an OTLP/HTTP collector (the meaning of OTEL_EXPORTER_OTLP_ENDPOINT);
    None writes `<home>/traces/<service>-<pid>.jsonl`.
    """
    exporter: SpanExporter
    if otlp_endpoint:
        exporter = OTLPSpanExporter(endpoint=f"{otlp_endpoint.rstrip('/').removesuffix('/v1/traces')}/v1/traces")
    else:
        exporter = FileExporter(home / "traces", service)
    instance = f"{socket.gethostname()}-{os.getpid()}"
    provider = TracerProvider(resource=Resource.create({SERVICE_NAME: service, SERVICE_INSTANCE_ID: instance}))
    provider.add_span_processor(
        BatchSpanProcessor(Scrubbed(exporter), schedule_delay_millis=FLUSH_EVERY_MS, max_queue_size=16_384)
    )
    trace.set_tracer_provider(provider)
    return provider


def shutdown(provider: TracerProvider) -> None:
    """Write what is still queued and stop; also before an exit that skips Python's own teardown."""
    provider.shutdown()


class FileExporter(SpanExporter):
    """One span a line. Each batch is one write to a file of this process alone, so lines never mix."""

    def __init__(self, directory: Path, service: str, *, rotate_at: int = ROTATE_AT, kept: int = ROTATED_KEPT) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        _forget_old(directory, service)
        self._path = directory / f"{service}-{os.getpid()}.jsonl"
        self._service = service
        self._rotate_at = rotate_at
        self._kept = kept
        self._lock = Lock()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        lines = "".join(f"{_line(span, self._service).model_dump_json()}\n" for span in spans)
        try:
            with self._lock:
                self._rotate()
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(lines)
        except OSError:
            return SpanExportResult.FAILURE
        return SpanExportResult.SUCCESS

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        del timeout_millis
        return True

    def _rotate(self) -> None:
        if not self._path.exists() or self._path.stat().st_size < self._rotate_at:
            return
        for number in range(self._kept - 1, 0, -1):
            with contextlib.suppress(FileNotFoundError):
                self._rotated(number).replace(self._rotated(number + 1))
        self._path.replace(self._rotated(1))

    def _rotated(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")


def _forget_old(directory: Path, service: str) -> None:
    """Every start of a process opens a new file; those not written to for two weeks go."""
    for file in directory.glob(f"{service}-*.jsonl*"):
        with contextlib.suppress(FileNotFoundError):
            if time.time() - file.stat().st_mtime > KEEP_FOR_SECONDS:
                file.unlink()


def _line(span: ReadableSpan, service: str) -> SpanLine:
    context = span.get_span_context()
    assert context is not None
    return SpanLine(
        trace_id=f"{context.trace_id:032x}",
        span_id=f"{context.span_id:016x}",
        parent_id=f"{span.parent.span_id:016x}" if span.parent else None,
        name=span.name,
        kind=span.kind.name.lower(),
        start_ns=span.start_time or 0,
        end_ns=span.end_time or 0,
        status=span.status.status_code.name.lower(),
        status_message=span.status.description or "",
        service=service,
        attributes=_plain(span.attributes),
        links=tuple(
            SpanLink(trace_id=f"{link.context.trace_id:032x}", span_id=f"{link.context.span_id:016x}")
            for link in span.links
        ),
        events=tuple(
            SpanEvent(name=event.name, at_ns=event.timestamp, attributes=_plain(event.attributes))
            for event in span.events
        ),
    )


def _plain(attributes: Mapping[str, AttributeValue] | None) -> dict[str, Value]:
    return {key: _as_value(value) for key, value in (attributes or {}).items()}


def _as_value(value: AttributeValue) -> Value:
    if isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Sequence):
        return tuple(item if isinstance(item, str | bool | int | float) else str(item) for item in value)
    return str(value)


class Scrubbed(SpanExporter):
    """The last line of defence: what looks like a secret leaves no process, whichever exporter is used."""

    def __init__(self, inner: SpanExporter) -> None:
        self._inner = inner

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return self._inner.export([_scrub_span(span) for span in spans])

    def shutdown(self) -> None:
        self._inner.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._inner.force_flush(timeout_millis)


REDACTED = "[redacted]"
_SECRET_KEY = re.compile(
    r"(?i)(^|[._-])(authorization|proxy[._-]authorization|api[._-]?key|access[._-]?key|cookie|set[._-]cookie|"
    r"password|passwd|secret|credentials?|(access|refresh|bearer|auth)[._-]?token|token)$"
)
_SECRET_TEXT = re.compile(
    r"""(?ix)
      \b(?:bearer|basic|ghost|client-id)\s+[a-z0-9+/._~=:-]{8,}  # an Authorization header's value
    | \bauthorization["']?\s*[:=]\s*["']?(?:[a-z-]+\s+)?[^\s"',;]+
    | \b(?:sk|pk|rk|pplx|gsk|xai|ak|whsec|pat|tok)[-_][a-z0-9+/=_-]{12,}  # keys by their customary prefixes
    | \bbce-v3/[a-z0-9/_-]{12,}
    | \bAIza[a-z0-9_-]{20,}
    | (?<=://)[^/\s:@]+:[^/\s@]+(?=@)                                    # user:password@ in an address
    | (?<=[?&])(?:api_?key|access_token|token|key|sign|signature|secret|password)=[^&\s"']+
    """
)


@lru_cache(maxsize=4096)  # ids, names and addresses come back in span after span
def scrub(text: str) -> str:
    """`text` with everything that looks like a key, a password or an Authorization value blanked."""
    return _SECRET_TEXT.sub(REDACTED, text)


@lru_cache(maxsize=512)
def _is_secret(key: str) -> bool:
    return _SECRET_KEY.search(key) is not None


def _scrub_attributes(attributes: Mapping[str, AttributeValue] | None) -> dict[str, AttributeValue]:
    return {key: _scrub_value(key, value) for key, value in (attributes or {}).items()}


def _scrub_value(key: str, value: AttributeValue) -> AttributeValue:
    if isinstance(value, bool | int | float):
        return value
    if _is_secret(key):
        return REDACTED
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, Sequence):
        return [scrub(item) if isinstance(item, str) else item for item in value]
    return scrub(str(value))


def _scrub_span(span: ReadableSpan) -> ReadableSpan:
    return ReadableSpan(
        name=scrub(span.name),
        context=span.get_span_context(),
        parent=span.parent,
        resource=span.resource,
        attributes=_scrub_attributes(span.attributes),
        events=[Event(e.name, _scrub_attributes(e.attributes), e.timestamp) for e in span.events],
        links=[Link(link.context, _scrub_attributes(link.attributes)) for link in span.links],
        kind=span.kind,
        status=Status(span.status.status_code, scrub(span.status.description) if span.status.description else None),
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )
