"""What a text asserts and the fact sheet does not: numbers, quotations, studies, awards, customers."""

import re
from collections.abc import Iterator, Sequence

from citeloop.models.brand import Brand, Entity
from citeloop.models.work import Flag, Severity
from citeloop.rules.answers import Body
from citeloop.rules.matching import folded_text
from citeloop.rules.sentences import CITATION_MARK, SOURCE_LINK

_NUMBER = re.compile(r"(?<![\w.])(?<![A-Za-z][-–])\d+(?:[,，]\d{3})*(?:\.\d+)*", re.ASCII)
_HAN_FIGURE = re.compile(
    r"百分之[零一二三四五六七八九十百点两]+|[零一二三四五六七八九十百千万亿两几数]+倍|[一二三四五六七八九]成(?=以上|的|，|。)"
)
_LIST_MARK = re.compile(r"^[ \t]*(?:#{1,6}[ \t]+)?(?:\*\*)?[(（]?\d{1,2}(?:[.、)）:：]|\\\.)", re.MULTILINE)
_YEAR = re.compile(r"(?:19|20)\d\d")
_COUNTED_PARTS = re.compile(
    r"\s*(?:个(?:问题|方面|部分|步骤|要点|理由|阶段|小节)?|点|步|条|类|种|部分|方面|段|节|steps?|questions?|ways|points?"
    r"|parts?|reasons?|things?|sections?|minutes? read)(?![\w%])",
    re.IGNORECASE,
)
_ORDINAL_BEFORE = re.compile(r"(?:第|step|part|section|chapter|步骤|问题|Q)\s*$", re.IGNORECASE)
_SMALL = 10

_CLAIMS = {
    "study": (
        r"研究(?:表明|显示|发现)|调查(?:显示|表明)|数据(?:显示|表明)|据统计|实验证明|专家(?:表示|认为|指出)",
        r"\b(?:stud(?:y|ies)|research|surveys?|reports?|tests?|experts?) (?:shows?|finds?|found|says?|proves?|agree)\b",
        r"\baccording to (?:a|an|recent|experts?|analysts?|studies)\b",
    ),
    "award": (
        r"荣获|获评|获颁|(?:获得|斩获)[^，。]{0,16}(?:奖|认证|称号)|通过[^，。]{0,12}认证",
        r"\baward[- ]winning\b|\bwon (?:the|an?) [^.]{0,40}award\b|\bcertified (?:by|to|under)\b",
    ),
    "customers": (
        r"客户(?:包括|遍布|超过|覆盖)|服务[了过][^，。]{0,12}[家万名]|[被受]到?[^，。]{0,10}(?:广泛|一致)(?:采用|好评|认可|信赖)",
        r"\btrusted by\b|\bour (?:customers|clients) (?:include|say)\b",
        r"\bused by (?:thousands|millions|hundreds|many|leading)\b",
    ),
}
_CLAIM_PATTERNS = tuple(
    # the English in a group of its own: `\b` then rules out most places at once
    (name, re.compile(f"{chinese}|(?:{'|'.join(english)})", re.IGNORECASE))
    for name, (chinese, *english) in _CLAIMS.items()
)
_QUOTED = re.compile(r"[“\"]([^”\"\n]{12,400})[”\"]")
_SPEECH = re.compile(
    r"(?:(?<!来)说|表示|指出|称)[：:，,]\s*$|(?:说道?|表示|指出)\s*$|\b(?:said|says|explains?|noted|added)[,:]?\s*$",
    re.IGNORECASE,
)
_SPEECH_AFTER = re.compile(
    r"^[，,]\s*\w{1,12}?(?<!来)(?:说|表示|指出)|^,?\s*(?:said|says|explains?|noted)\b", re.IGNORECASE
)


def _plain_number(token: str) -> str:
    bare = re.sub(r"[,，]", "", token)
    return bare.rstrip("0").rstrip(".") if bare.count(".") == 1 else bare


def numbers_in(text: str) -> frozenset[str]:
    """Figures of a text, thousands separators and trailing zeros removed; Chinese multiples as written."""
    arabic = {_plain_number(token) for token in re.findall(r"\d+(?:[,，]\d{3})*(?:\.\d+)*", text)}
    return frozenset(arabic | set(_HAN_FIGURE.findall(text)))


def _names(entities: Sequence[Entity]) -> str:
    return " ".join(name for e in entities for name in (e.name, *(alias.text for alias in e.aliases)))


def supported_numbers(brand: Brand, keyword: str) -> frozenset[str]:
    """What may stand in a text: figures of the facts, of the names, of the keyword and of the addresses."""
    told = " ".join([fact.text for fact in brand.facts] + [keyword, _names((brand.entity, *brand.rivals))])
    return numbers_in(told)


def _is_structure(text: str, match: re.Match[str]) -> bool:
    """`Step 1`, `3 points`: a number that orders the text and asserts nothing."""
    token = match.group()
    if not token.isdigit() or int(token) > _SMALL:
        return False
    before = text[max(0, match.start() - 12) : match.start()]
    return _ORDINAL_BEFORE.search(before) is not None or _COUNTED_PARTS.match(text, match.end()) is not None


def number_flags(body: Body, brand: Brand, keyword: str) -> Iterator[Flag]:
    """Figures that no fact holds. A bare year is only a note."""
    allowed = supported_numbers(brand, keyword)
    text = CITATION_MARK.sub(lambda match: " " * len(match.group()), body.text)
    text = _LIST_MARK.sub(lambda match: " " * len(match.group()), text)
    seen: set[str] = set()
    for match in [*_NUMBER.finditer(text), *_HAN_FIGURE.finditer(text)]:
        value = _plain_number(match.group())
        if value in allowed or value in seen or _is_structure(text, match):
            continue
        seen.add(value)
        year = _YEAR.fullmatch(match.group()) is not None
        yield Flag(
            rule="unsupported-number",
            severity=Severity.NOTE if year else Severity.FLAG,
            message=f"{match.group()} is in no fact of the sheet: add the fact with its source, or remove it",
            excerpt=around(text, match.start(), match.end()),
        )


def around(text: str, start: int, end: int, width: int = 20) -> str:
    """The place with a little of what surrounds it, on one line."""
    return " ".join(text[max(0, start - width) : end + width].split())


def claim_flags(body: Body, brand: Brand) -> Iterator[Flag]:
    """Studies, awards, customers and spoken words without a source in the sentence, and not in the sheet."""
    facts = [folded_text(fact.text) for fact in brand.facts]
    for span in body.sentences:
        sentence = body.text[span.start : span.end]
        for name, pattern in _CLAIM_PATTERNS:
            match = pattern.search(sentence)
            if match is None or SOURCE_LINK.search(body.original, span.start, span.end):
                continue
            if not any(folded_text(match.group()) in fact for fact in facts):
                yield Flag(
                    rule="unsupported-claim",
                    severity=Severity.FLAG,
                    message=f"a {name} is claimed without a source: link the fact, or remove the claim",
                    excerpt=around(sentence, *match.span()),
                )
        yield from _quotation_flags(sentence, facts)


def _quotation_flags(sentence: str, facts: Sequence[str]) -> Iterator[Flag]:
    for quoted in _QUOTED.finditer(sentence):
        spoken = _SPEECH.search(sentence[: quoted.start()]) or _SPEECH_AFTER.match(sentence[quoted.end() :])
        if spoken and not any(folded_text(quoted.group(1)) in fact for fact in facts):
            yield Flag(
                rule="unsupported-quotation",
                severity=Severity.BLOCK,
                message="somebody is quoted in words that stand in no fact: a quotation may not be made up",
                excerpt=around(sentence, *quoted.span()),
            )
