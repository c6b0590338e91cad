"""Writing through DashScope's native `POST {base_url}/services/aigc/…/generation`.

`extra = { endpoint = "multimodal-generation" }` is for the newer models that answer only there.
"""

from collections.abc import Mapping

from pydantic import JsonValue

from citeloop.channels.asking import bearer, post_json
from citeloop.channels.foreign import merged
from citeloop.channels.generation import decode_generation
from citeloop.channels.ports import Call, Completion, Messages
from citeloop.channels.reply import HttpReply
from citeloop.channels.said import as_completion, received
from citeloop.channels.wire import HttpRequest, Wire
from citeloop.models.channel import ChannelSpec

DIALECT = "dashscope"
_OWN_KEYS = frozenset({"endpoint"})
_ENDPOINTS = frozenset({"text-generation", "multimodal-generation"})


class DashScopeWriter:
    def __init__(self, spec: ChannelSpec, key: str, wire: Wire) -> None:
        self._spec = spec
        self._key = key
        self._wire = wire

    async def write(self, messages: Messages, call: Call) -> Completion:
        """Raises ChannelError."""
        turns = [("system", messages.system)] if messages.system else []
        request = generation_request(
            self._spec,
            self._key,
            [*turns, ("user", messages.user)],
            {"parameters": {"max_tokens": messages.max_tokens}},
        )
        return await self._wire.exchange(request, call, self._decoded)

    def _decoded(self, reply: HttpReply) -> Completion:
        return as_completion(self._spec, received(decode_generation(reply), reply))


def generation_request(
    spec: ChannelSpec, key: str, turns: list[tuple[str, str]], body: Mapping[str, JsonValue]
) -> HttpRequest:
    """Tables of `body` and `extra`, such as `parameters`, are merged into the request's own."""
    endpoint = spec.extra.get("endpoint")
    endpoint = endpoint if endpoint in _ENDPOINTS else "text-generation"
    parts = endpoint == "multimodal-generation"
    parameters: dict[str, JsonValue] = {"result_format": "message"}
    headers = bearer(key)
    if spec.stream:
        parameters["incremental_output"] = True
        headers["X-DashScope-SSE"] = "enable"
    base: dict[str, JsonValue] = {
        "model": spec.model,
        "input": {"messages": [{"role": role, "content": [{"text": text}] if parts else text} for role, text in turns]},
        "parameters": parameters,
    }
    extra = {name: value for name, value in spec.extra.items() if name not in _OWN_KEYS}
    sent = merged(merged(base, body), extra)
    return post_json(f"{spec.base_url}/services/aigc/{endpoint}/generation", sent, headers, stream=spec.stream)
