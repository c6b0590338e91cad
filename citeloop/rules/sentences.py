"""Sentences of an answer, the citation marks in them, and their length in words. Chinese and Latin alike."""

import re
import string
from dataclasses import dataclass

from citeloop.rules.folding import CJK_RUN, is_cjk

CITATION_MARK = re.compile(
    r"\[\[\^?\d{1,3}\]\](?:\([^()\s]*\))?"  # [[1]](https://…)
    r"|\^?\[\^?\d{1,3}(?:\s*[,，、-]\s*\^?\d{1,3})*\^?\]\^?(?:\([^()\s]*\))?"  # [1] [1,2] [^1] ^[1]^ [1](https://…)
    r"|\[(?:citation|source|ref|引用|来源)[:：_ ]?\s*\d{1,3}\]"  # [citation:3]
    r"|【\^?\d{1,3}(?:[†:,，、-][^】\n]{0,40})?】"  # 【1】 【3†source】
    r"|<sup>\s*\[?\d{1,3}\]?\s*</sup>"
    r"|[⁰¹²³⁴⁵⁶⁷⁸⁹]+",
    re.IGNORECASE,
)
SOURCE_LINK = re.compile(r"\]\(\s*<?https?://|<https?://|https?://", re.IGNORECASE)

_TRAILING_SOURCE = re.compile(  # ([reuters.com](https://…)) or (https://…) behind the sentence it supports
    r"[ \t]*[(（](?:\[[^\[\]\n]*\]\([^()\s]*\)|https?://[^\s()]+)"
    r"(?:[,;、，\s]+(?:\[[^\[\]\n]*\]\([^()\s]*\)|https?://[^\s()]+))*[)）]"
)
_TRAILING_MARK = re.compile(r"[ \t]*(?:" + CITATION_MARK.pattern + ")", re.IGNORECASE)
_ENDS = "。！？!?；;\n"
_MAY_END = re.compile(f"[{_ENDS}.]")
_CLOSERS = "”’\"'」』）)】》*_"
_ABBREVIATIONS = frozenset(
    {"e.g", "i.e", "etc", "vs", "inc", "ltd", "co", "corp", "no", "dr", "mr", "mrs", "ms", "prof", "st", "fig"}
    | {"al", "approx", "u.s", "u.k", "dept", "est", "jr", "sr"}
)
_WORD_SIGNS = string.ascii_letters + "."
_WORD = re.compile(r"[^\W_]+(?:[.'’-][^\W_]+)*")


@dataclass(frozen=True)
class Span:
    """A half-open range of code points in the text it was cut from."""

    start: int
    end: int


def _ends_sentence(text: str, index: int) -> bool:
    """Whether the full stop at `index` closes a sentence: no decimal, domain, ordinal or abbreviation."""
    follower = text[index + 1 : index + 2]
    if follower and not (follower.isspace() or follower in _CLOSERS + "[【<^" or is_cjk(follower)):
        return False
    line_start = text.rfind("\n", 0, index) + 1
    before = text[line_start:index]
    if before.strip(" *#-_>").isdigit():
        return False
    word = before[len(before.rstrip(_WORD_SIGNS)) :].lstrip(".")
    return word.lower() not in _ABBREVIATIONS and not (len(word) == 1 and word.isupper())


def _take_trailing(text: str, index: int) -> int:
    """Closing quotes, further full stops and citation marks belong to the sentence they follow."""
    while index < len(text):
        if text[index] in _CLOSERS or text[index] in "。！？!?；;.":
            index += 1
            continue
        mark = _TRAILING_MARK.match(text, index) or _TRAILING_SOURCE.match(text, index)
        if mark is None:
            return index
        index = mark.end()
    return index


def sentences(text: str, addresses: frozenset[int] = frozenset()) -> tuple[Span, ...]:
    """Split on 。！？!?；; newline and a sentence-final full stop; blank pieces are left out.

    addresses: offsets of links, whose dots and question marks end nothing.
    """
    found: list[Span] = []
    start = index = 0
    while (mark := _MAY_END.search(text, index)) is not None:
        char, index = mark.group(), mark.end()
        if char != "\n" and mark.start() in addresses:
            continue
        if char != "." or _ends_sentence(text, mark.start()):
            end = index if char == "\n" else _take_trailing(text, index)
            if text[start:end].strip():
                found.append(Span(start, end))
            start = index = end
    if text[start:].strip():
        found.append(Span(start, len(text)))
    return tuple(found)


def word_count(text: str) -> int:
    """CJK characters plus Latin and digit words, citation marks removed."""
    bare = CITATION_MARK.sub(" ", text)
    return cjk_count(bare) + len(_WORD.findall(CJK_RUN.sub(" ", bare)))


def cjk_count(text: str) -> int:
    return sum(map(len, CJK_RUN.findall(text)))


def has_citation(text: str) -> bool:
    """Whether a citation mark or a link to a source stands in this piece of the original answer."""
    return CITATION_MARK.search(text) is not None or SOURCE_LINK.search(text) is not None
