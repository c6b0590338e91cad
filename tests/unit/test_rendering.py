"""Markdown as sites take it: clean HTML, stable slugs, JSON-LD that cannot break out."""

import json
from datetime import UTC, datetime
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citeloop.rules import rendering


class Tags(HTMLParser):
    """(tag, attribute, value) of everything a browser would see as markup."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, str, str]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen += [(tag, name, value or "") for name, value in attrs] or [(tag, "", "")]


TEXT = (
    "# What is **Acme**?\n\n*Simulated.*\n\nAcme is a [database](https://a.com). It is small.\n\n"
    "## Why?\n\nBecause.\n\n- one\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
)


def test_a_page_has_its_title_once_and_semantic_html() -> None:
    page = rendering.page(TEXT)
    assert page.title == "What is Acme?"
    assert page.excerpt == "Acme is a database. It is small."
    assert "<h1>" not in page.html
    for part in ("<h2>Why?</h2>", '<a href="https://a.com" rel="noopener">', "<li>one</li>", "<td>1</td>"):
        assert part in page.html


@pytest.mark.parametrize(
    "evil",
    [
        "<script>alert(1)</script>",
        "[x](javascript:alert(1))",
        "<img src=x onerror=alert(1)>",
        "![x](data:text/html;base64,AAAA)",
        '<a href="x" onclick="y">z</a>',
        "[x](https://a.com \"t' onmouseover='y\")",
    ],
)
def test_nothing_executable_survives(evil: str) -> None:
    seen = Tags(rendering.to_html(evil)).seen
    assert {tag for tag, _, _ in seen} <= {"p", "a", "img"}
    assert {name for _, name, _ in seen} <= {"", "href", "title", "rel", "alt", "src"}
    assert not any(value.startswith(("javascript:", "data:")) for _, _, value in seen)


@given(st.text(max_size=300))
def test_any_text_renders_without_script_or_handler(text: str) -> None:
    assert "<script" not in rendering.to_html(text).lower()
    rendering.page(text)
    rendering.questions(text)


def test_a_text_without_a_heading_has_no_title() -> None:
    assert rendering.split_title("Just text.\n\n# Later") == ("", "Just text.\n\n# Later")


def test_a_long_first_paragraph_is_cut_at_a_break() -> None:
    cut = rendering.excerpt("word " * 100)
    assert cut.endswith("word…")
    assert len(cut) <= 161
    assert rendering.excerpt("这是一个很长的句子。" * 40).endswith("。")


def test_slugs_are_ascii_stable_and_different_for_different_articles() -> None:
    one = rendering.slug("Vector Databases: a Café guide", "A1", "en")
    assert one.startswith("vector-databases-a-cafe-guide-")
    assert one == rendering.slug("Vector Databases: a Café guide", "A1", "en")
    assert one != rendering.slug("Vector Databases: a Café guide", "A2", "en")
    assert rendering.slug("向量数据库怎么选型", "A1", "zh-CN").startswith("zh-cn-")
    assert rendering.slug("向量 2024", "A1", "zh-CN").startswith("zh-cn-")
    assert rendering.slug("向量", "A1").isalnum()
    assert len(rendering.slug("word " * 100, "A1", "en")) <= 70


def test_the_marker_is_deterministic_and_a_single_word() -> None:
    assert rendering.marker("A1") == rendering.marker("A1") != rendering.marker("A2")
    assert rendering.marker("A1").startswith("citeloop-")
    assert " " not in rendering.marker("A1")


def test_json_ld_holds_article_and_questions_and_cannot_close_its_script() -> None:
    text = (
        "# A </script><script>x\n\nLead & more.\n\n## Why </script>?\n\nBecause <b>so</b>.\n\n## Note\n\nNo question."
    )
    made = rendering.json_ld(
        text,
        url="https://a.com/x",
        locale="en",
        brand="Acme",
        homepage="https://a.com",
        published_at=datetime(2026, 3, 1, tzinfo=UTC),
        sources=["https://s.org"],
    )
    assert "<" not in made
    article, faq = json.loads(made)["@graph"]
    assert (article["@type"], article["datePublished"]) == ("Article", "2026-03-01T00:00:00+00:00")
    assert article["citation"] == ["https://s.org"]
    assert [q["name"] for q in faq["mainEntity"]] == ["Why </script>?"]
    assert faq["mainEntity"][0]["acceptedAnswer"]["text"] == "Because <b>so</b>."
