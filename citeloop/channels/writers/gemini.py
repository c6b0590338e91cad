"""Writing through `POST {base_url}/models/{model}:generateContent`, or `:streamGenerateContent?alt=sse`."""

from collections.abc import Mapping
from urllib.parse import quote

from pydantic import JsonValue

from citeloop.channels.asking import post_json
from citeloop.channels.foreign import merged
from citeloop.channels.grounding import decode_gemini
from citeloop.channels.ports import Call, Completion, Messages
from citeloop.channels.reply import HttpReply
from citeloop.channels.said import as_completion, received
from citeloop.channels.wire import HttpRequest, Wire
from citeloop.models.channel import ChannelSpec

DIALECT = "gemini"


class GeminiWriter:
    """Tables of `extra`, such as `generationConfig`, are merged into the request's own."""

    def __init__(self, spec: ChannelSpec, key: str, wire: Wire) -> None:
        self._spec = spec
        self._key = key
        self._wire = wire

    async def write(self, messages: Messages, call: Call) -> Completion:
        """Raises ChannelError."""
        body: dict[str, JsonValue] = {"generationConfig": {"maxOutputTokens": messages.max_tokens}}
        if messages.system:
            body["systemInstruction"] = {"parts": [{"text": messages.system}]}
        request = gemini_request(self._spec, self._key, messages.user, body)
        return await self._wire.exchange(request, call, self._decoded)

    def _decoded(self, reply: HttpReply) -> Completion:
        return as_completion(self._spec, received(decode_gemini(reply), reply))


def gemini_request(spec: ChannelSpec, key: str, question: str, body: Mapping[str, JsonValue]) -> HttpRequest:
    """The key goes into a header: in the address it would stand in logs."""
    sent = merged({"contents": [{"role": "user", "parts": [{"text": question}]}], **body}, spec.extra)
    method = "streamGenerateContent?alt=sse" if spec.stream else "generateContent"
    url = f"{spec.base_url}/models/{quote(spec.model.removeprefix('models/'), safe='.-_')}:{method}"
    return post_json(url, sent, headers(key), stream=spec.stream)


def headers(key: str) -> dict[str, str]:
    return {"x-goog-api-key": key} if key else {}
