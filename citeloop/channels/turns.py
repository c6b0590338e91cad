"""The Anthropic Messages shape, decoded: one turn of the model, from a body or from a stream. Pure.

Shared by the writer and the answer engine of the `anthropic_messages` dialect. Read from anthropic-sdk-python
009b0353 (2026-08-07) and deepseek-harness b150a551b8 (2026-08-21).
"""

from dataclasses import dataclass, field

from pydantic import JsonValue

from citeloop.channels.citations import distinct, listed, strings
from citeloop.channels.endings import (
    COMPLETE,
    FILTERED,
    FULL,
    TRUNCATED,
    empty,
    ending,
    filtered,
    thought_only,
    truncated,
    unfinished,
)
from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.foreign import at, count_at, items_at, text_at
from citeloop.channels.judging import fault, garbled, judge, pointless, request_id, unreadable
from citeloop.channels.reply import HttpReply, Shape, parse_json, read_body
from citeloop.channels.said import Said
from citeloop.channels.streams import payloads
from citeloop.models.measure import Citation
from citeloop.models.usage import Usage

_SEARCH_FAULTS = {"too_many_requests": Fault.RATE_LIMITED, "unavailable": Fault.UNAVAILABLE}
_MOST_BLOCKS = 10_000


@dataclass(frozen=True, slots=True)
class Paused:
    """The model stopped in the middle (`pause_turn`): send `content` back as its own turn, and it goes on."""

    content: list[JsonValue]
    usage: Usage


@dataclass(slots=True)
class _Turn:
    """The blocks of one message, put together."""

    blocks: list[JsonValue] = field(default_factory=list)
    stop: str = ""
    model: str = ""
    identity: JsonValue = None
    usage: dict[str, JsonValue] = field(default_factory=dict)


def decode_turn(reply: HttpReply, before: list[JsonValue] | None = None) -> Said | Paused:
    """`before`: the blocks of earlier, paused turns of the same answer. Raises ChannelError."""
    body = read_body(reply)
    if error := judge(reply, body):
        raise error
    if body.shape is Shape.EVENTS:
        turn = _streamed(body.raw, reply)
    elif isinstance(body.json, dict):
        turn = _Turn(
            blocks=list(items_at(body.json, "content")),
            stop=ending(body.json, "stop_reason"),
            model=text_at(body.json, "model"),
            identity=body.json,
        )
        _count(turn, at(body.json, "usage"))
    else:
        raise unreadable(reply, body, "a message")
    usage = _usage(turn.usage)
    if turn.stop == "pause_turn":
        return Paused(turn.blocks, usage)
    return _settled(turn, [*(before or []), *turn.blocks], usage, reply)


def _streamed(raw: bytes, reply: HttpReply) -> _Turn:
    turn = _Turn()
    blocks: dict[int, dict[str, JsonValue]] = {}
    ended = False
    for payload in payloads(raw, reply):
        match text_at(payload, "type"):
            case "message_start":
                message = at(payload, "message")
                turn.model, turn.identity = text_at(message, "model"), message
                _count(turn, at(message, "usage"))
            case "content_block_start":
                started = at(payload, "content_block")
                if isinstance(started, dict) and len(blocks) < _MOST_BLOCKS:
                    blocks[count_at(payload, "index")] = dict(started)
            case "content_block_delta":
                if (block := blocks.get(count_at(payload, "index"))) is not None:
                    _grow(block, at(payload, "delta"))
            case "message_delta":
                turn.stop = ending(payload, "delta", "stop_reason") or turn.stop
                _count(turn, at(payload, "usage"))
            case "message_stop":
                ended = True
            case _:
                pass
    turn.blocks = [_finished(blocks[index]) for index in sorted(blocks)]
    if not ended and not turn.stop:
        raise garbled(reply, "the stream ended before the message was complete")
    return turn


def _grow(block: dict[str, JsonValue], delta: JsonValue) -> None:
    match text_at(delta, "type"):
        case "text_delta":
            block["text"] = text_at(block, "text") + text_at(delta, "text")
        case "thinking_delta":
            block["thinking"] = text_at(block, "thinking") + text_at(delta, "thinking")
        case "signature_delta":
            block["signature"] = text_at(delta, "signature")
        case "citations_delta":
            block["citations"] = [*items_at(block, "citations"), at(delta, "citation")]
        case "input_json_delta":
            block["partial_json"] = text_at(block, "partial_json") + text_at(delta, "partial_json")
        case _:
            pass


def _finished(block: dict[str, JsonValue]) -> JsonValue:
    """The streamed pieces of a tool's input become the object that the API takes back."""
    pieces = block.pop("partial_json", None)
    if isinstance(pieces, str) and pieces:
        try:
            block["input"] = parse_json(pieces)
        except ValueError:
            block["input"] = {}
    return block


def _settled(turn: _Turn, blocks: list[JsonValue], usage: Usage, reply: HttpReply) -> Said:
    cited = distinct(_cited(blocks))
    text = _text(blocks, {one.url: n for n, one in enumerate(cited, start=1)})
    if problem := _problem(turn, blocks, text, reply):
        raise problem
    retrieved = distinct(found for one in _results(blocks) for found in listed(at(one, "content")))
    searched = any(isinstance(at(one, "content"), list) for one in _results(blocks))
    return Said(
        text=text,
        model=turn.model[:200],
        request_id=request_id(reply, turn.identity),
        usage=usage if usage.searches or not searched else usage.model_copy(update={"searches": 1}),
        cited=cited,
        retrieved=retrieved,
        queries=strings([at(one, "input", "query") for one in blocks if text_at(one, "type") == "server_tool_use"]),
        searched=searched or bool(cited),
    )


def _problem(turn: _Turn, blocks: list[JsonValue], text: str, reply: HttpReply) -> ChannelError | None:
    thought = any("thinking" in text_at(one, "type") for one in blocks)
    if turn.stop in FILTERED:
        return filtered(reply, turn.stop)
    if turn.stop in FULL:
        return truncated(reply, turn.stop)
    if turn.stop not in TRUNCATED and (problem := _search_problem(blocks, reply)):
        return problem
    if not text and thought:
        return thought_only(reply)
    if turn.stop in TRUNCATED:
        return truncated(reply, turn.stop)
    return _open_end(turn, text, reply)


def _open_end(turn: _Turn, text: str, reply: HttpReply) -> ChannelError | None:
    if not turn.blocks and not turn.stop:
        return pointless(reply, turn.identity, "the reply holds no message")
    if not text:
        return empty(reply)
    return None if turn.stop in COMPLETE else unfinished(reply, "stop_reason", turn.stop)


def _search_problem(blocks: list[JsonValue], reply: HttpReply) -> ChannelError | None:
    """A search that failed inside HTTP 200: an answer without it would be taken for one that does not cite us."""
    results = _results(blocks)
    if any(isinstance(at(one, "content"), list) for one in results):
        return None
    code = next((code for one in results if (code := text_at(one, "content", "error_code"))), "")
    if not code:
        return None
    return fault(_SEARCH_FAULTS.get(code, Fault.GARBLED), reply, f"the search failed: {code}")


def _results(blocks: list[JsonValue]) -> list[JsonValue]:
    return [one for one in blocks if text_at(one, "type") == "web_search_tool_result"]


def _cited(blocks: list[JsonValue]) -> list[Citation]:
    return [found for one in blocks if text_at(one, "type") == "text" for found in listed(at(one, "citations"))]


def _text(blocks: list[JsonValue], numbers: dict[str, int]) -> str:
    """The text blocks in a row, each with a mark for the sources that support it."""
    pieces: list[str] = []
    for block in blocks:
        if text_at(block, "type") == "text":
            supports = dict.fromkeys(numbers[one.url] for one in listed(at(block, "citations")) if one.url in numbers)
            pieces.append(text_at(block, "text") + "".join(f"[{n}]" for n in supports))
    return "".join(pieces).strip()


def _count(turn: _Turn, usage: JsonValue) -> None:
    """A stream counts its input at the start and its output at the end; the later number holds."""
    if isinstance(usage, dict):
        turn.usage |= {name: value for name, value in usage.items() if value is not None}


def _usage(usage: dict[str, JsonValue]) -> Usage:
    """`input_tokens` of this API leave out what the cache holds; ours hold everything."""
    cached, written = count_at(usage, "cache_read_input_tokens"), count_at(usage, "cache_creation_input_tokens")
    return Usage(
        input_tokens=count_at(usage, "input_tokens") + cached + written,
        cached_tokens=cached,
        cache_written_tokens=written,
        output_tokens=count_at(usage, "output_tokens"),
        searches=count_at(usage, "server_tool_use", "web_search_requests"),
    )
