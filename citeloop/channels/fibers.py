"""Kimi's web search, decoded: a chat that asks for the tool, and the fiber that ran it. Pure.

Known from three public clients (2026-08), not from Moonshot's own documentation: a guess until it was tried.
"""

from dataclasses import dataclass

from pydantic import JsonValue

from citeloop.channels.chat import ChatReply, decode_chat
from citeloop.channels.citations import listed, strings
from citeloop.channels.endings import ending
from citeloop.channels.errors import Fault
from citeloop.channels.foreign import at, items_at, text_at
from citeloop.channels.judging import fault, garbled, judged_json
from citeloop.channels.reply import HttpReply, parse_json, read_body
from citeloop.models.measure import Citation


@dataclass(frozen=True, slots=True)
class ToolCall:
    id: str
    name: str
    arguments: str

    @property
    def queries(self) -> tuple[str, ...]:
        try:
            return strings([text_at(parse_json(self.arguments), "query")])
        except ValueError:
            return ()


@dataclass(frozen=True, slots=True)
class Wanted:
    """The model asks for tools. `message` is sent back as it came, its reasoning included."""

    message: JsonValue
    calls: tuple[ToolCall, ...]
    usage: JsonValue


@dataclass(frozen=True, slots=True)
class Fiber:
    """`output` is opaque, often encrypted, and goes back to the model verbatim; only the references are readable."""

    output: str
    references: tuple[Citation, ...]


def decode_tools(reply: HttpReply) -> list[JsonValue]:
    """The functions that the formula offers."""
    tools = list(items_at(judged_json(reply), "tools"))
    if not tools:
        raise garbled(reply, "the search formula offers no tools")
    return tools


def decode_wanted(reply: HttpReply) -> Wanted | ChatReply:
    body = read_body(reply)
    choice = at(body.json, "choices", 0)
    calls = tuple(
        ToolCall(text_at(one, "id"), text_at(one, "function", "name"), text_at(one, "function", "arguments"))
        for one in items_at(choice, "message", "tool_calls")
    )
    if reply.ok and calls and ending(choice, "finish_reason") == "tool_calls":
        return Wanted(at(choice, "message"), calls, at(body.json, "usage"))
    return decode_chat(reply)


def decode_fiber(reply: HttpReply) -> Fiber:
    """Raises UNAVAILABLE for a search that failed."""
    payload = judged_json(reply)
    status = text_at(payload, "status")
    output = text_at(payload, "context", "output") or text_at(payload, "context", "encrypted_output")
    if status != "succeeded" or not output:
        raise fault(Fault.UNAVAILABLE, reply, f"the search {status or 'gave no status'}, without a result")
    return Fiber(output, tuple(listed(at(payload, "context", "references"))))
