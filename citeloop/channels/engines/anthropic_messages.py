"""Answer engines behind `POST {base_url}/messages` with the `web_search` tool: Claude, and DeepSeek's search."""

from pydantic import JsonValue

from citeloop.channels.ports import Call
from citeloop.channels.providers import search_fields
from citeloop.channels.said import as_answer
from citeloop.channels.wire import Wire
from citeloop.channels.writers.anthropic_messages import DIALECT, Dialogue
from citeloop.models.channel import ChannelSpec
from citeloop.models.measure import Answer

_MAX_TOKENS = 4096
"""The API requires a limit; `extra = { max_tokens = … }` sets another."""


class AnthropicMessagesEngine:
    def __init__(self, spec: ChannelSpec, key: str, wire: Wire) -> None:
        self._spec = spec
        self._dialogue = Dialogue(spec, key, wire)

    async def ask(self, question: str, locale: str, call: Call) -> Answer:  # noqa: ARG002 - the port's; asked as is
        """Raises ChannelError; a search that failed inside a good reply is an error, not an answer without us."""
        body: dict[str, JsonValue] = {"max_tokens": _MAX_TOKENS, **search_fields(self._spec.provider, DIALECT)}
        return as_answer(self._spec, await self._dialogue.hold(question, body, call))
