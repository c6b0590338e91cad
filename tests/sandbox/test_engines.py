"""The answer engines: they retrieve, cite, and change their answers when pages come and go."""

from typing import Any

import httpx
import pytest

from sandbox.engines import query_of
from sandbox.terms import words
from tests.sandbox.running import BLOG, Sandbox, chat, streamed

PERPLEXITY = "/perplexity/chat/completions"
HUNYUAN = "/hunyuan/v1/chat/completions"
PAGE = {
    "title": "Which store for zebra recordings? Acmebase",
    "slug": "zebra",
    "status": "publish",
    "content": "<h2>What is Acmebase?</h2><p>Acmebase keeps zebra recordings. Acmebase runs offline.</p>",
}


def withdraw(sandbox: Sandbox, post_id: int) -> None:
    httpx.delete(verify=False, url=f"{sandbox.url}/blog/wp-json/wp/v2/posts/{post_id}", auth=BLOG).raise_for_status()


async def ask(sandbox: Sandbox, path: str, question: str) -> Any:
    async with sandbox.client() as client:
        reply = await client.post(path, json=chat(question))
    return reply.json()


def text_of(answer: Any) -> str:
    return str(answer["choices"][0]["message"]["content"])


def publish(sandbox: Sandbox, post_id: int | None = None, **fields: Any) -> Any:
    """A new post, or a correction of the one with that id."""
    url = f"{sandbox.url}/blog/wp-json/wp/v2/posts" + (f"/{post_id}" if post_id else "")
    return httpx.post(verify=False, url=url, json={**PAGE, **fields}, auth=BLOG).json()


async def test_an_answer_names_products_with_marks_that_lead_to_its_sources(sandbox: Sandbox) -> None:
    answer = await ask(sandbox, PERPLEXITY, "vector store for RAG in production")
    assert "Simulated" in text_of(answer)
    assert "1. **" in text_of(answer)
    assert answer["citations"] == [found["url"] for found in answer["search_results"]]
    assert all(set(found) == {"title", "url", "date"} for found in answer["search_results"])
    assert "[1]" in text_of(answer)


async def test_hunyuan_answers_chinese_in_chinese_with_its_own_shape(sandbox: Sandbox) -> None:
    answer = await ask(sandbox, HUNYUAN, "开源向量数据库有哪些？")
    results = answer["search_info"]["search_results"]
    assert "模拟" in text_of(answer)
    assert "[1](@ref)" in text_of(answer)
    assert [found["index"] for found in results] == list(range(1, len(results) + 1))
    assert "citations" not in answer


async def test_the_engines_differ(sandbox: Sandbox) -> None:
    question = "hybrid search engine"
    first, second = await ask(sandbox, PERPLEXITY, question), await ask(sandbox, HUNYUAN, question)
    assert len(first["search_results"]) != len(second["search_info"]["search_results"])


async def test_a_published_page_changes_the_answer_and_a_withdrawn_one_changes_it_back(sandbox: Sandbox) -> None:
    question = "Which store is there for zebra recordings?"
    before = await ask(sandbox, PERPLEXITY, question)
    placed = publish(sandbox)
    after = await ask(sandbox, PERPLEXITY, question)
    withdraw(sandbox, placed["id"])
    back = await ask(sandbox, PERPLEXITY, question)
    assert "Acmebase" not in text_of(before)
    assert "**Acmebase**: Acmebase keeps zebra recordings. [1]" in text_of(after)
    assert after["citations"][0] == placed["link"]
    assert text_of(back) == text_of(before)


async def test_a_draft_is_not_found(sandbox: Sandbox) -> None:
    publish(sandbox, status="draft")
    assert "Acmebase" not in text_of(await ask(sandbox, HUNYUAN, "zebra recordings"))


async def test_a_page_in_another_language_is_not_quoted(sandbox: Sandbox) -> None:
    publish(sandbox, title="斑马录音用 Acmebase", slug="z", content="<p>Acmebase 可以保存 zebra recordings。</p>")
    assert "Acmebase" not in text_of(await ask(sandbox, PERPLEXITY, "zebra recordings"))


async def test_a_corrected_page_is_read_anew(sandbox: Sandbox) -> None:
    placed = publish(sandbox)
    publish(sandbox, placed["id"], content="<p>Acmebase archives zebra recordings. Acmebase is small.</p>")
    assert "archives" in text_of(await ask(sandbox, PERPLEXITY, "zebra recordings"))


@pytest.mark.parametrize("path", [PERPLEXITY, HUNYUAN])
async def test_an_answer_without_a_search_has_no_sources(sandbox: Sandbox, path: str) -> None:
    sandbox.set("perplexity", not_searched=1.0)
    sandbox.set("hunyuan", not_searched=1.0)
    answer = await ask(sandbox, path, "open source vector database")
    assert not answer.get("citations")
    assert "search_info" not in answer
    assert "Qdrant" not in text_of(answer)


async def test_the_question_is_not_repeated_in_the_answer(sandbox: Sandbox) -> None:
    assert "Nonesuch" not in text_of(await ask(sandbox, PERPLEXITY, "Is Nonesuch a vector database?"))


async def test_a_streamed_answer_carries_its_sources(sandbox: Sandbox) -> None:
    async with sandbox.client() as client:
        raw = (await client.post(PERPLEXITY, json=chat("hybrid search", stream=True))).text
    text, chunks = streamed(raw)
    assert "[1]" in text
    assert any(chunk.get("citations") for chunk in chunks)


async def test_the_seeded_corpus_names_the_rivals_and_hardly_the_demo_brand(sandbox: Sandbox) -> None:
    questions = ["open source vector database", "向量数据库怎么选型", "vector store for LangChain", "混合检索怎么做"]
    answers = [text_of(await ask(sandbox, path, q)) for q in questions for path in (PERPLEXITY, HUNYUAN)]
    assert all("Qdrant" in answer or "Weaviate" in answer for answer in answers)
    assert sum("Milvus" in answer for answer in answers) <= 1


def test_terms_are_bigrams_for_chinese_and_folded_words_for_latin() -> None:
    assert words("Ｍilvus 向量库 databases") == ["milvus", "向量", "量库", "database"]
    assert words("用 GPU 的") == ["用", "gpu", "的"]


def test_an_engine_searches_for_the_question_and_not_for_how_to_answer() -> None:
    assert query_of("Which options do you recommend for “agent memory”? List products.") == "agent memory"
    assert query_of("向量数据库怎么选型？请列出具体产品。") == "向量数据库怎么选型"
