"""Qwen with `enable_search` as an answer engine: the only one of DashScope's forms that names its sources."""

from citeloop.channels.generation import decode_generation
from citeloop.channels.ports import Call
from citeloop.channels.providers import search_fields
from citeloop.channels.reply import HttpReply
from citeloop.channels.said import as_answer, received
from citeloop.channels.wire import Wire
from citeloop.channels.writers.dashscope import DIALECT, generation_request
from citeloop.models.channel import ChannelSpec
from citeloop.models.measure import Answer


class DashScopeEngine:
    def __init__(self, spec: ChannelSpec, key: str, wire: Wire) -> None:
        self._spec = spec
        self._key = key
        self._wire = wire

    async def ask(self, question: str, locale: str, call: Call) -> Answer:  # noqa: ARG002 - the port's; asked as is
        """Raises ChannelError. An answer without `search_info` has `searched` False."""
        search = search_fields(self._spec.provider, DIALECT)
        request = generation_request(self._spec, self._key, [("user", question)], search)
        return await self._wire.exchange(request, call, self._decoded)

    def _decoded(self, reply: HttpReply) -> Answer:
        return as_answer(self._spec, received(decode_generation(reply), reply))
