"""What is to be done with a reply, in the words of the fault file (tests/channels/wire_faults.jsonl).

`retry_after:1.45`, `reschedule:next_day`, `retry_with_change:shorten_input`: derived from the judgement alone.
"""

from citeloop.channels.errors import ChannelError, Fault, Remedy
from citeloop.channels.scrubbing import scrub
from citeloop.models.record import Record

LONGEST_RATE_WAIT = 120.0
"""Seconds: a longer delay is slept by nobody, the job comes back later (openai-python refuses above this)."""
LONGEST_OUTAGE_WAIT = 600.0
"""Seconds: an outage with its end named, such as WordPress' maintenance, is waited for in place."""
_BY_FAULT = {
    Fault.REFUSED: "refuse_content",
    Fault.UNKNOWN: "reconcile_then_retry",
    Fault.UNAUTHORIZED: "fail_permanent",
    Fault.INVALID: "fail_permanent",
}
_CHANGED = frozenset({Fault.INVALID, Fault.GARBLED, Fault.REFUSED})


class Judgement(Record):
    """One reply, judged. `kind` is a Fault's value, or `ok`."""

    handling: str
    kind: str
    delay_s: float | None = None
    why: str
    request_id: str = ""


def accepted(why: str, *, request_id: str = "") -> Judgement:
    return Judgement(handling="accept_with_note", kind="ok", why=scrub(why), request_id=request_id)


def unfinished(remedy: Remedy, why: str) -> Judgement:
    """Nothing is wrong, but more requests are needed."""
    return Judgement(handling=remedy, kind="ok", why=scrub(why))


def judgement_of(error: ChannelError) -> Judgement:
    return Judgement(
        handling=handling_of(error),
        kind=error.fault,
        delay_s=error.delay.total_seconds() if error.delay else None,
        why=error.message,
        request_id=error.request_id,
    )


def handling_of(error: ChannelError) -> str:
    if error.remedy is not None:
        return error.remedy
    if error.change and error.fault in _CHANGED:
        return f"retry_with_change:{error.change}"
    if error.fault in _BY_FAULT:
        return _BY_FAULT[error.fault]
    if error.delay is None:
        return "pause_channel" if error.fault is Fault.EXHAUSTED else "retry_backoff"
    seconds = error.delay.total_seconds()
    longest = LONGEST_RATE_WAIT if error.fault.waits else LONGEST_OUTAGE_WAIT
    if error.until or error.fault is Fault.EXHAUSTED or seconds > longest:
        return f"reschedule:{error.until or _written(seconds)}"
    return f"retry_after:{_written(seconds)}"


def _written(seconds: float) -> str:
    return f"{seconds:.3f}".rstrip("0").rstrip(".")
