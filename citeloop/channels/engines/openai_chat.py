"""Answer engines that speak the chat dialect and bring their sources in fields of their own.

Perplexity Sonar: `citations[]`, `search_results[]`. Hunyuan: `search_info.search_results[]`. GLM: `web_search[]`.
Qianfan and Ark bots: `references[]`. OpenAI: `message.annotations[].url_citation`.
"""

from pydantic import JsonValue

from citeloop.channels.chat import ChatReply, decode_chat
from citeloop.channels.citations import citation, distinct, linked, listed, marked, numbered, strings
from citeloop.channels.foreign import at, items_at, text_at
from citeloop.channels.ports import Call
from citeloop.channels.providers import search_fields
from citeloop.channels.reply import HttpReply
from citeloop.channels.said import Said, as_answer, received
from citeloop.channels.wire import Wire
from citeloop.channels.writers.openai_chat import DIALECT, chat_request
from citeloop.models.channel import ChannelSpec
from citeloop.models.measure import Answer, Citation


class OpenAIChatEngine:
    """The question goes out alone, as a person would type it; the search switch is the provider's or `extra`'s."""

    def __init__(self, spec: ChannelSpec, key: str, wire: Wire) -> None:
        self._spec = spec
        self._key = key
        self._wire = wire

    async def ask(self, question: str, locale: str, call: Call) -> Answer:  # noqa: ARG002 - the port's; asked as is
        """Raises ChannelError. An answer without evidence of a search has `searched` False."""
        search = search_fields(self._spec.provider, DIALECT)
        turns = [{"role": "user", "content": question}]
        request = chat_request(self._spec, self._key, turns, search=search)
        return await self._wire.exchange(request, call, self._decoded)

    def _decoded(self, reply: HttpReply) -> Answer:
        return as_answer(self._spec, received(said_in_chat(decode_chat(reply)), reply))


def said_in_chat(chat: ChatReply) -> Said:
    retrieved = distinct(_retrieved(chat))
    searched = bool(retrieved or _annotated(chat))
    searches = max(chat.usage.searches, int(searched))
    return Said(
        text=chat.text,
        model=chat.model,
        request_id=chat.request_id,
        usage=chat.usage.model_copy(update={"searches": searches}),
        cited=distinct(_cited(chat)),
        retrieved=retrieved,
        queries=_queries(chat),
        searched=searched,
    )


def _cited(chat: ChatReply) -> list[Citation]:
    """What the text points at: annotations, else numbered marks and links, else the vendor's own list of citations."""
    if annotated := _annotated(chat):
        return annotated
    known = _retrieved(chat)
    cited = marked(chat.text, _numbered(chat)) + linked(chat.text, known) or listed(chat.evidence.get("citations"))
    # Sonar's citations are bare addresses; their titles stand among the search results.
    titled = {one.url: one for one in known}
    return [titled.get(one.url, one) for one in cited]


def _retrieved(chat: ChatReply) -> list[Citation]:
    found = [one for items in _lists(chat)[1:] for one in listed(items)]
    return found or listed(chat.evidence.get("citations"))


def _numbered(chat: ChatReply) -> dict[int, Citation]:
    """The sources by the number that marks use, from the first list that has any."""
    return next((found for items in _lists(chat) if (found := numbered(items))), {})


def _lists(chat: ChatReply) -> tuple[JsonValue, ...]:
    return (
        chat.evidence.get("citations"),
        at(chat.evidence, "search_info", "search_results"),
        chat.evidence.get("search_results"),
        chat.evidence.get("web_search"),
        chat.evidence.get("references"),
    )


def _annotated(chat: ChatReply) -> list[Citation]:
    nested = (at(one, "url_citation") or one for one in chat.annotations)
    return [found for one in nested if (found := citation(one))]


def _queries(chat: ChatReply) -> tuple[str, ...]:
    info = chat.evidence.get("search_info")
    intents = [text_at(one, "search_query") for one in items_at(info, "search_intents")]
    return strings([*items_at(info, "search_queries"), *intents])
