"""Keyword lists and brand files as people write them."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citeloop.models.plan import Kind
from citeloop.rules.parsing import parse_brand, parse_keywords
from citeloop.rules.requests import RequestError

EXAMPLES = Path(__file__).parents[2] / "examples" / "milvus"
BRAND = """name = "Acme"
aliases = ["ACME Inc", { text = "艾克米", stop_contexts = ["糖"] }]
homepage = "https://acme.com"

[[facts]]
id = "a"
text = "Acme runs."
source_url = "https://acme.com/a"

[[facts]]
id = "b"
text = "Acme stops."
source_url = "https://acme.com/b"

[[rivals]]
name = "Beta"
aliases = ["Beta DB"]
"""


def refusal(text: str | bytes, *, brand: bool = False) -> str:
    with pytest.raises(RequestError) as caught:
        (parse_brand if brand else parse_keywords)(text, "file")
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_list_with_and_without_header_reads_alike() -> None:
    body = '向量数据库,zh-CN,faq,1\n"a, b",en,,\nvector db\n'
    lines = parse_keywords(body)
    assert lines == parse_keywords("keyword,locale,kind,priority\r\n" + body.replace("\n", "\r\n"))
    assert lines == parse_keywords("\ufeff关键词,语言,类型,优先级\n" + body)
    assert [(line.keyword, line.locale, line.kind, line.priority) for line in lines] == [
        ("向量数据库", "zh-CN", Kind.FAQ, 1),
        ("a, b", "en", Kind.ARTICLE, 3),
        ("vector db", "en", Kind.ARTICLE, 3),
    ]


def test_columns_may_stand_in_any_order_and_tabs_separate_too() -> None:
    assert parse_keywords("kind,keyword\nfaq,x\n")[0].kind == Kind.FAQ
    assert parse_keywords("x\ten\tsummary\n")[0].kind == Kind.SUMMARY
    assert parse_keywords("什么是向量")[0].locale == "zh-CN"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\n,en\nb", "file line 2, field keyword: is empty"),
        ("a\n\nb", "file line 2, field keyword: is empty"),
        ("keyword\na\nb\nＡ", "file line 4, field keyword: 'Ａ' repeats line 2"),
        ("a,en,video", "file line 1, field kind: video is not supported"),
        ("a,en,poem", "file line 1, field kind: 'poem' is no kind of text"),
        ("a,en,faq,9", "file line 1, field priority: '9' is no priority"),
        ("a,english language", "file line 1, field locale: 'english language' is no locale"),
        ("x" * 201, "file line 1, field keyword: has 201 characters"),
        ("a,en,faq,1,more", "file line 1: has 5 columns"),
        ('a\n"b', "file line 2: is no CSV"),
        ("keyword,prio\na,1", "'prio' is no column"),
        ("", "file: has no keywords"),
        ("keyword\n", "file: has no keywords"),
    ],
)
def test_each_mistake_names_file_line_field_and_remedy(text: str, expected: str) -> None:
    assert expected in refusal(text)
    assert "; " in refusal(text)


def test_a_gbk_file_is_recognised_and_the_remedy_named() -> None:
    told = refusal("keyword\n向量数据库怎么选型\n".encode("gbk"))
    assert told.startswith("file line 2: looks GBK-encoded")
    assert "UTF-8" in told
    assert "UTF-16" in refusal("关键词".encode("utf-16"))
    assert parse_keywords("\ufeff关键词\n向量\n".encode())[0].keyword == "向量"


def test_a_brand_file_becomes_a_brand() -> None:
    brand = parse_brand(BRAND)
    assert brand.entity.name == "Acme"
    assert [alias.text for alias in brand.entity.aliases] == ["ACME Inc", "艾克米"]
    assert brand.entity.aliases[1].stop_contexts == ("糖",)
    assert brand.rivals[0].aliases[0].text == "Beta DB"


def test_the_example_files_are_read() -> None:
    assert len(parse_keywords((EXAMPLES / "keywords.csv").read_bytes())) == 24
    assert len(parse_brand((EXAMPLES / "brand.toml").read_bytes()).facts) >= 15


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            ('source_url = "https://acme.com/b"', 'source_url = "acme.com/b"'),
            "file line 13, field facts[1].source_url: must be the http(s)",
        ),
        (('source_url = "https://acme.com/b"\n', ""), "file line 10, field facts[1].source_url: is missing"),
        (('id = "b"', 'ident = "b"'), "field facts[1]."),
        (('homepage = "https://acme.com"', "homepage = "), "file line 3: is no TOML"),
        (("homepage =", "home ="), "file line 3, field home: is no known field"),
        (('name = "Acme"\n', ""), "field name: is missing"),
        (('name = "Beta"', 'name = ""'), "file line 16, field rivals[0].name"),
        (("[[facts]]", "[[rivals]]"), "field facts: the brand has no facts"),
    ],
)
def test_each_mistake_of_a_brand_file_names_its_line_and_field(change: tuple[str, str], expected: str) -> None:
    assert expected in refusal(BRAND.replace(*change), brand=True)


def _answer(reader: Callable[[str | bytes, str], object], text: str | bytes) -> str:
    try:
        reader(text, "file")
    except RequestError as error:
        return str(error)
    return ""


@given(st.text(max_size=80) | st.binary(max_size=80))
def test_anything_is_read_or_refused_in_one_line(text: str | bytes) -> None:
    assert len(_answer(parse_keywords, text).splitlines()) <= 1
    assert len(_answer(parse_brand, text).splitlines()) <= 1
