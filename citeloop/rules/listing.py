"""Lists in an answer: which item a name stands in, and the item's ordinal."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from citeloop.rules.sentences import Span

_CIRCLED = {
    **{chr(0x2460 + n): n + 1 for n in range(20)},
    **{chr(0x2474 + n): n + 1 for n in range(20)},
    **{chr(0x2776 + n): n + 1 for n in range(10)},
    **{chr(0x24F5 + n): n + 1 for n in range(10)},
    **{chr(0x3220 + n): n + 1 for n in range(10)},
}
_HAN_DIGITS = {char: n for n, char in enumerate("零一二三四五六七八九十")}
_LEAD = r"^(?P<indent>[ \t]*+)(?:>[ \t]*+)*+(?:#{1,6}[ \t]+)?(?:\*\*|__)?[ \t]*+"
_HAN_NUMBER = r"[一二三四五六七八九十]{1,3}"
_MARKER = re.compile(
    _LEAD + r"(?:"
    r"(?P<keycap>\d{1,2})\ufe0f?\u20e3"
    r"|(?P<circled>[①-⑳⑴-⒇❶-❿⓵-⓾㈠-㈩])"
    rf"|第(?P<place>\d{{1,2}}|{_HAN_NUMBER})(?:名|位|款|[，,、:： ])"
    rf"|(?P<han>{_HAN_NUMBER})(?:[、．:：]|\.(?!\d))"
    rf"|[(（](?P<han_bracket>{_HAN_NUMBER})[)）]"
    r"|(?:No\.?|Top|TOP)[ \t]?(?P<number_word>\d{1,2})\b"
    r"|[(（](?P<bracket>\d{1,2})[)）]"
    r"|(?P<number>\d{1,2})(?:\\?\.(?!\d)|[、)）．:：](?!\d))"
    r"|(?P<bullet>[-*•·+●▪◦–])[ \t]+"
    r")(?:\*\*)?",
    re.MULTILINE | re.IGNORECASE,
)
_INLINE = re.compile(
    r"(?P<circled>[①-⑳❶-❿])|(?<![\w.])(?P<number>\d{1,2})(?:[、)）]|\.(?=\s))|[(（](?P<bracket>\d{1,2})[)）]"
)
_PARAGRAPH = re.compile(r"\n[ \t]*\n(?=\S)")
_HEAD_END = re.compile(r"[:：，,。；;（(！!？?\n|]|\s[-–—]+\s|——|\*\*(?=\s*\S)")


@dataclass(frozen=True)
class Item:
    """One list item: its ordinal, its whole span, and the span of its head (what it is about)."""

    style: str
    ordinal: int
    span: Span
    head: Span


def _han_number(text: str) -> int:
    tens, ten, units = text.rpartition("十")
    if not ten:
        return _HAN_DIGITS[text] if len(text) == 1 else int("".join(str(_HAN_DIGITS[c]) for c in text))
    return (_HAN_DIGITS.get(tens, 1) if tens else 1) * 10 + (_HAN_DIGITS.get(units, 0) if units else 0)


def _number(kind: str, text: str) -> int:
    if kind == "circled":
        return _CIRCLED[text]
    return int(text) if text.isdigit() else _han_number(text)


@dataclass(frozen=True)
class _Mark:
    style: str
    number: int | None
    start: int
    content: int
    depth: int = 0


def _line_starts(text: str) -> Iterator[int]:
    yield 0
    for newline in re.finditer("\n", text):
        yield newline.end()


def _line_marks(text: str) -> list[_Mark]:
    marks = []
    for match in filter(None, (_MARKER.match(text, start) for start in _line_starts(text))):
        kind = next(k for k, v in match.groupdict().items() if k != "indent" and v is not None)
        number = None if kind == "bullet" else _number(kind, match[kind])
        depth = len(match["indent"].expandtabs(4)) // 2
        marks.append(_Mark(f"{kind}/{depth}", number, match.start(), match.end(), depth))
    return marks


def _inline_marks(text: str) -> list[_Mark]:
    """Markers inside a line (`①华为 ②小米`): only a chain 1, 2, … of one style."""
    found: list[_Mark] = []
    offset = 0
    for line in text.splitlines(keepends=True):
        chains: dict[str, list[_Mark]] = {}
        for match in _INLINE.finditer(line):
            kind = str(match.lastgroup)
            number = _number(kind, match[kind])
            chain = chains.setdefault(kind, [])
            if number == len(chain) + 1:
                chain.append(_Mark(f"{kind}/inline", number, offset + match.start(), offset + match.end()))
        found += [mark for chain in chains.values() if len(chain) > 1 for mark in chain]
        offset += len(line)
    return found


def _head(text: str, content: int, end: int) -> Span:
    start = content
    while start < end and text[start] in ' \t*_【["“《「':
        start += 1
    stop = _HEAD_END.search(text, start, end)
    return Span(content, stop.start() if stop else end)


def _runs(text: str, marks: list[_Mark], every: list[_Mark]) -> Iterable[list[_Mark]]:
    """Consecutive items of one list. A number that falls back to 1 after a higher one starts another list."""
    run: list[_Mark] = []
    for mark in marks:
        if run and (_restarts(run[-1], mark) or _interrupted(text, run[-1], mark, every)):
            yield run
            run = []
        run.append(mark)
    if run:
        yield run


def _restarts(previous: _Mark, mark: _Mark) -> bool:
    return mark.number == 1 and (previous.number or 0) > 1


def _interrupted(text: str, previous: _Mark, mark: _Mark, every: list[_Mark]) -> bool:
    """Whether another list's item or a paragraph of prose ended this bullet list."""
    if previous.number is not None:
        return False
    if any(previous.start < m.start < mark.start and m.depth <= mark.depth for m in every if m.style != mark.style):
        return True
    return any(
        _MARKER.match(text, blank.end()) is None for blank in _PARAGRAPH.finditer(text, previous.content, mark.start)
    )


def _items_of(text: str, run: list[_Mark]) -> list[Item]:
    counted = [m.number for m in run]
    by_position = None in counted or (len(run) > 1 and set(counted) == {1})
    items = []
    for position, mark in enumerate(run):
        following = run[position + 1].start if position + 1 < len(run) else _list_end(text, mark)
        ordinal = position + 1 if by_position else mark.number or position + 1
        items.append(Item(mark.style, ordinal, Span(mark.start, following), _head(text, mark.content, following)))
    return items


def _list_end(text: str, last: _Mark) -> int:
    """Where the last item ends: inline lists with their line, others before the next paragraph of prose."""
    if last.style.endswith("inline"):
        end = text.find("\n", last.start)
        return len(text) if end < 0 else end
    for blank in _PARAGRAPH.finditer(text, last.content):
        if _MARKER.match(text, blank.end()) is None:
            return blank.start()
    return len(text)


def lists(text: str) -> tuple[tuple[Item, ...], ...]:
    """The lists of `text`, those that begin first coming first."""
    line_marks, inline = _line_marks(text), _inline_marks(text)
    chained = {mark.content for mark in inline}
    every = [mark for mark in line_marks if mark.content not in chained] + inline
    styles = dict.fromkeys(mark.style for mark in sorted(every, key=lambda m: m.start))
    found = [
        tuple(_items_of(text, run))
        for style in styles
        for run in _runs(text, [mark for mark in every if mark.style == style], every)
    ]
    return tuple(sorted(found, key=lambda items: items[0].span.start))


def ordinals(text: str, hits: dict[str, list[int]]) -> dict[str, int]:
    """The ordinal of each name in the first list that has two or more of them; empty where there is none.

    hits: the offsets at which each name stands. A name belongs to the item whose head names it, else to the
    first item that has it: `1. A: cheaper than B` does not make B the first.
    """
    for items in lists(text):
        placed: dict[str, int] = {}
        subjects = [_subject(item, hits) for item in items]
        for name, offsets in hits.items():
            item = _place(items, subjects, name, offsets)
            if item is not None:
                placed[name] = item.ordinal
        if len(placed) > 1:
            return placed
    return {}


def _first_in(span: Span, offsets: list[int]) -> int | None:
    return min((offset for offset in offsets if span.start <= offset < span.end), default=None)


def _subject(item: Item, hits: dict[str, list[int]]) -> str | None:
    """The name that stands first in the item's head."""
    named = {name: _first_in(item.head, offsets) for name, offsets in hits.items()}
    return min((n for n, at in named.items() if at is not None), key=lambda n: named[n] or 0, default=None)


def _place(items: tuple[Item, ...], subjects: list[str | None], name: str, offsets: list[int]) -> Item | None:
    if name in subjects:
        return items[subjects.index(name)]
    for spans in ([item.head for item in items], [item.span for item in items]):
        for item, span in zip(items, spans, strict=True):
            if _first_in(span, offsets) is not None:
                return item
    return None
