"""What the writers write: only the given facts, with their sources, openly simulated."""

import re

import pytest

from sandbox.luck import Luck
from sandbox.writers import generate, read, rewrite
from tests.sandbox.running import Sandbox, chat, prompt

LINK = re.compile(r"\]\((https?://[^)]+)\)")


def written(keyword: str, *, writer: str = "deepseek", seed: int = 1, **fields: str) -> str:
    job = read(prompt(keyword, **fields))
    assert job is not None
    return (rewrite if job.rewrite else generate)(job, Luck(seed).constant(writer, keyword))


@pytest.mark.parametrize("locale", ["en", "zh-CN"])
def test_an_article_names_keyword_and_brand_and_says_that_it_is_simulated(locale: str) -> None:
    text = written("vector files", locale=locale)
    title = text.splitlines()[0]
    assert title.startswith("# ")
    assert "acmebase" in title.lower()
    assert "vector files" in title.lower()
    assert ("由 CiteLoop 沙箱模拟生成" if locale == "zh-CN" else "Simulated by the CiteLoop sandbox") in text
    assert len(text) >= 600


def test_every_link_and_every_number_comes_from_the_facts() -> None:
    text = written("vector files")
    assert set(LINK.findall(text)) <= {f"https://acme.example/{page}" for page in ("files", "languages", "offline")}
    assert set(re.findall(r"\d+", re.sub(r"https?://\S+", "", text))) == {"3"}


def test_headings_ask_and_sources_and_faq_are_there() -> None:
    text = written("vector files")
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert headings[-2:] == ["Frequently asked questions", "Sources"]
    assert all(heading.endswith("?") for heading in headings[:-2])


def test_writers_keywords_and_seeds_give_different_texts() -> None:
    texts = {
        written("one"),
        written("two"),
        written("one", writer="qwen"),
        written("one", seed=2),
    }
    assert len(texts) == 4
    assert written("one") == written("one")


def test_a_rewrite_answers_first_turns_headings_into_questions_and_takes_up_each_note() -> None:
    draft = "# Old title\n\nIntro.\n\n## Plain heading\n\nOld words [here](https://acme.example/files).\n"
    notes = "- Say more about files\n- Be brief"
    text = written("vector files", task="rewrite", draft=draft, notes=notes)
    assert text.startswith("# Old title\n")
    assert "What should be known about “Plain heading”?" in text
    assert "Old words [here](https://acme.example/files)." in text
    assert "Say more about files." in text
    assert "Be brief." in text
    assert "## Which figures are documented for Acmebase?\n\n- Acmebase answers in 3 languages" in text
    assert text.rstrip().splitlines()[-1].startswith("- [acme.example/")


def test_a_rewrite_of_a_rewrite_does_not_repeat_its_frame() -> None:
    once = written("vector files", task="rewrite", draft=written("vector files"))
    twice = written("vector files", task="rewrite", draft=once)
    for heading in ("## Sources", "## Frequently asked questions", "Simulated by the CiteLoop sandbox"):
        assert twice.count(heading) == 1
    assert twice.count("## Which figures are documented for Acmebase?") == 1


async def test_a_prompt_without_facts_gets_no_article(sandbox: Sandbox) -> None:
    async with sandbox.client() as client:
        reply = await client.post("/qwen/v1/chat/completions", json=chat("Write about Acmebase."))
    assert "no facts in the prompt" in reply.json()["choices"][0]["message"]["content"]
