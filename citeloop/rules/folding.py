"""Text folded for comparison, with a map back to the original.

NFKC, casefold and Traditional → Simplified, character by character; what is no part of a name (zero-width
characters, Markdown marks, emoji, ™, superscripts) is taken out.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import compress

BREAK = "\n"
"""Stands in folded text where something was blanked or a paragraph ends: no name reaches across it."""

_INVISIBLE = frozenset("\u00ad\u034f\u061c\u180e\u200b\u200c\u200d\u200e\u200f\u2060\u2061\u2062\u2063\u2064\ufeff")
_SUPERSCRIPT = frozenset("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾")
_TRADE_MARKS = frozenset("™®©℠℗")
_LIST_MARKS = re.compile("[\u2460-\u24ff\u2776-\u2793\u3220-\u3229\u3280-\u3289]")
_SAME_SIGN = {"’": "'", "‘": "'", "ʼ": "'", "′": "'", "‐": "-", "‑": "-", "‒": "-"}
_EMOJI = re.compile(
    "[\u203c\u2049\u20e3\u2139\u2194-\u21aa\u231a-\u23ff\u25aa-\u25fe\u2600-\u27bf\u2934\u2935\u2b05-\u2b55"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff\U000e0020-\U000e007f]"
)
_CJK = (
    "\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3100-\u318f\u31a0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
CJK_RUN = re.compile(f"[{_CJK}]+")
_BETWEEN_SCRIPTS = re.compile(f" (?:(?<=[{_CJK}] )(?=[^{_CJK}])|(?<=[^{_CJK}] )(?=[{_CJK}]))")
_CACHED = 20_000


@dataclass(frozen=True)
class Folded:
    """`text[i]` came from `original[starts[i]:ends[i]]`; `apart[i]`: an emoji, ①, ™ or superscript stood before it."""

    text: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    apart: tuple[bool, ...]

    def boundary_before(self, index: int) -> bool:
        """Whether a Latin name may begin here: no Latin letter or digit touches it from the left."""
        return index == 0 or self.apart[index] or not is_latin(self.text[index - 1])

    def boundary_after(self, index: int) -> bool:
        """Whether a Latin name may end before `index`."""
        return index >= len(self.text) or self.apart[index] or not is_latin(self.text[index])


@lru_cache(maxsize=_CACHED)
def is_cjk(char: str) -> bool:
    """Han, kana, bopomofo or Hangul: scripts that put no space between words, or glue particles to names."""
    return CJK_RUN.match(char) is not None


def is_latin(char: str) -> bool:
    """A letter or digit of a script that separates its words."""
    return char.isalnum() and not is_cjk(char)


@lru_cache(maxsize=_CACHED)
def _fold_cluster(cluster: str) -> str:
    import zhconv  # late: a tenth of a second that most commands have no use for

    composed = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", cluster).casefold())
    return "".join(
        zhconv.convert(char, "zh-hans") if char >= "\u3400" else _SAME_SIGN.get(char, char) for char in composed
    )


@lru_cache(maxsize=_CACHED)
def _extends(char: str) -> bool:
    return unicodedata.combining(char) != 0 or char in "\uff9e\uff9f"


def _is_markdown(text: str, index: int) -> bool:
    """Emphasis and code marks; an underscore inside a Latin word is a letter of it (`meta_data`)."""
    char = text[index]
    before = text[index - 1] if index else " "
    after = text[index + 1] if index + 1 < len(text) else " "
    if char == "~":
        return "~" in (before, after)
    return char in "*`" or not (is_latin(before) and is_latin(after))


class _Sort(Enum):
    PLAIN = "plain"
    MARKDOWN = "markdown"
    INVISIBLE = "invisible"
    APART = "apart"


@lru_cache(maxsize=_CACHED)
def _sort(char: str) -> _Sort:
    if char in "*`~_":
        return _Sort.MARKDOWN
    if char in _INVISIBLE or "\ufe00" <= char <= "\ufe0f":
        return _Sort.INVISIBLE
    apart = char in _SUPERSCRIPT or char in _TRADE_MARKS or _EMOJI.match(char) or _LIST_MARKS.match(char)
    return _Sort.APART if apart else _Sort.PLAIN


def _is_dropped(text: str, index: int, sort: _Sort) -> bool:
    return sort is _Sort.INVISIBLE or (sort is _Sort.MARKDOWN and _is_markdown(text, index))


def _piece(text: str, index: int, blanked: frozenset[int]) -> tuple[str, int]:
    """What the original at `index` folds to, and where the next piece begins."""
    end = index + 1
    if index in blanked:
        while end < len(text) and end in blanked:
            end += 1
        return BREAK, end
    if text[index].isspace():
        while end < len(text) and text[end].isspace() and end not in blanked:
            end += 1
        return (BREAK if text.count("\n", index, end) > 1 else " "), end
    while end < len(text) and _extends(text[end]):
        end += 1
    return _fold_cluster(text[index:end]), end


class _Table(dict[int, str]):
    """What `str.translate` looks up: a function of one character, asked once for each."""

    def __init__(self, of: Callable[[str], str]) -> None:
        super().__init__()
        self._of = of

    def __missing__(self, code: int) -> str:
        value = self._of(chr(code))
        if len(self) < _CACHED:
            self[code] = value
        return value


def _kind(char: str) -> str:
    """`p` folds to one character, `s` is white space, `x` joins what stands before it, `o` is anything else."""
    if char.isspace():
        return "s"
    if _extends(char):
        return "x"
    return "p" if _sort(char) is _Sort.PLAIN and len(_fold_cluster(char)) == 1 else "o"


_KINDS = _Table(_kind)
_FOLDS = _Table(lambda char: " " if char.isspace() else _fold_cluster(char))
_RUN = re.compile("p+(?!x)")


def _kinds(text: str, apart: frozenset[int]) -> str:
    """One letter a character: runs of `p` fold each by itself, single white space before them as well.

    apart: offsets that are never part of a run, nor is what stands before them.
    """
    kinds = text.translate(_KINDS)
    if apart:
        letters = list(kinds)
        for index in apart:
            letters[index] = "x"
        kinds = "".join(letters)
    return kinds.replace("sp", "pp")


def fold(text: str, *, blanked: frozenset[int] = frozenset(), dropped: frozenset[int] = frozenset()) -> Folded:
    """Fold `text`. blanked: offsets that break every name; dropped: offsets to pass over (inline tags)."""
    out = _Pieces()
    kinds = _kinds(text, blanked | dropped)
    index = 0
    while index < len(text):
        run = _RUN.match(kinds, index)
        if run is not None:
            out.add_run(text[index : run.end()].translate(_FOLDS), index)
            index = run.end()
            continue
        sort = _Sort.PLAIN if index in blanked else _sort(text[index])
        if sort is _Sort.APART:
            out.part()
            index += 1
        elif index in dropped or _is_dropped(text, index, sort):
            index += 1
        else:
            piece, end = _piece(text, index, blanked)
            out.add(piece, index, end)
            index = end
    return _close_script_gaps(out.folded())


class _Pieces:
    """A `Folded` in the making."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._apart: list[bool] = []
        self._parted = False

    def part(self) -> None:
        """The next piece stands apart from the last."""
        self._parted = True

    def add(self, piece: str, start: int, end: int) -> None:
        """A piece that came as a whole from `original[start:end]`."""
        self._add(piece, [start] * len(piece), [end] * len(piece))

    def add_run(self, run: str, start: int) -> None:
        """Characters that came one from one, the first from `original[start]`."""
        self._add(run, range(start, start + len(run)), range(start + 1, start + 1 + len(run)))

    def _add(self, text: str, starts: Sequence[int], ends: Sequence[int]) -> None:
        if text:
            self._texts.append(text)
            self._starts += starts
            self._ends += ends
            self._apart += [self._parted] + [False] * (len(text) - 1)
            self._parted = False

    def folded(self) -> Folded:
        return Folded("".join(self._texts), tuple(self._starts), tuple(self._ends), tuple(self._apart))


def _close_script_gaps(folded: Folded) -> Folded:
    """Drop the space that typography puts between Latin and CJK, so that `小米 SU7` is `小米SU7`."""
    text = folded.text
    keep = bytearray(b"\1") * len(text)
    for match in _BETWEEN_SCRIPTS.finditer(text):
        gap = match.start()
        keep[gap] = not (text[gap - 1].isalnum() and text[gap + 1].isalnum())
    if 0 not in keep:
        return folded
    return Folded(
        "".join(compress(text, keep)),
        tuple(compress(folded.starts, keep)),
        tuple(compress(folded.ends, keep)),
        tuple(compress(folded.apart, keep)),
    )
