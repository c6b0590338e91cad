"""Text folded for comparison, with a map back to the original.

NFKC, casefold and Traditional → Simplified, character by character; what is no part of a name (zero-width
characters, Markdown marks, emoji, ™, superscripts) is taken out.
"""

import re
import unicodedata
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

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
_CJK = re.compile(
    "[\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3100-\u318f\u31a0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)


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


def is_cjk(char: str) -> bool:
    """Han, kana, bopomofo or Hangul: scripts that put no space between words, or glue particles to names."""
    return _CJK.match(char) is not None


def is_latin(char: str) -> bool:
    """A letter or digit of a script that separates its words."""
    return char.isalnum() and not is_cjk(char)


@lru_cache(maxsize=20_000)
def _fold_cluster(cluster: str) -> str:
    import zhconv  # late: a tenth of a second that most commands have no use for

    composed = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", cluster).casefold())
    return "".join(
        zhconv.convert(char, "zh-hans") if char >= "\u3400" else _SAME_SIGN.get(char, char) for char in composed
    )


@lru_cache(maxsize=20_000)
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


@lru_cache(maxsize=20_000)
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


def fold(text: str, *, blanked: frozenset[int] = frozenset(), dropped: frozenset[int] = frozenset()) -> Folded:
    """Fold `text`. blanked: offsets that break every name; dropped: offsets to pass over (inline tags)."""
    out: list[tuple[str, int, int, bool]] = []
    apart = False
    index = 0
    while index < len(text):
        sort = _Sort.PLAIN if index in blanked else _sort(text[index])
        if sort is _Sort.APART:
            apart = True
            index += 1
        elif index in dropped or _is_dropped(text, index, sort):
            index += 1
        else:
            piece, end = _piece(text, index, blanked)
            for char in piece:
                out.append((char, index, end, apart))
                apart = False
            index = end
    return _close_script_gaps(_assemble(out))


def _assemble(pieces: list[tuple[str, int, int, bool]]) -> Folded:
    return Folded(
        "".join(piece[0] for piece in pieces),
        tuple(piece[1] for piece in pieces),
        tuple(piece[2] for piece in pieces),
        tuple(piece[3] for piece in pieces),
    )


def _close_script_gaps(folded: Folded) -> Folded:
    """Drop the space that typography puts between Latin and CJK, so that `小米 SU7` is `小米SU7`."""
    text = folded.text
    keep = [
        i
        for i, char in enumerate(text)
        if not (
            char == " "
            and 0 < i < len(text) - 1
            and (is_cjk(text[i - 1]) != is_cjk(text[i + 1]))
            and text[i - 1].isalnum()
            and text[i + 1].isalnum()
        )
    ]
    if len(keep) == len(text):
        return folded
    return Folded(
        "".join(text[i] for i in keep),
        tuple(folded.starts[i] for i in keep),
        tuple(folded.ends[i] for i in keep),
        tuple(folded.apart[i] for i in keep),
    )
