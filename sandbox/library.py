"""What the answer engines know: a seeded corpus and whatever stands on the sandbox's sites."""

import html
import json
import re
from array import array
from dataclasses import dataclass, field
from datetime import date
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from sandbox.bm25 import Index
from sandbox.terms import is_chinese, words

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

    @property
    def terms(self) -> list[str]:
        return words(self.text)

    @property
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
    """Searched with BM25, bodies and titles apart."""

    def __init__(self) -> None:
        self._seeded = seeded()
        self.clear()

    def clear(self) -> None:
        """Only the corpus remains."""
        self._documents: list[Document] = []
        self._days = array("q")
        self._chinese = array("b")
        self._published: dict[str, int] = {}
        self._bodies, self._titles = Index(), Index()
        for document in self._seeded:
            self._add(document)

    def put(self, document: Document) -> None:
        self.remove(document.url)
        self._published[document.url] = len(self._documents)
        self._add(document)

    def remove(self, url: str) -> None:
        place = self._published.pop(url, None)
        if place is not None:
            document = self._documents[place]
            self._bodies.drop(place, document.terms)
            self._titles.drop(place, document.title_terms)

    def __len__(self) -> int:
        return len(self._seeded) + len(self._published)

    def search(self, question: str, *, chinese: bool) -> Found:
        """Every document of that language that shares a term with the question."""
        asked = words(question)
        bodies, titles = self._bodies.scores(asked), self._titles.scores(asked)
        places = np.flatnonzero((bodies + titles) * (np.frombuffer(self._chinese, np.int8) == chinese))
        return Found(
            documents=[self._documents[place] for place in places.tolist()],
            bodies=bodies[places].astype(np.float64),
            titles=titles[places].astype(np.float64),
            days=np.frombuffer(self._days, np.int64)[places],
        )

    def _add(self, document: Document) -> None:
        """At one place in all lists."""
        self._documents.append(document)
        self._days.append(document.published.toordinal())
        self._chinese.append(document.chinese)
        self._bodies.add(document.terms)
        self._titles.add(document.title_terms)
