"""Markdown into what a site takes: sanitised semantic HTML, title, excerpt, slug, marker, JSON-LD."""

import hashlib
import json
import re
import unicodedata
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from itertools import pairwise

import nh3
from markdown_it import MarkdownIt
from markdown_it.token import Token

from citeloop.models.record import Record
from citeloop.rules.remembering import remembered

_TAGS = frozenset(
    {"h1", "h2", "h3", "h4", "h5", "h6", "p", "ul", "ol", "li", "blockquote", "pre", "code", "em", "strong", "a"}
    | {"table", "thead", "tbody", "tr", "th", "td", "hr", "br", "img", "del", "figure", "figcaption", "sup", "sub"}
)
_ATTRIBUTES = {
    "a": {"href", "title"},
    "img": {"src", "alt", "title"},
    "code": {"class"},
    "ol": {"start"},
    "th": {"align"},
    "td": {"align"},
}
_TITLE = re.compile(r"\A\s*#\s+(.+?)\s*#*\s*$", re.MULTILINE)
_SLUG_LENGTH = 60
_DIGEST_LENGTH = 8
_EXCERPT_LENGTH = 160


class Page(Record):
    """A text as a site takes it; `html` does not repeat the title."""

    title: str
    html: str
    excerpt: str


class Question(Record):
    question: str
    answer: str


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])


class _Rendered(Record):
    page: Page
    questions: tuple[Question, ...]


@remembered(texts=256, longest=20_000)
def _rendered(text: str) -> _Rendered:
    """Parsed once for its page, its excerpt and its questions: nothing else in publishing costs as much."""
    title, body = split_title(text)
    tokens = _parser().parse(body)
    return _Rendered(
        page=Page(title=title, html=_html(tokens), excerpt=_excerpt(tokens, _EXCERPT_LENGTH)),
        questions=_questions(tokens),
    )


def split_title(text: str) -> tuple[str, str]:
    """The text of the leading `# ` heading and the Markdown below it; an empty title where there is none."""
    match = _TITLE.match(text)
    if match is None:
        return "", text.strip()
    return plain(match.group(1)), text[match.end() :].strip()


def plain(markdown: str) -> str:
    """Markdown as running text, without marks and addresses."""
    pieces: list[str] = []
    for token in _parser().parse(markdown):
        if token.type == "inline":
            pieces.append(_inline_text(token))
        elif token.type in {"fence", "code_block"}:
            pieces.append(token.content)
    return " ".join(" ".join(pieces).split())


def _inline_text(token: Token) -> str:
    shown = []
    for child in token.children or ():
        if child.type in {"softbreak", "hardbreak"}:
            shown.append(" ")
        elif child.type in {"text", "code_inline", "image"}:
            shown.append(child.content)
    return "".join(shown)


def to_html(markdown: str) -> str:
    """Sanitised HTML: headings, paragraphs, lists, tables, links, images; no scripts, styles or raw markup."""
    return _html(_parser().parse(markdown))


def _html(tokens: Sequence[Token]) -> str:
    html: str = _parser().renderer.render(tokens, _parser().options, {})
    return nh3.clean(
        html,
        tags=set(_TAGS),
        attributes=_ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener",
    ).strip()


def excerpt(markdown: str, length: int = _EXCERPT_LENGTH) -> str:
    """The first paragraph that is prose, cut at a word or sentence."""
    return _excerpt(_parser().parse(markdown), length)


def _excerpt(tokens: Sequence[Token], length: int) -> str:
    for opening, token in pairwise(tokens):
        if opening.type != "paragraph_open" or opening.level or _is_aside(token):
            continue
        text = " ".join(_inline_text(token).split())
        if len(text) <= length:
            return text
        full_stop = max(text.rfind(mark, length // 2, length) for mark in ("。", "！", "？", ". ", "! ", "? "))
        if full_stop > 0:
            return text[: full_stop + 1]
        pause = max(text.rfind(mark, length // 2, length) for mark in " ，、")
        return text[: pause if pause > 0 else length].rstrip(" ，、,") + "…"
    return ""


def _is_aside(token: Token) -> bool:
    """A paragraph wholly in italics is a remark about the text, such as a sandbox's notice."""
    children = [child for child in token.children or () if child.content or child.type.startswith("em_")]
    return bool(children) and children[0].type == "em_open" and children[-1].type == "em_close"


def page(text: str) -> Page:
    """A whole Markdown text with its `# ` title."""
    return _rendered(text).page


def _digest(article_id: str) -> str:
    return hashlib.sha256(article_id.encode()).hexdigest()


def slug(title: str, article_id: str, locale: str = "") -> str:
    """ASCII words of the title and a digest of the article; locale and digest where no Latin letter remains."""
    ascii_title = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    words = re.findall(r"[a-z0-9]+", ascii_title)
    kept = ""
    for word in words:
        if len(kept) + len(word) + 1 > _SLUG_LENGTH:
            break
        kept = f"{kept}-{word}" if kept else word
    if not re.search(r"[a-z]", kept):
        kept = re.sub(r"[^a-z0-9]+", "-", locale.lower()).strip("-")
    tail = _digest(article_id)[:_DIGEST_LENGTH]
    return f"{kept}-{tail}" if kept else tail


def marker(article_id: str) -> str:
    """By this word the post is found again on its site."""
    return f"citeloop-{_digest(article_id)[:24]}"


def questions(markdown: str) -> tuple[Question, ...]:
    """Headings that ask something, with the running text below them."""
    return _questions(_parser().parse(markdown))


def _questions(tokens: Sequence[Token]) -> tuple[Question, ...]:
    found: list[Question] = []
    heading, answer = "", list[str]()
    for opening, token in zip(tokens, [*tokens[1:], None], strict=False):
        if token is None or opening.type == "heading_open":
            if heading.endswith(("?", "？")) and answer:
                found.append(Question(question=heading, answer=" ".join(answer)))
            heading, answer = _inline_text(token) if token is not None else "", []
        elif token.type == "inline" and opening.type != "heading_open":
            answer.append(" ".join(_inline_text(token).split()))
    return tuple(found)


def json_ld(
    markdown: str,
    *,
    locale: str,
    brand: str,
    homepage: str,
    url: str = "",
    published_at: datetime | None = None,
    image_url: str = "",
    sources: Sequence[str] = (),
) -> str:
    """schema.org Article, and FAQPage where headings ask questions; safe inside a script element.

    url, image_url: where they are known already; else the publisher that learns them writes them in.
    """
    rendered = _rendered(markdown)
    organization = {"@type": "Organization", "name": brand, "url": homepage}
    article: dict[str, object] = {
        "@type": "Article",
        "headline": rendered.page.title[:110],
        "description": rendered.page.excerpt,
        "inLanguage": locale,
        "author": organization,
        "publisher": organization,
    }
    if url:
        article["mainEntityOfPage"] = url
    if published_at is not None:
        article["datePublished"] = published_at.isoformat()
    if image_url:
        article["image"] = image_url
    if sources:
        article["citation"] = list(sources)
    graph: list[dict[str, object]] = [article]
    if rendered.questions:
        graph.append({"@type": "FAQPage", "mainEntity": [_question(entry) for entry in rendered.questions]})
    text = json.dumps({"@context": "https://schema.org", "@graph": graph}, ensure_ascii=False)
    return re.sub(r"[<>&\u2028\u2029]", lambda match: f"\\u{ord(match.group()):04x}", text)


def _question(entry: Question) -> dict[str, object]:
    answer = {"@type": "Answer", "text": entry.answer}
    return {"@type": "Question", "name": entry.question, "acceptedAnswer": answer}
