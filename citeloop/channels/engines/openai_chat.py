"""Answer engines that speak the chat dialect and bring their sources in fields of their own.

Perplexity Sonar: `citations[]`, `search_results[]`. Hunyuan: `search_info.search_results[]`. GLM: `web_search[]`.
Qianfan and Ark bots: `references[]`. OpenAI: `message.annotations[].url_citation`.
"""

import re
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

from pydantic import JsonValue

from citeloop.channels.chat import ChatReply, cost_of, decode_chat
from citeloop.channels.foreign import at, items_at, text_at
from citeloop.channels.ports import Call
from citeloop.channels.reply import HttpReply, read_body
from citeloop.channels.wire import HttpRequest, Wire
from citeloop.channels.writers.openai_chat import chat_request
from citeloop.models.channel import ChannelSpec
from citeloop.models.measure import Answer, Citation

# [1], [ref_1], [citation:1], ^[1]^, 【1】 and [1](@ref); but not a link [1](https://…).
_MARK = re.compile(r"(?:\[(?:ref_|citation:|\^)?(\d{1,3})\](?!\((?!@))|【(\d{1,3})(?:†[^】]*)?】)")
_LINK = re.compile(r"\]\((https?://[^\s)]+)\)")
_RAW_LIMIT = 200_000


class OpenAIChatEngine:
    """The question goes out alone, as a person would type it; search switches are the catalogue's `extra`."""

    def __init__(self, spec: ChannelSpec, key: str, wire: Wire) -> None:
        self._spec = spec
        self._key = key
        self._wire = wire

    async def ask(self, question: str, locale: str, call: Call) -> Answer:  # noqa: ARG002 - the port's; asked as is
        """Raises ChannelError. An answer without evidence of a search has `searched` False."""
        request: HttpRequest = chat_request(self._spec, self._key, [{"role": "user", "content": question}])
        return await self._wire.exchange(request, call, self._decoded)

    def _decoded(self, reply: HttpReply) -> Answer:
        chat = decode_chat(reply)
        return Answer(
            text=chat.text,
            cited=_distinct(_cited(chat)),
            retrieved=_distinct(_retrieved(chat)),
            queries=_queries(chat),
            searched=bool(_retrieved(chat) or _annotated(chat)),
            model=chat.model or self._spec.model,
            request_id=chat.request_id,
            raw=read_body(reply).text[:_RAW_LIMIT],
            cost=cost_of(self._spec, chat),
        )


def _cited(chat: ChatReply) -> list[Citation]:
    """What the text points at: annotations, else numbered marks and links, else the vendor's own list of citations."""
    if annotated := _annotated(chat):
        return annotated
    sources = _numbered(chat)
    marked = [sources[n] for match in _MARK.finditer(chat.text) if (n := int(match[1] or match[2])) in sources]
    known = {source.url: source for source in _retrieved(chat)}
    linked = [known[url] for url in _LINK.findall(chat.text) if url in known]
    cited = marked + linked or _listed(chat.evidence.get("citations"))
    # Sonar's citations are bare addresses; their titles stand among the search results.
    return [known.get(one.url, one) for one in cited]


def _retrieved(chat: ChatReply) -> list[Citation]:
    found = [
        *_listed(chat.evidence.get("search_results")),
        *_listed(at(chat.evidence, "search_info", "search_results")),
        *_listed(chat.evidence.get("web_search")),
        *_listed(chat.evidence.get("references")),
    ]
    return found or _listed(chat.evidence.get("citations"))


def _numbered(chat: ChatReply) -> dict[int, Citation]:
    """The sources by the number that marks use: the vendor's own index, else the place in the list, from 1."""
    for listed in (
        chat.evidence.get("citations"),
        at(chat.evidence, "search_info", "search_results"),
        chat.evidence.get("search_results"),
        chat.evidence.get("web_search"),
        chat.evidence.get("references"),
    ):
        numbered = {
            _number(item, place): citation
            for place, item in enumerate(items_at(listed), start=1)
            if (citation := _citation(item))
        }
        if numbered:
            return numbered
    return {}


def _number(item: JsonValue, place: int) -> int:
    for name in ("index", "id", "refer"):
        digits = re.search(r"\d{1,3}$", text_at(item, name))
        if digits:
            return int(digits[0])
    return place


def _annotated(chat: ChatReply) -> list[Citation]:
    nested = (at(one, "url_citation") or one for one in chat.annotations)
    return [citation for one in nested if (citation := _citation(one))]


def _listed(items: JsonValue) -> list[Citation]:
    return [citation for one in items_at(items) if (citation := _citation(one))]


def _citation(item: JsonValue) -> Citation | None:
    url = item if isinstance(item, str) else text_at(item, "url") or text_at(item, "link")
    if not url.startswith(("https://", "http://")) or not _has_host(url):
        return None
    return Citation(url=url, title=text_at(item, "title") or text_at(item, "name"))


def _has_host(url: str) -> bool:
    try:
        return bool(urlsplit(url).hostname)
    except ValueError:
        return False


def _queries(chat: ChatReply) -> tuple[str, ...]:
    found = (
        *items_at(chat.evidence, "search_info", "search_queries"),
        *(text_at(one, "search_query") for one in items_at(chat.evidence.get("search_info"), "search_intents")),
    )
    return tuple(one for one in found if isinstance(one, str) and one)


def _distinct(citations: Iterable[Citation]) -> tuple[Citation, ...]:
    return tuple(_first_by_url(citations))


def _first_by_url(citations: Iterable[Citation]) -> Iterator[Citation]:
    seen: set[str] = set()
    for citation in citations:
        if citation.url not in seen:
            seen.add(citation.url)
            yield citation
