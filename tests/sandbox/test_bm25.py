"""The index of the answer engines: right by the formula, and the same however it came about."""

import math
import random

import pytest

from sandbox.bm25 import Index


def made_up(number: int) -> list[list[str]]:
    luck = random.Random(3)
    return [[f"w{luck.randrange(60)}" for _ in range(luck.randint(1, 80))] for _ in range(number)]


def test_a_score_follows_lucenes_formula() -> None:
    index = Index([["red", "red", "fox"], ["red", "hen"], ["owl"]])
    rarity = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    length = 1.5 * (1 - 0.75 + 0.75 * 3 / 2)
    assert index.scores(["red"]).tolist()[0] == pytest.approx(rarity * 2 / (2 + length))
    assert index.scores(["red"]).tolist()[2] == 0


def test_a_term_asked_twice_counts_twice_and_an_unknown_one_not_at_all() -> None:
    index = Index(made_up(20))
    assert index.scores(["w1", "w1"]).tolist() == (2 * index.scores(["w1"])).tolist()
    assert index.scores(["nonesuch", "w1"]).tolist() == index.scores(["w1"]).tolist()
    assert not index.scores([]).any()


def test_an_index_that_lost_pages_scores_as_one_that_never_had_them() -> None:
    documents = made_up(40)
    index = Index(documents[:10])
    for document in documents[10:]:
        index.add(document)
    gone = {2, 17, 39}
    for place in gone:
        index.drop(place, documents[place])
    rest = [document for place, document in enumerate(documents) if place not in gone]
    asked = ["w3", "w8", "w21", "w3"]
    scores = index.scores(asked).tolist()
    assert [score for place, score in enumerate(scores) if place not in gone] == Index(rest).scores(asked).tolist()
    assert [scores[place] for place in gone] == [0, 0, 0]


def test_an_index_without_pages_finds_nothing() -> None:
    index = Index([["red"]])
    index.drop(0, ["red"])
    assert index.scores(["red"]).tolist() == [0]
