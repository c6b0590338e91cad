"""Sources as engines name them: lists of pages, and the marks by which a text points at them."""

import re
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from pydantic import JsonValue

from citeloop.channels.foreign import items_at, text_at
from citeloop.models.measure import Citation

# [1], [ref_1], [citation:1], ^[1]^, 【1】 and [1](@ref); but not a link [1](https://…).
_MARK = re.compile(r"(?:\[(?:ref_|citation:|\^)?(\d{1,3})\](?!\((?!@))|【(\d{1,3})(?:†[^】]*)?】)")
_LINK = re.compile(r"\]\((https?://[^\s)]+)\)")
_TRAILING_DIGITS = re.compile(r"\d{1,3}$")
_LONGEST_URL = 2000


def citation(item: JsonValue) -> Citation | None:
    """A source written as its address, or as an object with `url` or `link`; None for what is no web address."""
    url = item if isinstance(item, str) else text_at(item, "url") or text_at(item, "link")
    if not url.startswith(("https://", "http://")) or len(url) > _LONGEST_URL or not _has_host(url):
        return None
    return Citation(url=url, title=(text_at(item, "title") or text_at(item, "name"))[:500])


def listed(items: JsonValue) -> list[Citation]:
    return [found for one in items_at(items) if (found := citation(one))]


def numbered(items: JsonValue) -> dict[int, Citation]:
    """The sources by the number that marks use: the vendor's own index, else the place in the list, from 1."""
    return {
        _number(item, place): found
        for place, item in enumerate(items_at(items), start=1)
        if (found := citation(item))
    }  # fmt: skip


def marked(text: str, sources: Mapping[int, Citation]) -> list[Citation]:
    """The sources that marks in `text` point at, in order of their first mark."""
    return [sources[n] for match in _MARK.finditer(text) if (n := int(match[1] or match[2])) in sources]


def linked(text: str, known: Iterable[Citation]) -> list[Citation]:
    """The known sources that `text` links to. A link to anything else is the model's own invention."""
    by_url = {source.url: source for source in known}
    return [by_url[url] for url in _LINK.findall(text) if url in by_url]


def distinct(citations: Iterable[Citation]) -> tuple[Citation, ...]:
    """By address, in order; a later title fills an empty one."""
    found: dict[str, Citation] = {}
    for one in citations:
        if one.url not in found or not found[one.url].title:
            found[one.url] = one
    return tuple(found.values())


def strings(items: JsonValue) -> tuple[str, ...]:
    """The distinct, non-empty strings of a list, which may be given as objects with `query` or `text`."""
    found = (one if isinstance(one, str) else text_at(one, "query") or text_at(one, "text") for one in items_at(items))
    return tuple(dict.fromkeys(one.strip()[:500] for one in found if one.strip()))


def _number(item: JsonValue, place: int) -> int:
    for name in ("index", "id", "refer"):
        if digits := _TRAILING_DIGITS.search(text_at(item, name)):
            return int(digits[0])
    return place


def _has_host(url: str) -> bool:
    try:
        return bool(urlsplit(url).hostname)
    except ValueError:
        return False
