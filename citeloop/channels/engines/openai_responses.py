"""Answer engines behind `POST {base_url}/responses`: OpenAI and Perplexity with `web_search`, Ark with that or
`doubao_app`, which is the nearest to the answers of the Doubao app (named so in Ark's SDK; not verified).
"""

from pydantic import JsonValue

from citeloop.channels.ports import Call
from citeloop.channels.providers import search_fields
from citeloop.channels.said import as_answer
from citeloop.channels.wire import Wire
from citeloop.channels.writers.openai_responses import DIALECT, Dialogue
from citeloop.models.channel import ChannelSpec
from citeloop.models.measure import Answer


class OpenAIResponsesEngine:
    def __init__(self, spec: ChannelSpec, key: str, wire: Wire) -> None:
        self._spec = spec
        self._dialogue = Dialogue(spec, key, wire)

    async def ask(self, question: str, locale: str, call: Call) -> Answer:  # noqa: ARG002 - the port's; asked as is
        """Raises ChannelError. An answer without evidence of a search has `searched` False."""
        body: dict[str, JsonValue] = {"input": question, **search_fields(self._spec.provider, DIALECT)}
        return as_answer(self._spec, await self._dialogue.hold(body, call))
