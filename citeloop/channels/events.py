"""Server-sent events, decoded from bytes: https://html.spec.whatwg.org/multipage/server-sent-events.html."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

# str.splitlines would also split at U+2028 and U+0085, which may stand inside a JSON string.
_LINE_END = re.compile(r"\r\n|\n|\r")
_FAILURES = frozenset({"error", "exception"})


@dataclass(frozen=True, slots=True)
class Event:
    lines: tuple[str, ...]
    failed: bool = False
    """Named `event: error`, or sent under the field name `error:`, which some gateways use for a failure."""

    @property
    def data(self) -> str:
        return "\n".join(self.lines)


def parse_events(raw: bytes) -> Iterator[Event]:
    """Every event with data, the last one even if unterminated. UnicodeDecodeError for other than UTF-8.

    Comments are skipped. A line that is bare JSON counts as data: some gateways forget the field name.
    """
    lines: list[str] = []
    failed = False
    for line in _LINE_END.split(raw.decode("utf-8")):
        if not line:
            if lines:
                yield Event(tuple(lines), failed)
            lines, failed = [], False
            continue
        if line.startswith("{"):
            lines.append(line)
            continue
        field, _, value = line.partition(":")
        if field == "data":
            lines.append(value.removeprefix(" "))
        elif field == "event":
            failed = failed or value.strip().lower() in _FAILURES
        elif field == "error":
            yield Event((value.strip(),), failed=True)
    if lines:
        yield Event(tuple(lines), failed)
