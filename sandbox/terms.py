"""Text into index terms: folded words for Latin script, character bigrams for runs of CJK."""

import re
import unicodedata
from functools import lru_cache
from itertools import pairwise

_RUN = re.compile(r"[a-z0-9]+|[\u3400-\u9fff]+")
_STOP = frozenset(
    re.findall(
        r"\w+",
        """a about an and are as at be best by can do does for from good how i in into is it its me my of on or
        recommend recommended should that the their them there they this to tool tools use using what when
        where which who why with you your""",
    )
)
_CJK_STOP = frozenset({"什么", "哪些", "怎么", "如何", "有哪", "推荐", "哪个", "么样", "应该", "可以", "一个", "为什"})
_SHORTEST_PLURAL = 4


def words(text: str) -> list[str]:
    """Terms in order, with repeats. A lone CJK character is its own term."""
    terms: list[str] = []
    for run in _RUN.findall(unicodedata.normalize("NFKC", text).casefold()):
        if run.isascii():
            if run not in _STOP:
                terms.append(_singular(run))
        elif len(run) == 1:
            terms.append(run)
        else:
            terms += [pair for pair in map("".join, pairwise(run)) if pair not in _CJK_STOP]
    return terms


@lru_cache(maxsize=1 << 14)
def term_set(text: str) -> frozenset[str]:
    """For facts and sentences, which come again and again."""
    return frozenset(words(text))


@lru_cache(maxsize=1 << 14)
def _singular(word: str) -> str:
    plural = len(word) > _SHORTEST_PLURAL and word.endswith("s") and not word.endswith(("ss", "us", "is"))
    return word[:-1] if plural else word


def is_chinese(text: str) -> bool:
    return any("\u3400" <= char <= "\u9fff" for char in text)
