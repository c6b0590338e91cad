"""The review rules: real rules on real text, each flag with what to do about it."""

import re
from collections.abc import Iterator, Sequence

from citeloop.models.brand import Brand
from citeloop.models.plan import Kind
from citeloop.models.work import Flag, Outcome, Severity
from citeloop.rules.advertising import TERMS
from citeloop.rules.answers import URL, Body, prepare
from citeloop.rules.claims import around, claim_flags, number_flags
from citeloop.rules.domains import cites_page, owns, page_key
from citeloop.rules.duplicates import shingles, similarity
from citeloop.rules.matching import folded_text, occurrences
from citeloop.rules.prompting import TAGS, is_chinese
from citeloop.rules.sentences import cjk_count, word_count

MAX_FLAGS = 50
MAX_TEXT = 200_000
_DUPLICATE = 0.8
_COPY = 0.97
_BOUNDS = {
    Kind.ARTICLE: (150, 5000),
    Kind.FAQ: (120, 5000),
    Kind.PRODUCT_PAGE: (100, 4000),
    Kind.CASE_STUDY: (150, 5000),
    Kind.SUMMARY: (40, 2000),
}
"""Words of Latin script; a Chinese text is measured in characters and may have half as many again."""
_MAX_TITLE = 120
_LEFTOVER = re.compile(
    rf"</?(?:{'|'.join(TAGS)})>|^\s*-?\s*\[F\d+\]|\[F\d+\]|\{{\{{[^{{}}\n]*\}}\}}|\{{(?:brand|keyword|kind|title)\}}"
    r"|lorem ipsum|(?-i:\bTODO\b|\bTBD\b|\bXXX+\b)|\[(?:your|insert|company|brand|product|add)\b[^\]\n(]*\](?!\()"
    r"|[\[【（(](?:请|待|此处)?(?:插入|填写|补充|填入)[^\]】）)\n]*[\]】）)]",
    re.IGNORECASE | re.MULTILINE,
)
_CHATTER = re.compile(
    r"\bas an ai (?:language )?model\b|作为(?:一个|一名)?(?:AI|人工智能)(?:语言)?(?:模型|助手)"
    r"|\A\s*(?:sure|certainly|of course|here is|here's)\b[^\n]{0,80}[:!.]"
    r"|\A\s*(?:好的|当然|以下是|下面是)[^\n]{0,40}[：:，,。！]",
    re.IGNORECASE,
)
_QUESTION_END = re.compile(r"[？?][”\"'*\s]*$")
_ORDER = {Severity.BLOCK: 0, Severity.FLAG: 1, Severity.NOTE: 2}


def judge(
    text: str,
    title: str,
    brand: Brand,
    locale: str,
    kind: Kind,
    others: Sequence[str] = (),
    *,
    keyword: str = "",
) -> tuple[Outcome, tuple[Flag, ...]]:
    """Judge one draft. others: earlier texts of the same brand; keyword: what the article answers.

    Notes leave the outcome clean. At most 50 flags, the gravest first.
    """
    if len(text) > MAX_TEXT:
        flag = _flag("length", Severity.BLOCK, f"the text has {len(text)} characters; {MAX_TEXT} are allowed")
        return Outcome.BLOCKED, (flag,)
    body = prepare(text)
    found = [
        *_form_flags(text, title, body, locale, kind),
        *_advertising_flags(body, brand),
        *_banned_flags(title, body, brand),
        *number_flags(body, brand, keyword),
        *claim_flags(body, brand),
        *_source_flags(text, brand),
        *_duplicate_flags(text, others),
    ]
    distinct = list(dict.fromkeys(found))
    flags = tuple(sorted(distinct, key=lambda flag: _ORDER[flag.severity])[:MAX_FLAGS])
    return _outcome(flags), flags


def _outcome(flags: Sequence[Flag]) -> Outcome:
    severities = {flag.severity for flag in flags}
    if Severity.BLOCK in severities:
        return Outcome.BLOCKED
    return Outcome.FLAGGED if Severity.FLAG in severities else Outcome.CLEAN


def _flag(rule: str, severity: Severity, message: str, excerpt: str = "") -> Flag:
    return Flag(rule=rule, severity=severity, message=message, excerpt=excerpt)


def _form_flags(text: str, title: str, body: Body, locale: str, kind: Kind) -> Iterator[Flag]:
    if not title.strip():
        yield _flag("title", Severity.BLOCK, "there is no title: begin the text with one `# ` heading")
    elif len(title) > _MAX_TITLE:
        yield _flag("title", Severity.FLAG, f"the title has {len(title)} characters; keep it under {_MAX_TITLE}")
    size = word_count(body.text)
    yield from _length_flags(size, locale, kind)
    for match in _LEFTOVER.finditer(text):
        yield _flag(
            "leftover", Severity.BLOCK, "a placeholder or prompt tag was left in the text", match.group().strip()
        )
    chatter = _CHATTER.search(body.original)
    if chatter:
        yield _flag(
            "chatter", Severity.FLAG, "the writer speaks to its user instead of the reader", chatter.group().strip()
        )
    yield from _language_flags(body, size, locale)


def _length_flags(size: int, locale: str, kind: Kind) -> Iterator[Flag]:
    low, high = _BOUNDS[kind]
    if is_chinese(locale):
        low, high = low * 3 // 2, high * 3 // 2
    if not low <= size <= high:
        yield _flag("length", Severity.FLAG, f"{size} words or characters; the kind {kind} should have {low} to {high}")


def _language_flags(body: Body, size: int, locale: str) -> Iterator[Flag]:
    share = cjk_count(body.text) / size if size else 0.0
    language = locale.lower().replace("_", "-").split("-")[0]
    expects_cjk = language in {"zh", "ja", "ko"}
    if size and ((expects_cjk and share < 0.4) or (not expects_cjk and share > 0.3)):  # noqa: PLR2004
        yield _flag("language", Severity.FLAG, f"the text is not written in the language of locale {locale}")


def _advertising_flags(body: Body, brand: Brand) -> Iterator[Flag]:
    """A word inside a question is only noted, and one that a fact holds in the same words is let pass."""
    facts = [folded_text(fact.text) for fact in brand.facts]
    for span in body.sentences:
        sentence = body.text[span.start : span.end]
        asks = _QUESTION_END.search(sentence.rstrip()) is not None
        for term in TERMS:
            for match in term.pattern.finditer(sentence):
                context = folded_text(sentence[max(0, match.start() - 2) : match.end() + 2])
                if any(context in fact for fact in facts):
                    continue
                yield _flag(
                    "advertising",
                    Severity.NOTE if asks else term.severity,
                    f"“{match.group()}” is an absolute claim: state what can be shown instead",
                    around(sentence, *match.span()),
                )


def _banned_flags(title: str, body: Body, brand: Brand) -> Iterator[Flag]:
    heading = prepare(title).folded
    for word in filter(None, brand.banned_words):
        folded = folded_text(word)
        places = occurrences(body.folded, folded)
        if places:
            start, end = body.folded.starts[places[0][0]], body.folded.ends[places[0][1] - 1]
            excerpt = around(body.text, start, end)
        elif occurrences(heading, folded):
            excerpt = title
        else:
            continue
        yield _flag("banned-word", Severity.BLOCK, f"the brand does not want “{word}” used", excerpt)


def _source_flags(text: str, brand: Brand) -> Iterator[Flag]:
    links = list(dict.fromkeys(match.group() for match in URL.finditer(text)))
    sources = [fact.source_url for fact in brand.facts]
    known = {page_key(source) for source in [*sources, brand.homepage]}
    if not any(cites_page(links, source) for source in sources):
        yield _flag("missing-source", Severity.FLAG, "no fact's source is linked: put the address beside each fact")
    for link in links:
        if page_key(link) not in known and not owns(brand.entity.domains, link):
            yield _flag("foreign-link", Severity.FLAG, "this address is in no fact of the sheet", link)


def _duplicate_flags(text: str, others: Sequence[str]) -> Iterator[Flag]:
    if not others:
        return
    own = shingles(text)
    likeness = max(similarity(own, shingles(other)) for other in others)
    if likeness >= _DUPLICATE:
        severity = Severity.BLOCK if likeness >= _COPY else Severity.FLAG
        yield _flag("duplicate", severity, f"{likeness:.0%} of it stands in an earlier article of the brand")
