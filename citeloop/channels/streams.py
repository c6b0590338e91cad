"""The JSON payloads of a stream, each judged before it is believed."""

from collections.abc import Iterator

from pydantic import JsonValue

from citeloop.channels.events import Event, parse_events
from citeloop.channels.judging import garbled, judge_event
from citeloop.channels.reply import HttpReply, parse_json


def payloads(raw: bytes, reply: HttpReply) -> Iterator[JsonValue]:
    """Until `[DONE]` or the end. Raises GARBLED for broken events and the judgement of an error among them."""
    try:
        events = tuple(parse_events(raw))
    except UnicodeDecodeError:
        raise garbled(reply, "the stream is not UTF-8") from None
    for event in events:
        if event.data.strip() == "[DONE]":
            return
        for payload in _payloads(event, reply):
            if error := judge_event(payload, reply):
                raise error
            yield payload


def _payloads(event: Event, reply: HttpReply) -> list[JsonValue]:
    """The JSON of one event. Two whole objects on two lines are a known slip; half an object is a broken stream."""
    try:
        found = [parse_json(event.data)]
    except ValueError:
        try:
            found = [parse_json(line) for line in event.lines]
        except ValueError:
            raise garbled(reply, f"the stream holds broken JSON: {event.data[:120]}") from None
    return [{"error": payload} for payload in found] if event.failed else found
