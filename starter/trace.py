"""An article's waterfall, from the trace files of every process that had a hand in it, also while it runs."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from pydantic import TypeAdapter, ValidationError
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from citeloop.models.record import Record
from citeloop.telemetry import Attribute, SpanLine

WORKFLOW_ID = "temporalWorkflowID"
RUN_ID = "temporalRunID"
ID_PREFIX = b'{"trace_id":"'
BAR = 36


class Trace(Record):
    """Everything known of one article, by start time. Parents that are not finished are missing."""

    article_id: str
    spans: tuple[SpanLine, ...] = ()


def load(home: Path, article_id: str) -> Trace:
    """Read every process's file under `<home>/traces`. Half-written and foreign lines are skipped."""
    files = sorted((home / "traces").glob("*.jsonl*"))
    needle = article_id.encode()
    traces = {
        span.trace_id
        for span in _parsed(line for line in _lines(files) if needle in line)
        if _identity(span) == article_id
    }
    wanted = {trace.encode() for trace in traces}
    spans = _parsed(line for line in _lines(files) if _trace_id(line) in wanted)
    return Trace(article_id=article_id, spans=tuple(_of_article(spans, article_id)))


def as_json(trace: Trace) -> str:
    """The spans as a JSON list, for `--json`."""
    return TypeAdapter(tuple[SpanLine, ...]).dump_json(trace.spans, indent=1).decode()


def _lines(files: Iterable[Path]) -> Iterator[bytes]:
    for path in files:
        try:
            with path.open("rb") as file:
                yield from file
        except FileNotFoundError:  # rotated away meanwhile
            continue


def _trace_id(line: bytes) -> bytes | None:
    start = len(ID_PREFIX)
    return line[start : start + 32] if line.startswith(ID_PREFIX) else None


def _parsed(lines: Iterable[bytes]) -> list[SpanLine]:
    """A span that was read twice, as its file was rotated between two reads, counts once."""
    spans: dict[str, SpanLine] = {}
    for line in lines:
        try:
            span = SpanLine.model_validate_json(line)
        except ValidationError:
            continue
        spans[span.span_id] = span
    return sorted(spans.values(), key=lambda span: (span.start_ns, span.end_ns))


def _identity(span: SpanLine) -> str | None:
    """Whose span it says it is: an article's id, or a workflow id that is no article's."""
    if article := span.attributes.get(Attribute.ARTICLE):
        return str(article)
    if workflow := span.attributes.get(WORKFLOW_ID):
        return str(workflow).rpartition("/")[2] if str(workflow).startswith("article/") else str(workflow)
    return None


def _of_article(spans: list[SpanLine], article_id: str) -> Iterator[SpanLine]:
    """Those that say so, and those that say nothing and stand below one that does.

    A span whose parent is still running cannot be placed; it is ours if its trace is nobody else's.
    """
    by_id = {span.span_id: span for span in spans}
    owners: dict[str, set[str]] = defaultdict(set)
    for span in spans:
        if owner := _identity(span):
            owners[span.trace_id].add(owner)
    for span in spans:
        near: SpanLine | None = span
        while near is not None and _identity(near) is None:
            near = by_id.get(near.parent_id or "")
        owner = _identity(near) if near is not None else None
        if owner == article_id or (owner is None and owners[span.trace_id] == {article_id}):
            yield span


@dataclass(frozen=True)
class Row:
    """One line of the waterfall. `end_ns` is None while it is not known to have ended."""

    depth: int
    label: str
    start_ns: int
    end_ns: int | None
    waited_from_ns: int | None = None
    """Since when an activity stood in its queue, or in its backoff."""
    channel: str = ""
    attempt: str = ""
    outcome: str = ""
    failed: bool = False
    message: str = ""


Children = Mapping[str, list[SpanLine]]


def rows(trace: Trace) -> list[Row]:
    """Runs of the workflow, below them activity attempts and signals, below those the calls they made."""
    children: dict[str, list[SpanLine]] = defaultdict(list)
    runs: dict[str, list[SpanLine]] = defaultdict(list)
    known = {span.span_id for span in trace.spans}
    outside: list[SpanLine] = []
    for span in trace.spans:
        if _kind(span) in {"HandleQuery", "QueryWorkflow"}:
            continue
        if run := span.attributes.get(RUN_ID):
            runs[str(run)].append(span)
        elif span.parent_id in known:
            children[str(span.parent_id)].append(span)
        else:
            outside.append(span)
    blocks = [_block(span, children, 0) for span in outside]
    blocks += _runs(runs, children)
    blocks.sort(key=lambda block: block[0].start_ns)
    return [row for block in blocks for row in block]


def _runs(runs: Mapping[str, list[SpanLine]], children: Children) -> list[list[Row]]:
    """One block a run, in order. A run that went on as another leaves no span of its end: the next one tells it."""
    blocks = sorted((_run(spans, children) for spans in runs.values()), key=lambda block: block[0].start_ns)
    for block, following in pairwise(blocks):
        head = block[0]
        if head.end_ns is None:
            block[0] = replace(head, end_ns=following[0].start_ns, outcome="continued")
    return blocks


def _run(spans: list[SpanLine], children: Children) -> list[Row]:
    begun = next((span for span in spans if _kind(span) == "RunWorkflow"), None)
    ended = next((span for span in spans if _kind(span) == "CompleteWorkflow"), None)
    attempts: dict[str | None, list[SpanLine]] = defaultdict(list)
    for span in spans:
        if _kind(span) == "RunActivity":
            attempts[span.parent_id].append(span)
    blocks: list[list[Row]] = []
    for span in spans:
        if _kind(span) == "StartActivity":
            blocks.append(_activity(span, attempts.pop(span.span_id, []), spans, children, over=ended is not None))
        elif _kind(span) not in {"RunActivity", "RunWorkflow", "CompleteWorkflow"}:
            blocks.append(_block(span, children, 1))
    blocks += [_block(span, children, 1) for orphans in attempts.values() for span in orphans]
    blocks.sort(key=lambda block: block[0].start_ns)
    failed, message = _failure(ended) if ended else (False, "")
    head = Row(
        depth=0,
        label=f"{begun.name.partition(':')[2]} workflow" if begun else "workflow",
        start_ns=spans[0].start_ns,
        end_ns=ended.end_ns if ended else None,
        outcome="" if ended else "running",
        failed=failed,
        message=message,
    )
    return [head, *(row for block in blocks for row in block)]


def _activity(
    asked: SpanLine, attempts: list[SpanLine], run: list[SpanLine], children: Children, *, over: bool
) -> list[Row]:
    """Its attempts, each with its wait; and the one that waits or runs now, which has left no span yet."""
    block: list[Row] = []
    since = asked.start_ns
    for attempt in attempts:
        first, *calls = _block(attempt, children, 1)
        block += [replace(first, waited_from_ns=since), *calls]
        since = attempt.end_ns
    open_end = not attempts or (_failure(attempts[-1])[0] and all(span.start_ns < since for span in run))
    if open_end and not over:
        outcome = "waits or runs" if not attempts else "next attempt"
        block.append(
            Row(1, asked.name.partition(":")[2], start_ns=since, end_ns=None, waited_from_ns=since, outcome=outcome)
        )
    elif not block:
        block.append(Row(1, asked.name.partition(":")[2], asked.start_ns, asked.start_ns, outcome="never ran"))
    return block


def _block(span: SpanLine, children: Children, depth: int) -> list[Row]:
    failed, message = _failure(span)
    said = span.attributes.get(Attribute.OUTCOME)
    row = Row(
        depth=depth,
        label=_label(span),
        start_ns=span.start_ns,
        end_ns=span.end_ns,
        channel=str(span.attributes.get(Attribute.CHANNEL, "")),
        attempt=str(span.attributes.get(Attribute.ATTEMPT, "")),
        outcome=str(said) if said else _http_status(span) or ("error" if failed else "ok"),
        failed=failed,
        message=message,
    )
    below = (row for child in children.get(span.span_id, ()) for row in _block(child, children, depth + 1))
    return [row, *below]


def _failure(span: SpanLine) -> tuple[bool, str]:
    """Whether it failed, and the first line of why. A recorded exception without an error status is a wait."""
    messages = [str(e.attributes.get("exception.message", "")) for e in span.events if e.name == "exception"]
    message = span.status_message or (messages[-1] if messages else "")
    return span.status == "error", message.splitlines()[0] if message else ""


def _http_status(span: SpanLine) -> str:
    return str(span.attributes.get("http.response.status_code") or span.attributes.get("http.status_code") or "")


def _kind(span: SpanLine) -> str:
    """`RunActivity` of `RunActivity:writing.generate`; empty for spans that Temporal did not name."""
    kind, colon, _ = span.name.partition(":")
    return kind if colon and kind.isalpha() else ""


_WORDS = {"HandleSignal": "signal", "HandleUpdate": "update", "SignalWorkflow": "send", "StartWorkflow": "start"}


def _label(span: SpanLine) -> str:
    kind, name = _kind(span), span.name.partition(":")[2]
    if kind:
        return f"{_WORDS[kind]} {name}" if kind in _WORDS else name
    return span.name


def render(trace: Trace, console: Console) -> None:
    """Print the waterfall: `·` is waiting in a queue or between attempts, `█` is work, `▒` not over yet."""
    found = rows(trace)
    if not found:
        console.print(f"No spans of article {escape(trace.article_id)} here yet.")
        return
    begin = min(row.waited_from_ns or row.start_ns for row in found)
    end = max(begin + 1, *(span.end_ns for span in trace.spans))
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("span", overflow="fold", ratio=3)
    for name in ("channel", "try", "outcome"):
        table.add_column(name, no_wrap=name != "outcome")
    table.add_column("at", justify="right", no_wrap=True)
    table.add_column("took", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True, width=BAR)
    for row in found:
        style = "red" if row.failed else "dim" if row.depth > 1 else ""
        took = "…" if row.end_ns is None else _span_of(row.end_ns - row.start_ns)
        cells = (row.channel, row.attempt, row.outcome, f"+{_span_of(row.start_ns - begin)}", took)
        label = "  " * row.depth + row.label
        table.add_row(*(Text(cell, style) for cell in (label, *cells)), Text(_bar(row, begin, end), style))
        if row.failed and row.message:
            table.add_row(Text("  " * (row.depth + 1) + row.message[:300], "red"))
    console.print(table)


def _bar(row: Row, begin: int, end: int) -> str:
    def column(at: int) -> int:
        return min(BAR - 1, (at - begin) * BAR // (end - begin))

    queued, start = column(row.waited_from_ns or row.start_ns), column(row.start_ns)
    stop = BAR if row.end_ns is None else max(column(row.end_ns), start + 1)
    return " " * queued + "·" * (start - queued) + ("▒" if row.end_ns is None else "█") * (stop - start)


def _span_of(nanoseconds: int) -> str:
    seconds = nanoseconds / 1e9
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.2f} s"
