"""Gemini with Google Search grounding as an answer engine.

Its sources are opaque redirects of Google's, with the site's domain as their title. Each is asked once where it leads
(HEAD, not followed); one that does not say stands as the address of its site.
"""

import asyncio
from dataclasses import replace
from datetime import timedelta

from citeloop.channels.errors import ChannelError
from citeloop.channels.grounding import decode_gemini, is_redirect, settled_at
from citeloop.channels.patience import Patience
from citeloop.channels.ports import Call
from citeloop.channels.providers import search_fields
from citeloop.channels.reply import HttpReply
from citeloop.channels.said import Received, as_answer, received
from citeloop.channels.wire import HttpRequest, Wire
from citeloop.channels.writers.gemini import DIALECT, gemini_request
from citeloop.models.channel import ChannelSpec
from citeloop.models.measure import Answer, Citation
from citeloop.models.plan import CallPolicy

_MOST_REDIRECTS = 30
_AT_ONCE = 6
_REDIRECT = timedelta(seconds=3)
_QUICK = CallPolicy(connect=_REDIRECT, first_byte=_REDIRECT, between_chunks=_REDIRECT, total=_REDIRECT)


class GeminiEngine:
    def __init__(self, spec: ChannelSpec, key: str, wire: Wire) -> None:
        self._spec = spec
        self._key = key
        self._wire = wire

    async def ask(self, question: str, locale: str, call: Call) -> Answer:  # noqa: ARG002 - the port's; asked as is
        """Raises ChannelError. The fee of the search is per query that the model chose to run."""
        patience = Patience(call)
        request = gemini_request(self._spec, self._key, question, search_fields(self._spec.provider, DIALECT))
        answer: Received = await self._wire.exchange(
            request, patience.call(), lambda reply: received(decode_gemini(reply), reply)
        )
        said = answer.said
        pages = await self._pages([*said.cited, *said.retrieved], patience)
        return as_answer(
            self._spec,
            replace(
                answer,
                said=replace(
                    said,
                    cited=tuple(pages.get(one.url, one) for one in said.cited),
                    retrieved=tuple(pages.get(one.url, one) for one in said.retrieved),
                ),
            ),
        )

    async def _pages(self, sources: list[Citation], patience: Patience) -> dict[str, Citation]:
        """By redirect: where it leads. The cited ones come first, and no more time is taken than the call has."""
        redirects = list({one.url: one for one in sources if is_redirect(one)}.values())
        gate = asyncio.Semaphore(_AT_ONCE)

        async def page(source: Citation) -> Citation:
            async with gate:
                if patience.left < _REDIRECT.total_seconds():
                    return settled_at(source)
                call = patience.call().model_copy(update={"policy": _QUICK})
                try:
                    target = await self._wire.exchange(HttpRequest("HEAD", source.url), call, _location)
                except ChannelError:
                    target = ""
                return settled_at(source, target)

        asked = await asyncio.gather(*(page(one) for one in redirects[:_MOST_REDIRECTS]))
        pages = {one.url: settled_at(one) for one in redirects}
        return pages | {one.url: found for one, found in zip(redirects, asked, strict=False)}


def _location(reply: HttpReply) -> str:
    return reply.headers.get("location", "")
