"""What the answer engines know: a seeded corpus and whatever stands on the sandbox's sites."""

import asyncio
import html
import json
import re
import time
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

import bm25s
import numpy as np
from numpy.typing import NDArray

from sandbox.terms import is_chinese, words

_PACE = 0.5
"""Seconds from one building of the index to the next: it costs as much as a dozen questions."""
CORPUS = Path(__file__).parent / "corpus"
_SENTENCE = re.compile(r".+?(?:[。！？](?!\s*\[)|[.!?](?=\s|$)|$)", re.DOTALL)
_SHORTEST_SENTENCE = 12
_REPEATS = 2
_BLOCKS = frozenset({"p", "li", "h1", "h2", "h3", "h4", "blockquote", "td", "figcaption", "div", "pre"})
_SILENT = frozenset({"script", "style", "head"})


@dataclass(frozen=True)
class Document:
    """A page as an engine keeps it. `site` is the host, or the host and the path of one sandbox site."""

    url: str
    title: str
    text: str
    published: date
    site: str
    sentences: tuple[str, ...] = field(repr=False, default=())
    subject: str = ""
    """What a published page is about, where its own words show it: a product no engine knew before."""

    @property
    def chinese(self) -> bool:
        return is_chinese(self.title)

    @cached_property
    def terms(self) -> list[str]:
        return words(self.text)

    @cached_property
    def title_terms(self) -> list[str]:
        return words(self.title)


def sentences_of(text: str) -> tuple[str, ...]:
    """Only what ends like a sentence; headings and link lists do not."""
    found = (part.strip() for part in _SENTENCE.findall(text))
    return tuple(part for part in found if len(part) >= _SHORTEST_SENTENCE and part.endswith((".", "。", "!", "！")))


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.blocks: list[str] = [""]
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        self._silent += tag in _SILENT
        if tag in _BLOCKS:
            self.blocks.append("")

    def handle_endtag(self, tag: str) -> None:
        self._silent -= tag in _SILENT
        if tag in _BLOCKS:
            self.blocks.append("")

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.blocks[-1] += data


def read_page(*, url: str, title: str, content: str, published: date, site: str) -> Document:
    """A published page: its HTML as text, one block a line."""
    reader = _Reader()
    reader.feed(content)
    reader.close()
    blocks = [" ".join(block.split()) for block in reader.blocks]
    blocks = [re.sub(r"\s*[（(]\s*(?:source|来源)\s*[)）]", "", block) for block in blocks if block]
    quotable = tuple(sentence for block in blocks for sentence in sentences_of(block))
    plain = html.unescape(re.sub(r"<[^>]+>", "", title))
    return Document(url, plain, "\n".join(blocks), published, site, quotable, _subject(plain, quotable))


def _subject(title: str, sentences: tuple[str, ...]) -> str:
    """The capitalised name in the title that most sentences repeat; "" unless some do. No abbreviations."""
    names = re.findall(r"(?<![A-Za-z])[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*", title)
    repeats = {name: sum(name in sentence for sentence in sentences) for name in names}
    best = max(repeats, key=lambda name: repeats[name], default="")
    return best if repeats.get(best, 0) >= _REPEATS else ""


def seeded() -> list[Document]:
    """The corpus files: one JSON object a line with url, title, date and text."""
    documents = []
    for path in sorted(CORPUS.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            host = urlsplit(entry["url"]).netloc
            text, day = entry["text"], date.fromisoformat(entry["date"])
            document = Document(entry["url"], entry["title"], text, day, host, sentences_of(text))
            documents.append(document)
    return documents


@dataclass(frozen=True)
class Found:
    """Documents in no order, and for each its scores and the ordinal of its day."""

    documents: list[Document]
    bodies: NDArray[np.float64]
    titles: NDArray[np.float64]
    days: NDArray[np.int64]


class Library:
    """Searched with BM25, bodies and titles apart. Built anew when a question finds it changed."""

    def __init__(self) -> None:
        self._seeded = seeded()
        self._published: dict[str, Document] = {}
        self._built: _Built | None = None
        self._built_at = 0.0

    def put(self, document: Document) -> None:
        self._published[document.url] = document
        self._built = None

    def remove(self, url: str) -> None:
        if self._published.pop(url, None):
            self._built = None

    def clear(self) -> None:
        """Only the corpus remains."""
        self._published.clear()
        self._built = None

    def __len__(self) -> int:
        return len(self._seeded) + len(self._published)

    async def settled(self) -> None:
        """As search engines do, take in what was published lately in one go: whoever asks waits for it."""
        if self._built is None:
            await asyncio.sleep(max(0.0, self._built_at + _PACE - time.monotonic()))

    def search(self, question: str, *, chinese: bool) -> Found:
        """Every document of that language that shares a term with the question."""
        if self._built is None:
            self._built = _Built([*self._seeded, *self._published.values()])
            self._built_at = time.monotonic()
        return self._built.found(words(question), chinese=chinese)


class _Built:
    def __init__(self, documents: list[Document]) -> None:
        self._documents = documents
        self._days = np.array([document.published.toordinal() for document in documents], np.int64)
        self._chinese = np.array([document.chinese for document in documents], bool)
        self._bodies = _index([document.terms for document in documents])
        self._titles = _index([document.title_terms for document in documents])

    def found(self, asked: list[str], *, chinese: bool) -> Found:
        if not asked:
            return Found([], np.zeros(0), np.zeros(0), np.zeros(0, np.int64))
        bodies, titles = self._bodies.get_scores(asked), self._titles.get_scores(asked)
        places = np.flatnonzero((bodies + titles) * (self._chinese == chinese))
        return Found(
            documents=[self._documents[place] for place in places.tolist()],
            bodies=bodies[places].astype(np.float64),
            titles=titles[places].astype(np.float64),
            days=self._days[places],
        )


def _index(documents: list[list[str]]) -> bm25s.BM25:
    index = bm25s.BM25()
    index.index(documents, show_progress=False)
    return index
