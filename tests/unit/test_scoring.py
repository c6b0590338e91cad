"""One answer read against one manifest: named, rank, prominence, cited, supported."""

import pytest

from citeloop.models.brand import Entity
from citeloop.models.measure import Answer, Citation, Manifest, Prompt, Reading
from citeloop.models.work import SampleStatus
from citeloop.rules.domains import cites_page, owns, registrable_domain
from citeloop.rules.listing import ordinals
from citeloop.rules.matching import MATCHER_VERSION
from citeloop.rules.scoring import read

MANIFEST = Manifest(
    id="m",
    brand=Entity(name="Acme", domains=("acme.com",)),
    rivals=(Entity(name="华为", domains=("huawei.com",)), Entity(name="Beta"), Entity(name="小米")),
    prompts=(Prompt(id="p", text="?", locale="en"),),
    engines=("e",),
    matcher_version=MATCHER_VERSION,
)


def reading(text: str, *cited: str, searched: bool = True) -> Reading:
    answer = Answer(text=text, cited=tuple(Citation(url=url) for url in cited), searched=searched)
    return read(answer, MANIFEST)


def rank(text: str) -> int | None:
    return reading(text).rank


def test_an_answer_without_a_search_says_nothing_but_that() -> None:
    assert reading("Acme is great", "https://acme.com", searched=False) == Reading(
        status=SampleStatus.SEARCH_NOT_TRIGGERED
    )


def test_a_named_and_cited_brand_is_read_with_its_rivals() -> None:
    found = reading("Acme [1] beats 华为.", "https://docs.acme.com/x", "https://news.example.org")
    assert (found.named, found.cited, found.supported, found.grounded) == (True, True, True, True)
    assert found.rivals_named == ("华为",)
    assert found.cited_urls == ("https://docs.acme.com/x", "https://news.example.org")
    assert found.rank == 1


def test_a_ghost_is_cited_without_being_named() -> None:
    found = reading("There are several options.", "https://www.acme.com/a")
    assert (found.named, found.cited, found.rank, found.prominence) == (False, True, None, None)


def test_prominence_is_one_minus_the_offset_of_the_first_hit_over_the_length() -> None:
    assert reading("0123456789Acme...xyz".replace("9A", "9 A")).prominence == 1 - 11 / 21
    assert reading("Acme").prominence == 1.0


def test_reasoning_is_no_part_of_the_length() -> None:
    assert reading("<think>long thoughts</think>xx Acme").prominence == 1 - 3 / 7


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("华为 is fine, Beta too, and Acme.", 3),
        ("Acme and 华为.", 1),
        ("1. 华为\n2. Acme\n3. Beta", 2),
        ("1. **华为**: better than Acme\n2. **Beta**: cheap\n3. **Acme**: small", 3),
        ("1、华为\n2、Acme", 2),
        ("①华为 ②小米 ③Acme", 3),
        ("一、华为\n二、小米\n三、Acme", 3),
        ("十一、华为\n十二、Acme", 12),
        ("（1）华为\n（2）Acme", 2),
        ("1) 华为\n2) Acme", 2),
        ("### 1. 华为\ntext\n### 2. Acme\ntext", 2),
        ("**1. 华为**\ntext\n\n**2. Acme**\ntext", 2),
        ("- 华为\n- 小米\n- Acme", 3),
        ("1. 华为\n   - big\n   - 5G\n2. Acme\n   - small", 2),
        ("1. 华为\n- big\n- 5G\n2. Acme\n- small, unlike 小米", 2),
        ("1. 华为\n1. 小米\n1. Acme", 3),
        ("第一名：华为\n第二名：Acme", 2),
        ("1️⃣ 华为\n2️⃣ Acme", 2),
        ("In 2024.5 the market grew. Acme leads 华为.", 1),
        ("Acme has:\n1. speed\n2. price", 1),
        ("Better than 华为 is Acme:\n1. speed\n2. price", 2),
        ("Before Acme, know this.\n1. 华为\n2. 小米\n3. Acme", 3),
        ("推荐：1. 华为 2. Acme 3. 小米", 2),
        ("4. 华为\n5. Acme", 5),
        ("1. [华为](https://huawei.com)\n2. [Acme](https://acme.com)", 2),
        ("没有找到关于华为的信息。Acme 可以考虑。", 1),
        ("华为 only.", None),
        ("**Big**\n- **华为** – phones\n- **Beta**\n\n**Small**\n- **Acme**: one\n- 小米: two", 3),
        ("1. 华为\n\nWhy: it is big.\n\n2. Acme\n\nWhy: small.", 2),
        ("| 1 | 华为 |\n| 2 | Acme |", 2),
    ],
)
def test_rank_is_the_list_ordinal_or_the_order_of_first_naming(text: str, expected: int | None) -> None:
    assert rank(text) == expected


def test_bullets_of_two_lists_are_counted_apart() -> None:
    text = "Good:\n\n- cheap\n- small\n\nChoices:\n\n- 华为\n- Acme"
    assert ordinals(text, {"华为": [text.index("华为")], "Acme": [text.index("Acme")]}) == {"华为": 1, "Acme": 2}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Acme is fast [1]. 华为 is big.", True),
        ("Acme is fast. [1] 华为 is big.", True),
        ("Acme 很快。[1][2]华为很大。", True),
        ("Acme 很快。华为很大【1】。", False),
        ("Acme is fast. 华为 is big [2].", False),
        ("Acme costs 3.5 dollars[1].", True),
        ("Acme Inc. is fast [1].", True),
        ("Acme is fast ([docs](https://example.org/a.b?c=d)).", True),
        ("Acme is fast. ([docs](https://example.org)) 华为 is not.", True),
        ("Acme 很快[citation:3]。", True),
        ("Acme 很快^[1]^。", True),
        ("Acme 很快¹。", True),
        ("Acme is fast <sup>1</sup>.", True),
        ("Acme is fast [[1]](https://example.org).", True),
        ("Acme is fast", False),
    ],
)
def test_support_is_a_citation_mark_in_the_sentence_of_the_name(text: str, expected: bool) -> None:
    assert reading(text).supported is expected


def test_a_trailing_list_of_sources_counts_as_citations() -> None:
    found = reading("华为 is big.\n\nSources:\n1. https://acme.com/a\n2. https://acme.com/a/\n")
    assert found.cited_urls == ("https://acme.com/a",)
    assert (found.named, found.cited, found.grounded) == (False, True, True)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://docs.acme.com:8443/x", "acme.com"),
        ("HTTPS://WWW.Example.CO.UK/", "example.co.uk"),
        ("https://user.github.io/repo", "user.github.io"),
        ("https://github.io", None),
        ("http://127.0.0.1:8080/x", "127.0.0.1"),
        ("http://localhost:1/x", "localhost"),
        ("https://例子.中国/", "xn--fsqu00a.xn--fiqs8s"),
        ("acme.com/path", "acme.com"),
        ("http://[::1", None),
        ("", None),
    ],
)
def test_registrable_domains_follow_the_public_suffix_list(url: str, expected: str | None) -> None:
    assert registrable_domain(url) == expected


def test_a_host_on_a_shared_platform_owns_only_itself() -> None:
    assert owns(["brand.substack.com"], "https://brand.substack.com/p/1")
    assert not owns(["brand.substack.com"], "https://other.substack.com/p/1")
    assert not owns(["github.io"], "https://someone.github.io/")
    assert not owns(["acme.com"], "https://notacme.com")
    assert owns(["www.acme.com"], "https://acme.com")


@pytest.mark.parametrize(
    ("cited", "page", "same"),
    [
        ("https://www.a.com/post/?utm_source=x#top", "http://a.com/post", True),
        ("https://a.com/post/2", "https://a.com/post", False),
        ("https://b.com/post", "https://a.com/post", False),
        ("https://a.com/%E5%8D%8E", "https://a.com/华", True),
        ("http://127.0.0.1:8001/p", "http://127.0.0.1:8002/p", False),
        ("https://a.com/?p=12", "https://a.com/?p=12", True),
        ("https://a.com/", "https://a.com/?p=12", False),
        ("https://a.com/post?x=1", "https://a.com/post", True),
    ],
)
def test_a_page_is_cited_by_host_and_path(cited: str, page: str, same: bool) -> None:
    assert cites_page([cited], page) is same
