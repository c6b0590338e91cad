"""Position-adjusted word count of cited sources, after the GEO paper (KDD 2024, arXiv 2311.09735), CJK-safe."""

import math
import re

from citeloop.rules.answers import prepare
from citeloop.rules.sentences import word_count

_MARKS = re.compile(
    r"[\[【](?:citation|source|ref|引用|来源)?[:：_ ]?\^?(\d{1,3}(?:\s*[,，、]\s*\d{1,3})*)[^\]】]{0,40}[\]】]"
)


def cited_numbers(sentence: str) -> tuple[int, ...]:
    """The numbers of the citation marks in a sentence, each once: `[1][3,4]` → 1, 3, 4."""
    found = (int(n) for match in _MARKS.finditer(sentence) for n in re.findall(r"\d+", match.group(1)))
    return tuple(dict.fromkeys(found))


def position_adjusted_word_count(answer: str) -> dict[int, float] | None:
    """Per citation number: Σ |s|·e^(−pos(s)/|S|) over the sentences citing it, divided by Σ |s| over all.

    pos counts from 0. Sources cited in one sentence share it equally. None where no sentence cites anything.
    """
    body = prepare(answer)
    told = [(body.original[s.start : s.end], word_count(body.text[s.start : s.end])) for s in body.sentences]
    told = [(sentence, size) for sentence, size in told if size]
    total = sum(size for _, size in told)
    scores: dict[int, float] = {}
    for position, (sentence, size) in enumerate(told):
        numbers = cited_numbers(sentence)
        for number in numbers:
            weight = size * math.exp(-position / len(told)) / len(numbers)
            scores[number] = scores.get(number, 0.0) + weight / total
    return scores or None
