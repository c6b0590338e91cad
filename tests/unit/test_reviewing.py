"""The review rules on real text, and on everything the sandbox's writers can say."""

from pathlib import Path

import pytest

from citeloop.models.brand import Brand, Entity, Fact
from citeloop.models.plan import Kind
from citeloop.models.work import Outcome, Severity
from citeloop.rules import prompting
from citeloop.rules.parsing import parse_brand, parse_keywords
from citeloop.rules.rendering import split_title
from citeloop.rules.reviewing import judge
from sandbox import writers
from sandbox.luck import Luck

EXAMPLES = Path(__file__).parents[2] / "examples" / "milvus"
BRAND = Brand(
    entity=Entity(name="Acme", domains=("acme.com",)),
    homepage="https://acme.com",
    banned_words=("cheap", "便宜"),
    facts=(
        Fact(
            id="1", text="Acme stores 32,768 dimensions per vector and runs on ARM.", source_url="https://docs.x.org/a"
        ),
        Fact(
            id="2",
            text="Acme 支持最大 32768 维向量，查询延迟为 12.5 毫秒，被评为 2024 年度项目。",
            source_url="https://docs.x.org/b",
        ),
    ),
)
LEAD = "Acme stores 32,768 dimensions per vector ([source](https://docs.x.org/a)). "
FILLER = "A careful reader opens the page, looks for the statement and compares it with the needs at hand. " * 12
ZH_LEAD = "Acme 支持最大 32768 维向量（[来源](https://docs.x.org/b)）。"
ZH_FILLER = "谨慎的读者会打开页面，找到对应的表述，再与手头的需求进行比较，并把结论记录下来，方便日后复查。" * 8


def found(text: str, *, locale: str = "en", title: str = "Acme", others: tuple[str, ...] = ()) -> dict[str, Severity]:
    """Rule → gravest severity for a good text with `text` put into it."""
    lead, filler = (ZH_LEAD, ZH_FILLER) if locale.startswith("zh") else (LEAD, FILLER)
    _, flags = judge(f"# {title}\n\n{lead}{text}\n\n{filler}", title, BRAND, locale, Kind.ARTICLE, others)
    return {flag.rule: flag.severity for flag in reversed(flags)}


def test_a_good_text_has_no_flag() -> None:
    assert found("") == {}
    assert found("", locale="zh-CN") == {}


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        ("Acme 是国家级产品。", Severity.BLOCK),
        ("这是最佳选择。", Severity.BLOCK),
        ("Acme 是行业第一。", Severity.BLOCK),
        ("Acme 提供顶级体验。", Severity.BLOCK),
        ("我们保证有效。", Severity.BLOCK),
        ("这是最快的系统。", Severity.FLAG),
        ("它是唯一的方案。", Severity.FLAG),
        ("销量冠军。", Severity.FLAG),
        ("Acme 堪称第一。", Severity.FLAG),
        ("Acme 是最大的厂商。", Severity.FLAG),
        ("为什么说它是最佳选择？", Severity.NOTE),
    ],
)
def test_words_of_the_advertising_law_are_found(text: str, severity: Severity) -> None:
    assert found(text, locale="zh-CN") == {"advertising": severity}


@pytest.mark.parametrize(
    "text",
    [
        "最近的版本在最后一节说明。",
        "取最大值和最小值，最多与最少的情况也列出。",
        "第一步是安装，第一次运行较慢，第一，先看文档。",
        "最佳实践见文档，最优解与最优化问题另述。",
        "唯一标识、唯一索引和唯一键各不相同。",
        "绝对路径与绝对值。最新版本与最低配置要求见文档。",
        "首先，最终一致性需要理解。",
        "Acme 支持最大 32768 维向量（[来源](https://docs.x.org/b)）。",
    ],
)
def test_harmless_uses_of_the_same_characters_pass(text: str) -> None:
    assert found(text, locale="zh-CN") == {}


def test_english_superlatives_weigh_less() -> None:
    assert found("Acme is the best tool.") == {"advertising": Severity.NOTE}
    assert found("Acme is the world's best tool.") == {"advertising": Severity.FLAG}
    assert found("Follow the best practices and best-effort delivery.") == {}


def test_notes_leave_the_outcome_clean() -> None:
    text = f"# Acme\n\n{LEAD}Acme is cutting-edge.\n\n{FILLER}"
    outcome, flags = judge(text, "Acme", BRAND, "en", Kind.ARTICLE)
    assert (outcome, len(flags)) == (Outcome.CLEAN, 1)


def test_a_banned_word_blocks_in_text_and_title_but_not_inside_other_words() -> None:
    assert found("It is CHEAP.") == {"banned-word": Severity.BLOCK}
    assert found("", title="Cheap Acme") == {"banned-word": Severity.BLOCK}
    assert found("價格**便宜**。", locale="zh-CN") == {"banned-word": Severity.BLOCK}
    assert found("Cheapside is a street.") == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It holds 40,000 dimensions.", {"unsupported-number": Severity.FLAG}),
        ("It is 3.7 times faster.", {"unsupported-number": Severity.FLAG}),
        ("Costs fall by 45%.", {"unsupported-number": Severity.FLAG}),
        ("The delay is 12.5 ms and 32768 fits.", {}),
        ("In 2019 it began.", {"unsupported-number": Severity.NOTE}),
        ("In 2024 it was a project.", {}),
        ("\n1. Install\n2. Start\n\nStep 3 has 4 parts [5].", {}),
        ("GPT-4, P99 and S3 are names.", {}),
        ("See [this](https://docs.x.org/a?page=77).", {}),
    ],
)
def test_numbers_that_no_fact_holds_are_flagged(text: str, expected: dict[str, Severity]) -> None:
    assert found(text) == expected


def test_chinese_multiples_are_numbers_too() -> None:
    assert found("速度提升三倍，成本降低百分之九十。", locale="zh-CN") == {"unsupported-number": Severity.FLAG}


@pytest.mark.parametrize(
    ("text", "locale", "rule"),
    [
        ("Studies show that it works.", "en", "unsupported-claim"),
        ("Acme is trusted by many teams.", "en", "unsupported-claim"),
        ("Acme is award-winning.", "en", "unsupported-claim"),
        ("研究表明它有效。", "zh-CN", "unsupported-claim"),
        ("Acme 荣获年度大奖。", "zh-CN", "unsupported-claim"),
        ('The founder said: "We always wanted to build this."', "en", "unsupported-quotation"),
        ("创始人说：“我们一直都想做这样的一个产品。”", "zh-CN", "unsupported-quotation"),
    ],
)
def test_claims_without_a_source_are_flagged(text: str, locale: str, rule: str) -> None:
    assert set(found(text, locale=locale)) == {rule}


def test_a_claim_with_a_source_in_its_sentence_passes() -> None:
    assert found("Studies show that it works ([source](https://docs.x.org/a)).") == {}


def test_missing_sources_and_foreign_links_are_flagged() -> None:
    text = f"# Acme\n\nRead [this](https://elsewhere.net/x).\n\n{FILLER}"
    _, flags = judge(text, "Acme", BRAND, "en", Kind.ARTICLE)
    assert {flag.rule for flag in flags} == {"missing-source", "foreign-link"}
    assert found("See [us](https://www.acme.com/pricing).") == {}


def test_length_is_bound_by_kind() -> None:
    short = f"# Acme\n\n{LEAD}" + "A short text that says little more than its title does. " * 5
    assert judge(short, "Acme", BRAND, "en", Kind.ARTICLE)[0] == Outcome.FLAGGED
    assert judge(short, "Acme", BRAND, "en", Kind.SUMMARY)[0] == Outcome.CLEAN
    assert judge("x" * 2_000_000, "x", BRAND, "en", Kind.ARTICLE)[1][0].rule == "length"


def test_a_near_duplicate_is_flagged_and_a_copy_blocked() -> None:
    earlier = f"# Acme\n\n{LEAD}\n\n{FILLER}"
    assert found("", others=(earlier,)) == {"duplicate": Severity.BLOCK}
    told = "".join(f"Paragraph number {chr(97 + i)} speaks of topic {chr(97 + i) * 3} at length. " for i in range(26))
    changed = told.replace("topic kkk at", "subject kkk with")
    assert found(told, others=(f"# Acme\n\n{LEAD}{changed}\n\n{FILLER}",)) == {"duplicate": Severity.FLAG}
    zh = f"# Acme\n\n{ZH_LEAD}\n\n{ZH_FILLER}"
    assert found("", locale="zh-CN", others=(zh,)) == {"duplicate": Severity.BLOCK}
    assert found("", others=("# Other\n\nSomething else entirely.",)) == {}


@pytest.mark.parametrize(
    "text", ["</facts>", "<draft>", "[F3] says so.", "{{brand}} is here.", "TODO", "[Your company] does.", "【请填写】"]
)
def test_leftovers_of_the_prompt_block(text: str) -> None:
    assert found(text)["leftover"] == Severity.BLOCK


def test_the_wrong_language_and_a_missing_title_are_flagged() -> None:
    zh = f"# Acme\n\n{ZH_LEAD}{ZH_FILLER}"
    assert "language" in {flag.rule for flag in judge(zh, "Acme", BRAND, "en", Kind.ARTICLE)[1]}
    en = f"# Acme\n\n{LEAD}{FILLER}"
    assert "language" in {flag.rule for flag in judge(en, "Acme", BRAND, "zh-CN", Kind.ARTICLE)[1]}
    assert judge(en, " ", BRAND, "en", Kind.ARTICLE)[0] == Outcome.BLOCKED


def test_a_writer_that_talks_to_its_user_is_flagged() -> None:
    _, flags = judge(f"Here is the article:\n\n{LEAD}{FILLER}", "Acme", BRAND, "en", Kind.ARTICLE)
    assert "chatter" in {flag.rule for flag in flags}


@pytest.mark.parametrize("service", ["deepseek", "doubao", "qwen"])
def test_whatever_the_sandbox_writes_from_the_sheet_comes_out_clean(service: str) -> None:
    brand = parse_brand((EXAMPLES / "brand.toml").read_bytes())
    luck = Luck(20260301)
    earlier: list[str] = []
    for line in parse_keywords((EXAMPLES / "keywords.csv").read_bytes()):
        told = prompting.generate(line.keyword, line.locale, line.kind, brand)
        job = writers.read(told.user)
        assert job is not None
        draft = writers.generate(job, luck.constant("writer", service, line.keyword, line.locale, line.kind))
        told = prompting.rewrite(line.keyword, line.locale, line.kind, brand, draft=draft, notes="Shorter, please")
        again = writers.read(told.user)
        assert again is not None
        text = writers.rewrite(again, luck.constant("rewrite", service, line.keyword, line.locale, line.kind))
        for version in (draft, text):
            title, _ = split_title(version)
            assert judge(version, title, brand, line.locale, line.kind, earlier, keyword=line.keyword) == (
                Outcome.CLEAN,
                (),
            )
        earlier.append(text)
