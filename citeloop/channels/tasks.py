"""DashScope's picture replies, decoded: a picture at once, or a task to ask for. Pure.

Read from the text-to-image page of Model Studio (2026-01-19) and dashscope-sdk-python c0d7a0b (2026-07-02).
"""

from dataclasses import dataclass

from pydantic import JsonValue

from citeloop.channels.errors import Fault, Remedy
from citeloop.channels.foreign import at, items_at, text_at
from citeloop.channels.judging import fault, garbled, judge_event, judged_json, request_id
from citeloop.channels.reply import HttpReply

_RUNNING = frozenset({"PENDING", "RUNNING", "SUSPENDED"})
_GONE = frozenset({"UNKNOWN", "CANCELED"})


@dataclass(frozen=True, slots=True)
class Task:
    """Accepted and not finished."""

    id: str


@dataclass(frozen=True, slots=True)
class Drawn:
    """Where the picture is, for a few hours."""

    url: str
    request_id: str


def decode_task(reply: HttpReply) -> Drawn | Task:
    """Which of the two it is shows in the fields, not in the model's name. Raises ChannelError."""
    payload = judged_json(reply)
    output = at(payload, "output")
    identity = request_id(reply, payload)
    for choice in items_at(output, "choices"):
        for part in items_at(choice, "message", "content"):
            if url := text_at(part, "image"):
                return Drawn(url, identity)
    status = text_at(output, "task_status")
    if status in _RUNNING and (task := text_at(output, "task_id")):
        return Task(task)
    if status in _GONE:
        # An expired task answers UNKNOWN for ever.
        raise fault(Fault.UNAVAILABLE, reply, f"the task is {status}: it must be given anew", remedy=Remedy.RESUBMIT)
    for result in items_at(output, "results"):
        if url := text_at(result, "url"):
            return Drawn(url, identity)
    raise _complaint(output, status, reply)


def _complaint(output: JsonValue, status: str, reply: HttpReply) -> Exception:
    """A task fails under HTTP 200, as a whole or item by item."""
    for place in (output, *items_at(output, "results")):
        code, message = text_at(place, "code"), text_at(place, "message")
        if (code or message) and (error := judge_event({"error": {"code": code, "message": message}}, reply)):
            return error
    if status == "FAILED":
        return fault(Fault.UNAVAILABLE, reply, "the task failed without saying why")
    return garbled(reply, "the reply holds neither a picture nor a task")
