"""An answer made ready for the matcher: what is its own text, what is an address, what is its list of sources."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile

from citeloop.rules.domains import distinct, has_public_suffix
from citeloop.rules.folding import Folded, fold
from citeloop.rules.sentences import CITATION_MARK, Span, sentences

_REASONING = r"(?:think|thinking|thought|reasoning)"
_THOUGHT = re.compile(rf"<{_REASONING}>.*?(?:</{_REASONING}>|\Z)", re.IGNORECASE | re.DOTALL)
_OPENLESS_THOUGHT = re.compile(rf"\A.*</{_REASONING}>", re.IGNORECASE | re.DOTALL)

_HAN = "\u3040-\u30ff\u3400-\u9fff"
_STOP = rf"\s<>\"'`|{_HAN}，。；：！？、）】」』》”’\u3000"
URL = re.compile(
    rf"(?:(?:https?|ftp)://|mailto:|www\.(?=[a-z0-9-]+\.))"
    rf"(?:[^{_STOP}()\[\]*]|\([^{_STOP}()]*\)|\*(?=[\w/])|(?<=[/=_%#?-])[{_HAN}]+)+(?<![.,;:!?])",
    re.IGNORECASE,
)
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){1,8}", re.IGNORECASE | re.ASCII)
_BARE_DOMAIN = re.compile(
    r"(?<![A-Za-z0-9@.-])((?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.){1,8}[a-z]{2,18})(?![A-Za-z0-9-])"
    rf"((?::\d+)?/[^{_STOP}()\[\]]*)?",
    re.IGNORECASE | re.ASCII,
)
_TARGET = re.compile(r"(?<=\])\(\s*(?:<[^<>\n]*>|(?:[^()\s<>]|\([^()\s]*\))+)(?:\s+(?:\"[^\"\n]*\"|'[^'\n]*'))?\s*\)")
_REFERENCE = re.compile(r"(?<=\])\[([^\[\]\n]{1,40})\]")
_DEFINITION = re.compile(
    r"^[ ]{0,3}\[(?:\^[^\[\]\n]{1,60}\]:|([^\[\]\n]{1,60})\]:[ \t]*<?(?:https?://|www\.|/))[^\n]*$", re.MULTILINE
)
_INLINE_TAGS = frozenset({"b", "strong", "i", "em", "u", "mark", "span", "a", "code", "font", "s", "del", "small"})
_TAG = re.compile(
    r"</?(b|strong|i|em|u|mark|span|a|code|font|s|del|small|br|p|div|li|ul|ol|table|thead|tbody|tr|td|th|h[1-6]"
    r"|sup|sub|img|hr|pre|blockquote|details|summary|cite|section)\b[^<>]*>",
    re.IGNORECASE,
)
_TITLE_CASE = re.compile(r"[A-Z][a-z]+")

_HEADING = re.compile(
    r"^[\s#>*_]*(?:[一二三四五六七八九十]+、|\d{1,2}[.、]\s*)?[\W_]{0,4}"
    r"(?:主要|相关|部分|以上|本文)?"
    r"(?:参考(?:资料|来源|文献|链接|网页|文章|网址|信息)?|(?:引用|资料|信息|数据|内容|搜索|文献)?(?:来源|出处)|引用(?:文献|链接)?|"
    r"相关链接|延伸阅读|sources?(?: cited| list| used)?|references?|citations?|bibliography|works cited|"
    r"footnotes?|further reading)"
    r"(?:列表|如下| list)?[\s*_]*(?:[(（][^)）\n]{0,20}[)）])?[\s*_]*(?P<colon>[:：])?[\s*_]*(?P<rest>.*)$",
    re.IGNORECASE,
)
_ITEM = re.compile(r"^\s*(?:[-*•·+●]\s|\[\^?\d|【\d|\(?\d{1,2}[.、)）]|[①-⑳]|\^\[|<sup>|https?://|\|)")
_NUMBERED_SOURCE = re.compile(r"^\s*(?:[-*•]\s*)?(?:\[\^?\d{1,3}\]|【\d{1,3}】|\^\[\d{1,3}\]\^?)")


@dataclass(frozen=True)
class Body:
    """An answer without its reasoning. Offsets everywhere are code points of `original`.

    text: T of the definitions, `original` with addresses, link targets and the source list blanked.
    listed_urls: the addresses of a trailing list of sources.
    blanked, marks, dropped: offsets of addresses, of citation marks, and of inline tags.
    """

    original: str
    text: str
    listed_urls: tuple[str, ...]
    blanked: frozenset[int]
    marks: frozenset[int]
    dropped: frozenset[int]

    @cached_property
    def folded(self) -> Folded:
        return fold(self.original, blanked=self.blanked | self.marks, dropped=self.dropped)

    @cached_property
    def sentences(self) -> tuple[Span, ...]:
        """Where the answer's sentences stand; an address ends none."""
        return sentences(self.original, self.blanked)

    def sentence_at(self, offset: int) -> Span:
        """The sentence that holds this offset."""
        place = bisect_right(self.sentences, offset, key=lambda span: span.start) - 1
        found = self.sentences[place] if place >= 0 else None
        return found if found and offset < found.end else Span(0, len(self.original))


def without_reasoning(text: str) -> str:
    """The answer itself: `<think>…</think>` removed, also where one of the two tags is missing."""
    return _OPENLESS_THOUGHT.sub("", _THOUGHT.sub("", text))


def _lines(text: str) -> list[Span]:
    spans: list[Span] = []
    start = 0
    for line in text.splitlines(keepends=True):
        spans.append(Span(start, start + len(line)))
        start += len(line)
    return spans


def _has_address(line: str) -> bool:
    return URL.search(line) is not None or any(_domains(line, frozenset()))


def _is_item(line: str) -> bool:
    return _ITEM.match(line) is not None or _has_address(line)


def _headed_list(text: str, lines: list[Span], position: int) -> Span | None:
    """The list under a heading such as `来源` or on one line after it; None where it is no such heading."""
    heading = _HEADING.match(text[lines[position].start : lines[position].end].strip())
    if heading is None or (heading["rest"].strip() and not heading["colon"]):
        return None
    rest = heading["rest"].strip()
    after = lines[position + 1 :]
    items = list(takewhile(lambda s: _is_item(text[s.start : s.end]), after))
    entries = [text[s.start : s.end] for s in items] + [rest] * bool(rest)
    trailing = len(items) == len(after)
    if not entries or not (trailing or all(map(_has_address, entries))):
        return None
    return Span(lines[position].start, (items or [lines[position]])[-1].end)


def source_list(text: str) -> Span | None:
    """The list of sources: under a heading or on one line after it, or closing numbered lines with addresses.

    A headed list that the answer does not end with counts only where every entry carries an address.
    """
    lines = [s for s in _lines(text) if text[s.start : s.end].strip()]
    for position in range(len(lines) - 1, -1, -1):
        headed = _headed_list(text, lines, position)
        if headed is not None:
            return headed
    first = len(lines)
    while first:
        line = text[lines[first - 1].start : lines[first - 1].end]
        if not (_NUMBERED_SOURCE.match(line) and _has_address(line)):
            break
        first -= 1
    return Span(lines[first].start, len(text)) if first < len(lines) else None


def _domains(text: str, kept: frozenset[str]) -> Iterator[Span]:
    """Bare domains, except those listed as an alias (`kept`, in lower case)."""
    for match in _BARE_DOMAIN.finditer(text):
        name, path = match.group(1), match.group(2)
        bare = name.lower()
        if not path and (bare in kept or bare.removeprefix("www.") in kept):
            continue
        if not path and _TITLE_CASE.fullmatch(name.rpartition(".")[2]):  # "Acme.It": a full stop without its space
            continue
        if has_public_suffix(bare):
            yield Span(match.start(), match.end())


def _tags(text: str) -> tuple[list[Span], set[int]]:
    blocks: list[Span] = []
    inline: set[int] = set()
    for match in _TAG.finditer(text):
        if match.group(1).lower() in _INLINE_TAGS:
            inline.update(range(match.start(), match.end()))
        else:
            blocks.append(Span(match.start(), match.end()))
    return blocks, inline


def prepare(text: str, kept_domains: frozenset[str] = frozenset()) -> Body:
    """Read an answer's text. kept_domains: aliases that look like a domain, in lower case."""
    original = without_reasoning(text)
    sources = source_list(original)
    spans, dropped = _tags(original)
    if sources is not None:
        spans.append(sources)
    for pattern in (URL, _EMAIL, _TARGET, _DEFINITION):
        spans += [Span(*match.span()) for match in pattern.finditer(original)]
    labels = {match.group(1) for match in _DEFINITION.finditer(original)}
    spans += [Span(*m.span()) for m in _REFERENCE.finditer(original) if m.group(1) in labels]
    spans += _domains(original, kept_domains)
    blanked = frozenset[int]().union(*(range(span.start, span.end) for span in spans))
    marks = frozenset[int]().union(*(range(*mark.span()) for mark in CITATION_MARK.finditer(original)))
    listed = original[sources.start : sources.end] if sources else ""
    return Body(
        original=original,
        text=_without(original, blanked),
        listed_urls=distinct(match.group() for match in URL.finditer(listed)),
        blanked=blanked,
        marks=marks,
        dropped=frozenset(dropped - blanked),
    )


def _without(text: str, blanked: frozenset[int]) -> str:
    chars = list(text)
    for index in blanked:
        if chars[index] != "\n":
            chars[index] = " "
    return "".join(chars)
