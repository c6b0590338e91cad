"""Writing through `POST {base_url}/chat/completions`, as OpenAI and everyone after it understands it."""

from collections.abc import Mapping

from pydantic import JsonValue

from citeloop.channels.asking import bearer, post_json
from citeloop.channels.chat import decode_chat
from citeloop.channels.ports import Call, Completion, Messages
from citeloop.channels.providers import always_fields, name_by_host, token_limit_field
from citeloop.channels.reply import HttpReply
from citeloop.channels.said import Said, as_completion, received
from citeloop.channels.wire import HttpRequest, Wire
from citeloop.models.channel import ChannelSpec

DIALECT = "openai_chat"
_OWN_KEYS = frozenset({"token_limit_field", "include_usage"})
"""Keys of `extra` that steer this dialect and are not sent."""


class OpenAIChatWriter:
    """`extra` of the catalogue is sent as it is, but for `token_limit_field` (`max_completion_tokens`) and
    `include_usage = false` (for gateways that refuse `stream_options`).
    """

    def __init__(self, spec: ChannelSpec, key: str, wire: Wire) -> None:
        self._spec = spec
        self._key = key
        self._wire = wire

    async def write(self, messages: Messages, call: Call) -> Completion:
        """Raises ChannelError."""
        turns = [{"role": "system", "content": messages.system}] if messages.system else []
        turns.append({"role": "user", "content": messages.user})
        request = chat_request(self._spec, self._key, turns, max_tokens=messages.max_tokens)
        return await self._wire.exchange(request, call, self._decoded)

    def _decoded(self, reply: HttpReply) -> Completion:
        chat = decode_chat(reply)
        said = Said(text=chat.text, model=chat.model, request_id=chat.request_id, usage=chat.usage)
        return as_completion(self._spec, received(said, reply))


def chat_request(
    spec: ChannelSpec,
    key: str,
    turns: list[dict[str, str]],
    *,
    max_tokens: int | None = None,
    search: Mapping[str, JsonValue] | None = None,
) -> HttpRequest:
    """The request as bytes. `thinking = "disabled"` becomes the object that DeepSeek, Ark and GLM expect.

    search: the provider's switch for it, sent by engines; a field of it that `extra` names is `extra`'s.
    """
    body: dict[str, JsonValue] = {"model": spec.model, "messages": [dict(turn) for turn in turns]}
    if max_tokens is not None:
        body[_token_limit_field(spec)] = max_tokens
    if spec.stream:
        body["stream"] = True
        if spec.extra.get("include_usage", True):
            body["stream_options"] = {"include_usage": True}
    body |= always_fields(spec.provider, DIALECT) | dict(search or {})
    body |= {name: value for name, value in spec.extra.items() if name not in _OWN_KEYS}
    if isinstance(body.get("thinking"), str):
        body["thinking"] = {"type": body["thinking"]}
    return post_json(f"{spec.base_url}/chat/completions", body, bearer(key), stream=spec.stream)


def _token_limit_field(spec: ChannelSpec) -> str:
    """OpenAI's reasoning models refuse `max_tokens`; compatible vendors know only that (openai-python, 2026-08)."""
    chosen = spec.extra.get("token_limit_field")
    if isinstance(chosen, str):
        return chosen
    return token_limit_field(spec.provider or name_by_host(spec.base_url), DIALECT)
