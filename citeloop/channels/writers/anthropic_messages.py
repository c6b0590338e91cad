"""Writing through `POST {base_url}/messages`: Anthropic, and DeepSeek's form of it."""

from collections.abc import Mapping

from pydantic import JsonValue

from citeloop.channels.asking import post_json
from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.patience import Patience
from citeloop.channels.ports import Call, Completion, Messages
from citeloop.channels.providers import always_fields
from citeloop.channels.reply import HttpReply
from citeloop.channels.said import Received, as_completion, received, with_usage
from citeloop.channels.turns import Paused, decode_turn
from citeloop.channels.wire import HttpRequest, Wire
from citeloop.models.channel import ChannelSpec
from citeloop.models.usage import Usage

DIALECT = "anthropic_messages"
VERSION = "2023-06-01"
_MOST_TURNS = 5
"""A model that pauses more often than this will not come to an end."""


class AnthropicMessagesWriter:
    def __init__(self, spec: ChannelSpec, key: str, wire: Wire) -> None:
        self._spec = spec
        self._dialogue = Dialogue(spec, key, wire)

    async def write(self, messages: Messages, call: Call) -> Completion:
        """Raises ChannelError."""
        body: dict[str, JsonValue] = {"max_tokens": messages.max_tokens}
        if messages.system:
            body["system"] = messages.system
        return as_completion(self._spec, await self._dialogue.hold(messages.user, body, call))


class Dialogue:
    """One answer, in as many paid turns as the model pauses; each turn has a purchase id of its own."""

    def __init__(self, spec: ChannelSpec, key: str, wire: Wire) -> None:
        self._spec = spec
        self._key = key
        self._wire = wire

    async def hold(self, question: str, body: Mapping[str, JsonValue], call: Call) -> Received:
        patience = Patience(call)
        before: list[JsonValue] = []
        spent = Usage()

        def decoded(reply: HttpReply) -> Received | Paused:
            turn = decode_turn(reply, before)
            return turn if isinstance(turn, Paused) else received(turn, reply)

        for turn in range(_MOST_TURNS):
            messages: list[JsonValue] = [{"role": "user", "content": question}]
            if before:
                messages.append({"role": "assistant", "content": list(before)})
            request = self._request({**body, "messages": messages})
            answer = await self._wire.exchange(request, patience.call(f"turn-{turn + 1}" if turn else ""), decoded)
            if not isinstance(answer, Paused):
                return with_usage(answer, spent)
            before = [*before, *answer.content]
            spent = spent.plus(answer.usage)
        raise ChannelError(Fault.GARBLED, f"the model paused {_MOST_TURNS} times and did not finish")

    def _request(self, body: Mapping[str, JsonValue]) -> HttpRequest:
        sent: dict[str, JsonValue] = {"model": self._spec.model}
        sent |= always_fields(self._spec.provider, DIALECT) | dict(body)
        if self._spec.stream:
            sent["stream"] = True
        sent |= self._spec.extra
        if isinstance(sent.get("thinking"), str):
            sent["thinking"] = {"type": sent["thinking"]}
        return post_json(f"{self._spec.base_url}/messages", sent, headers(self._key), stream=sent.get("stream") is True)


def headers(key: str) -> dict[str, str]:
    return {"anthropic-version": VERSION} | ({"x-api-key": key} if key else {})
