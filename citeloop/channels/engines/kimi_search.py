"""Kimi as an answer engine: the `moonshot/web-search` formula, run in a bounded loop of chat and search.

Kimi names no citations: what it retrieved is known, what it cited only where the text links to it.
"""

from collections.abc import Sequence
from dataclasses import replace

from pydantic import JsonValue

from citeloop.channels.asking import bearer, get_json, post_json
from citeloop.channels.chat import ChatReply, usage_of
from citeloop.channels.citations import distinct, linked
from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.fibers import Fiber, ToolCall, Wanted, decode_fiber, decode_tools, decode_wanted
from citeloop.channels.patience import Patience
from citeloop.channels.ports import Call
from citeloop.channels.reply import HttpReply
from citeloop.channels.said import Received, Said, as_answer, received
from citeloop.channels.wire import HttpRequest, Wire
from citeloop.models.channel import ChannelSpec
from citeloop.models.measure import Answer, Citation
from citeloop.models.usage import Usage

DIALECT = "kimi_search"
_FORMULA = "formulas/moonshot/web-search:latest"
_MOST_ROUNDS = 5
_MOST_SEARCHES = 8


class KimiSearchEngine:
    def __init__(self, spec: ChannelSpec, key: str, wire: Wire) -> None:
        self._spec = spec
        self._key = key
        self._wire = wire

    async def ask(self, question: str, locale: str, call: Call) -> Answer:  # noqa: ARG002 - the port's; asked as is
        """Raises ChannelError."""
        patience = Patience(call)
        listing = get_json(f"{self._spec.base_url}/{_FORMULA}/tools", bearer(self._key))
        tools = await self._wire.exchange(listing, patience.call(), decode_tools)
        messages: list[JsonValue] = [{"role": "user", "content": question}]
        spent, found, queries, searches = Usage(), list[Citation](), list[str](), 0
        for turn in range(_MOST_ROUNDS + 1):
            request = self._chat(messages, tools)
            answer = await self._wire.exchange(request, patience.call(f"turn-{turn + 1}" if turn else ""), _decoded)
            if isinstance(answer, Received):
                usage = spent.plus(answer.said.usage).model_copy(update={"searches": searches})
                return as_answer(self._spec, replace(answer, said=_with(answer.said, usage, found, queries)))
            spent = spent.plus(usage_of(answer.usage))
            messages.append(answer.message)
            for wanted in answer.calls:
                if searches >= _MOST_SEARCHES:
                    raise ChannelError(Fault.GARBLED, f"the model asked for more than {_MOST_SEARCHES} searches")
                searches += 1
                fiber = await self._search(wanted, patience, searches)
                messages.append({"role": "tool", "tool_call_id": wanted.id, "content": fiber.output})
                found.extend(fiber.references)
                queries.extend(wanted.queries)
        raise ChannelError(Fault.GARBLED, f"the model searched {_MOST_ROUNDS} times and did not answer")

    async def _search(self, wanted: ToolCall, patience: Patience, number: int) -> Fiber:
        body: dict[str, JsonValue] = {"name": wanted.name, "arguments": wanted.arguments}
        request = post_json(f"{self._spec.base_url}/{_FORMULA}/fibers", body, bearer(self._key))
        return await self._wire.exchange(request, patience.call(f"search-{number}"), decode_fiber)

    def _chat(self, messages: Sequence[JsonValue], tools: list[JsonValue]) -> HttpRequest:
        body: dict[str, JsonValue] = {"model": self._spec.model, "messages": list(messages), "tools": tools}
        return post_json(f"{self._spec.base_url}/chat/completions", body | self._spec.extra, bearer(self._key))


def _decoded(reply: HttpReply) -> Received | Wanted:
    answer = decode_wanted(reply)
    return received(_said(answer), reply) if isinstance(answer, ChatReply) else answer


def _said(chat: ChatReply) -> Said:
    return Said(text=chat.text, model=chat.model, request_id=chat.request_id, usage=chat.usage)


def _with(said: Said, usage: Usage, found: list[Citation], queries: list[str]) -> Said:
    return replace(
        said,
        usage=usage,
        cited=distinct(linked(said.text, found)),
        retrieved=distinct(found),
        queries=tuple(dict.fromkeys(queries)),
        searched=usage.searches > 0,
    )
