"""Writing through `POST {base_url}/responses` (openai-openapi f85dbe2; Ark's and Perplexity's forms of it)."""

from collections.abc import Mapping
from urllib.parse import quote

from pydantic import JsonValue

from citeloop.channels.asking import bearer, get_json, post_json
from citeloop.channels.patience import Patience, Polling
from citeloop.channels.ports import Call, Completion, Messages
from citeloop.channels.providers import always_fields
from citeloop.channels.reply import HttpReply
from citeloop.channels.responses import Pending, decode_responses
from citeloop.channels.said import Received, as_completion, received
from citeloop.channels.wire import HttpRequest, Wire
from citeloop.models.channel import ChannelSpec

DIALECT = "openai_responses"
_FIRST_POLL, _LONGEST_POLL = 1.0, 10.0


class OpenAIResponsesWriter:
    def __init__(self, spec: ChannelSpec, key: str, wire: Wire) -> None:
        self._spec = spec
        self._dialogue = Dialogue(spec, key, wire)

    async def write(self, messages: Messages, call: Call) -> Completion:
        """Raises ChannelError. A queued response is asked for until it is there or the call's total is over."""
        body: dict[str, JsonValue] = {"input": messages.user, "max_output_tokens": messages.max_tokens}
        if messages.system:
            body["instructions"] = messages.system
        return as_completion(self._spec, await self._dialogue.hold(body, call))


class Dialogue:
    """One response: asked for once, then polled for where the provider queues it. A failed poll is no failed answer."""

    def __init__(self, spec: ChannelSpec, key: str, wire: Wire) -> None:
        self._spec = spec
        self._key = key
        self._wire = wire

    async def hold(self, body: Mapping[str, JsonValue], call: Call) -> Received:
        patience = Patience(call)
        answer = await self._wire.exchange(self._request(body), patience.call(), _decoded)
        if isinstance(answer, Pending):
            polling = Polling(patience, f"response {answer.id}", first=_FIRST_POLL, longest=_LONGEST_POLL)
            poll = get_json(f"{self._spec.base_url}/responses/{quote(answer.id, safe='')}", bearer(self._key))
            while isinstance(answer, Pending):
                answer = await polling.ask(lambda call: self._wire.exchange(poll, call, _decoded)) or answer
        return answer

    def _request(self, body: Mapping[str, JsonValue]) -> HttpRequest:
        sent: dict[str, JsonValue] = {"model": self._spec.model}
        sent |= always_fields(self._spec.provider, DIALECT) | dict(body)
        if self._spec.stream:
            sent["stream"] = True
        sent |= self._spec.extra
        stream = sent.get("stream") is True
        return post_json(f"{self._spec.base_url}/responses", sent, bearer(self._key), stream=stream)


def _decoded(reply: HttpReply) -> Received | Pending:
    said = decode_responses(reply)
    return said if isinstance(said, Pending) else received(said, reply)
