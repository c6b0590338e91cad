"""The JSON payloads of a stream, each judged before it is believed."""

from collections.abc import Iterator
from itertools import takewhile

from pydantic import JsonValue

from citeloop.channels.characters import Halves
from citeloop.channels.errors import ChannelError
from citeloop.channels.events import Event, parse_events
from citeloop.channels.foreign import at
from citeloop.channels.judging import garbled, judge_event, judge_words
from citeloop.channels.reply import HttpReply, parse_json

_DONE = "[DONE]"


def payloads(raw: bytes, reply: HttpReply) -> Iterator[JsonValue]:
    """Until `[DONE]` or the end. Raises GARBLED for broken events and the judgement of an error among them."""
    try:
        events = tuple(parse_events(raw))
    except UnicodeDecodeError:
        raise garbled(reply, "the stream is not UTF-8") from None
    halves = Halves()
    for event in events:
        lines = [line for line in takewhile(lambda line: line.strip() != _DONE, event.lines) if line.strip()]
        for payload in _payloads(Event(tuple(lines), event.failed), reply, halves) if lines else ():
            if error := judge_event(payload, reply):
                raise error
            yield payload
        if any(line.strip() == _DONE for line in event.lines):
            return


def _payloads(event: Event, reply: HttpReply, halves: Halves) -> list[JsonValue]:
    """The JSON of one event. Two whole objects on two lines are a known slip; half an object is a broken stream."""
    try:
        found = [parse_json(event.data, halves.joined)]
    except ValueError:
        try:
            found = [parse_json(line, halves.joined) for line in event.lines]
        except ValueError:
            raise _broken(event, reply) from None
    return [_failure(payload) for payload in found] if event.failed else found


def _broken(event: Event, reply: HttpReply) -> ChannelError:
    """What is no JSON may still say what went wrong, in plain words or in one whole line of several."""
    for line in event.lines:
        try:
            error = judge_event(parse_json(line), reply)
        except ValueError:
            error = None
        if error:
            return error
    if event.failed and (error := judge_event({"error": event.data}, reply)):
        return error
    return judge_words(event.data, reply) or garbled(reply, f"the stream holds broken JSON: {event.data[:120]}")


def _failure(payload: JsonValue) -> JsonValue:
    """The payload of an event that is a failure by its name, whether or not it looks like one."""
    said = at(payload, "error") or at(payload, "response", "error")
    return payload if said else {"error": payload or "failed"}
