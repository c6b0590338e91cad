from collections import Counter

from citeloop.rules.remembering import remembered


def test_a_text_is_worked_out_once_until_others_take_its_place() -> None:
    worked_out: Counter[str] = Counter()

    @remembered(texts=2, longest=5)
    def length(text: str) -> int:
        worked_out[text] += 1
        return len(text)

    assert [length(text) for text in ("a", "bb", "a", "bb")] == [1, 2, 1, 2]
    assert worked_out == {"a": 1, "bb": 1}
    length("ccc")
    length("a")
    assert worked_out["a"] == 2


def test_a_long_text_takes_nobody_s_place() -> None:
    worked_out: Counter[str] = Counter()

    @remembered(texts=1, longest=5)
    def length(text: str) -> int:
        worked_out[text] += 1
        return len(text)

    assert [length(text) for text in ("a", "longer", "longer", "a")] == [1, 6, 6, 1]
    assert worked_out == {"a": 1, "longer": 2}
