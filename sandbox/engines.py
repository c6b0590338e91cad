"""Two answer engines: they retrieve, quote what they found sentence by sentence, and say where it stands."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import groupby
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sandbox.config import EngineName, ServiceSettings
from sandbox.desk import Desk
from sandbox.library import Document, Library
from sandbox.luck import Draw
from sandbox.providers import Answered, Ask, Model
from sandbox.speech import Reply, tokens
from sandbox.terms import is_chinese, term_set

PRODUCTS = (
    "Qdrant",
    "Weaviate",
    "Pinecone",
    "pgvector",
    "Chroma",
    "Elasticsearch",
    "Faiss",
    "LanceDB",
    "Vespa",
    "Milvus",
)
_NAMED = re.compile(
    rf"(?<![A-Za-z0-9])(?:{'|'.join(f'(?P<{name}>{name})' for name in PRODUCTS)})(?![A-Za-z0-9])", re.IGNORECASE
)


@dataclass(frozen=True)
class Character:
    """What makes one engine differ from another.

    freshness: how much a page of today outweighs an undated one, falling by half in `half_life` days.
    per_site: at most so many of the retrieved pages from one site.
    per_page: at most so many sentences quoted from one page.
    """

    top: int
    title_weight: float
    freshness: float
    half_life: float
    per_site: int
    per_page: int
    mark: Literal["[{n}]", "[{n}](@ref)"]


PERPLEXITY = Character(top=6, title_weight=0.6, freshness=0.25, half_life=180, per_site=2, per_page=2, mark="[{n}]")
HUNYUAN = Character(top=5, title_weight=1.0, freshness=0.1, half_life=365, per_site=1, per_page=1, mark="[{n}](@ref)")


@dataclass(frozen=True)
class Quote:
    name: str
    sentence: str
    source: int
    """Ordinal of the retrieved page, from 1."""


def query_of(question: str) -> str:
    """What is searched for: the words in quotation marks, else the first question; not how to answer it."""
    quoted = re.search(r"“([^”]+)”", question)
    return quoted[1] if quoted else re.split(r"[?？\n]", question, maxsplit=1)[0]


def retrieve(question: str, library: Library, character: Character) -> list[Document]:
    """The best pages in the question's language, best first. The same text on two sites is taken once."""
    found = library.search(query_of(question), chinese=is_chinese(question))
    ages = np.maximum(0, datetime.now(UTC).date().toordinal() - found.days)
    fresh = 1 + character.freshness * np.exp2(-ages / character.half_life)
    weights = (found.bodies + character.title_weight * found.titles) * fresh
    chosen: list[Document] = []
    from_site: Counter[str] = Counter()
    for page in _heaviest_first(found.documents, weights):
        if from_site[page.site] < character.per_site and all(other.text != page.text for other in chosen):
            chosen.append(page)
            from_site[page.site] += 1
        if len(chosen) == character.top:
            break
    return chosen


def _heaviest_first(documents: list[Document], weights: NDArray[np.float64]) -> Iterator[Document]:
    """Documents of one weight by their address."""
    known = weights.tolist()
    for _, equal in groupby(np.argsort(-weights).tolist(), key=known.__getitem__):
        yield from sorted((documents[place] for place in equal), key=lambda document: document.url)


def quotes(question: str, pages: list[Document], character: Character) -> list[Quote]:
    """Sentences nearest to the question, each with a product that has not been named yet."""
    asked = term_set(query_of(question))
    found: list[Quote] = []
    for source, page in enumerate(pages, start=1):
        taken = 0
        nearest = sorted(page.sentences, key=lambda sentence: -len(asked & term_set(sentence)))
        for sentence in nearest:
            names = [name for name in _names(sentence, page) if all(q.name != name for q in found)]
            if names and taken < character.per_page:
                found.append(Quote(names[0], sentence, source))
                taken += 1
    return found


def _names(sentence: str, page: Document) -> tuple[str, ...]:
    """Products in the order in which the sentence names them; else the page's own subject, if it has one."""
    if named := _products(sentence):
        return named
    return (page.subject,) if page.subject and page.subject in sentence else ()


@lru_cache(maxsize=1 << 14)
def _products(sentence: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(match.lastgroup or "" for match in _NAMED.finditer(sentence)))


def compose(question: str, pages: list[Document], character: Character) -> str:
    """A numbered list in the language of the question. The question is not repeated: it may name a brand."""
    chinese = is_chinese(question)
    found = quotes(question, pages, character)
    if not found:
        return (
            "（CiteLoop 沙箱模拟回答）检索到的网页没有给出与问题相关的产品。"
            if chinese
            else "(Simulated answer from the CiteLoop sandbox.) The retrieved pages name no product for this."
        )
    head = (
        "以下为 CiteLoop 沙箱的模拟回答，根据检索到的网页整理："
        if chinese
        else "Simulated answer from the CiteLoop sandbox, put together from the retrieved pages:"
    )
    lines = [
        f"{place}. **{quote.name}**{'：' if chinese else ': '}{quote.sentence}"
        f"{'' if chinese else ' '}{character.mark.format(n=quote.source)}"
        for place, quote in enumerate(found, start=1)
    ]
    return "\n".join([head, "", *lines])


def _unsearched(question: str) -> str:
    if is_chinese(question):
        return "（CiteLoop 沙箱模拟回答，未联网检索）选择方案时，建议结合数据规模、预算和团队经验综合考虑。"
    return (
        "(Simulated answer from the CiteLoop sandbox, given without a search.) It depends on the amount of data, "
        "the budget and the experience of the team."
    )


def _perplexity_sources(pages: list[Document]) -> dict[str, object]:
    return {
        "citations": [page.url for page in pages],
        "search_results": [
            {"title": page.title, "url": page.url, "date": page.published.isoformat()} for page in pages
        ],
    }


def _hunyuan_sources(pages: list[Document]) -> dict[str, object]:
    if not pages:
        return {}
    results = [{"index": place, "title": page.title, "url": page.url} for place, page in enumerate(pages, start=1)]
    return {"search_info": {"search_results": results}}


def engine(name: EngineName, desk: Desk, library: Library) -> Model:
    character, sources = {
        "perplexity": (PERPLEXITY, _perplexity_sources),
        "hunyuan": (HUNYUAN, _hunyuan_sources),
    }[name]

    async def answer(ask: Ask, draw: Draw, _settings: ServiceSettings) -> Answered:
        question = ask.question
        prompt_tokens = tokens(ask.text)
        if draw.happens("not_searched", desk.engine(name).not_searched):
            reply = Reply(_unsearched(question), prompt_tokens, extra=sources([]))
            return Answered(reply, fault="not_searched")
        await library.settled()
        pages = retrieve(question, library, character)
        return Answered(Reply(compose(question, pages, character), prompt_tokens, extra=sources(pages)))

    return answer
