"""The matcher against the labelled gold set, and its offsets."""

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citeloop.models.brand import Alias, Entity
from citeloop.rules.folding import fold
from citeloop.rules.matching import Matcher

GOLD = [
    json.loads(line) for line in Path(__file__).with_name("gold_matches.jsonl").read_text(encoding="utf-8").splitlines()
]


def entity(name: str, *aliases: str | Alias) -> Entity:
    return Entity(name=name, aliases=tuple(Alias(text=a) if isinstance(a, str) else a for a in aliases))


def alias(text: str, stops: str = "", required: str = "") -> Alias:
    return Alias(text=text, stop_contexts=tuple(stops.split()), required_contexts=tuple(required.split()))


ENTITIES = (
    entity("华为", "华为", "Huawei"),
    entity("小米", alias("小米", "粥 椒 辣"), "Xiaomi", "小米SU7"),
    entity("理想", alias("理想", "状态 情况 主义"), "理想汽车"),
    entity("蔚来"),
    entity("飞书", "飞书", alias("Lark", required="collaboration suite 协作")),
    entity("爱搜索", alias("爱搜索", "引擎")),
    entity("苹果", alias("苹果", required="手机 电脑 发布会")),
    entity("Apple", alias("Apple", "pie")),
    entity("阿里云", "阿里云", "Alibaba Cloud"),
    entity("阿里巴巴", "阿里巴巴", "阿里", "Alibaba"),
    entity("Meta"),
    entity("OpenAI"),
    entity("Milvus", "Milvus", "Milvus 向量数据库"),
    entity("Notion"),
    entity("Vespa", alias("Vespa", required="vector search")),
    entity("Booking.com"),
    entity("AT&T"),
    entity("Yahoo!"),
    entity("L'Oréal"),
    entity("C++"),
)
MATCHER = Matcher(ENTITIES)


def named(text: str) -> list[str]:
    return sorted({hit.entity for hit in MATCHER.find(text) if not hit.absent})


@pytest.mark.parametrize("case", GOLD, ids=lambda case: f"{case['kind']}: {case['text'][:24]}")
def test_the_matcher_names_what_a_person_would(case: dict[str, object]) -> None:
    assert named(str(case["text"])) == sorted(map(str, case["named"]))  # type: ignore[call-overload]


def test_the_gold_set_is_read_without_an_error_and_covers_every_failure_kind(
    capsys: pytest.CaptureFixture[str],
) -> None:
    counts: Counter[str] = Counter()
    for case in GOLD:
        found, wanted = set(named(case["text"])), set(case["named"])
        counts["right"] += len(found & wanted)
        counts["false"] += len(found - wanted)
        counts["missed"] += len(wanted - found)
    precision = counts["right"] / (counts["right"] + counts["false"])
    recall = counts["right"] / (counts["right"] + counts["missed"])
    kinds = Counter(case["kind"] for case in GOLD)
    with capsys.disabled():
        print(f"\ngold set: {len(GOLD)} cases, {len(kinds)} kinds, precision {precision:.3f}, recall {recall:.3f}")  # noqa: T201
    assert len(GOLD) >= 150
    assert {"homograph", "inside-word", "absence", "traditional", "full-width", "latin-in-latin"} <= set(kinds)
    assert {"url-only", "markdown-split", "possessive", "plural", "two-character"} <= set(kinds)
    assert (precision, recall) == (1.0, 1.0)


def test_hits_point_into_the_answer_as_it_was_written() -> None:
    text = "推荐**华**为与ＨＵＡＷＥＩ，以及 Mil\u00advus。"
    hits = MATCHER.find(text)
    assert [text[hit.start : hit.end] for hit in hits] == ["华**为", "ＨＵＡＷＥＩ", "Mil\u00advus"]


def test_the_longest_alias_takes_an_overlap() -> None:
    assert [(h.entity, h.alias) for h in MATCHER.find("阿里云和阿里")] == [
        ("阿里云", "阿里云"),
        ("阿里巴巴", "阿里"),
    ]


def test_a_domain_listed_as_an_alias_is_a_name() -> None:
    listed = Matcher([entity("Huawei", "huawei.com")])
    assert listed.names("see huawei.com for more")
    assert not Matcher([entity("Huawei")]).names("see huawei.com for more")
    assert not listed.names("see https://huawei.com/cn for more")


def test_well_known_homographs_are_guarded_without_being_listed() -> None:
    assert not Matcher([entity("小米")]).names("小米粥养胃")
    assert Matcher([entity("小米")]).names("小米手机")


@given(st.text(max_size=200))
def test_any_text_can_be_read_and_offsets_stay_inside_it(text: str) -> None:
    folded = fold(text)
    assert len(folded.text) == len(folded.starts) == len(folded.ends)
    assert all(0 <= s < e <= len(text) for s, e in zip(folded.starts, folded.ends, strict=True))
    assert list(folded.starts) == sorted(folded.starts)
    MATCHER.find(text)


@given(st.text(alphabet="华为小米粥Meta dt.[](){}1、\n*_~`<>/:wcom。，没有找到关于的信息", max_size=60))
def test_text_made_of_marks_and_names_never_breaks_the_reader(text: str) -> None:
    for hit in MATCHER.find(text):
        assert hit.end > hit.start
