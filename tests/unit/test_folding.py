import unicodedata

from hypothesis import example, given
from hypothesis import strategies as st

from citeloop.rules.folding import fold

MIXED = st.text(
    st.one_of(
        st.sampled_from("abCD09 \n\t\u3000**`~__™①²😀\u200b\u0301ﾊﾟ小軟한ＡﬁßİΣ’.-"),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=60,
)


@given(MIXED, st.frozensets(st.integers(0, 59), max_size=8), st.frozensets(st.integers(0, 59), max_size=8))
@example("0_0", frozenset(), frozenset())
def test_every_folded_character_comes_from_the_place_it_points_to(
    text: str, blanked: frozenset[int], dropped: frozenset[int]
) -> None:
    inside = frozenset(range(len(text)))
    folded = fold(text, blanked=blanked & inside, dropped=dropped & inside)
    assert len(folded.text) == len(folded.starts) == len(folded.ends) == len(folded.apart)
    assert list(folded.starts) == sorted(folded.starts)
    for char, start, end in zip(folded.text, folded.starts, folded.ends, strict=True):
        piece = text[start:end]
        assert char == "\n" if start in blanked else char in " \n" if piece.isspace() else char in alone(piece)


def alone(piece: str) -> str:
    """The piece without its neighbours. Only an underscore needs them: inside a word it is a letter."""
    return "_" if unicodedata.normalize("NFKC", piece) == "_" else fold(piece).text


def test_a_mark_is_taken_together_with_the_letter_before_it() -> None:
    folded = fold("cafe\u0301 Zwei")
    assert folded.text == "café zwei"
    assert (folded.starts[3], folded.ends[3]) == (3, 5)
    assert folded.starts[4:] == (5, 6, 7, 8, 9)


def test_only_the_first_character_after_a_sign_stands_apart() -> None:
    folded = fold("Acme™ 2000①ok")
    assert folded.text == "acme 2000ok"
    assert [i for i, apart in enumerate(folded.apart) if apart] == [4, 9]
