"""A sketch finds among thousands of texts the few that are nearly the same, and misses none of those."""

import random

from citeloop.rules.duplicates import look_alikes, shingles, similarity, sketch

WORDS = [f"word{number}" for number in range(5000)]


def _text(luck: random.Random, length: int = 600) -> list[str]:
    return luck.choices(WORDS, k=length)


def _changed(luck: random.Random, words: list[str], share: float) -> list[str]:
    """The same with the last `share` of it written anew."""
    kept = words[: round(len(words) * (1 - share))]
    return kept + luck.choices(WORDS, k=len(words) - len(kept))


def test_what_review_objects_to_is_always_among_the_look_alikes() -> None:
    luck = random.Random(1)
    for number in range(200):
        words = _text(luck)
        text, copy = " ".join(words), " ".join(_changed(luck, words, luck.uniform(0, 0.11)))
        others = {f"other {n}": sketch(" ".join(_text(luck))) for n in range(3)}
        assert similarity(shingles(text), shingles(copy)) >= 0.8
        assert look_alikes(text, {**others, "copy": sketch(copy)}) == ["copy"], number


def test_what_shares_a_third_is_not_read_again() -> None:
    luck = random.Random(2)
    words = _text(luck)
    assert look_alikes(" ".join(words), {"other": sketch(" ".join(_changed(luck, words, 0.5)))}) == []


def test_the_likest_come_first_and_no_more_than_ten() -> None:
    luck = random.Random(3)
    words = _text(luck)
    near = {f"near {n}": sketch(" ".join(_changed(luck, words, n / 100))) for n in range(15)}
    found = look_alikes(" ".join(words), near)
    assert found[0] == "near 0"
    assert len(found) == 10


def test_chinese_and_short_texts_are_compared_too() -> None:
    text = "向量数据库怎么选型？先看规模，再看延迟，最后看成本与运维。"
    assert look_alikes(text, {"same": sketch(text), "short": sketch("先看规模"), "empty": sketch("")}) == ["same"]
    assert look_alikes("", {"empty": sketch("")}) == []
