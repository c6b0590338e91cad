from importlib import import_module
from typing import Any

import pytest

from citeloop.rules.absence import _DENIAL, _PATTERNS, is_absence

PARSER: Any = import_module("re._parser")


def denies(parts: Any, literal: str = "") -> bool:
    """Whether whatever these parts of a parsed pattern match, after `literal`, has a word of denial in it."""
    for kind, value in parts:
        if str(kind) == "LITERAL":
            literal += chr(value)
            continue
        if _DENIAL.search(literal) or _part_denies(str(kind), value, literal):
            return True
        literal = ""
    return _DENIAL.search(literal) is not None


def _part_denies(kind: str, value: Any, literal: str) -> bool:
    if kind == "BRANCH":
        return all(denies(alternative, literal) for alternative in value[1])
    if kind == "SUBPATTERN":
        return denies(value[-1], literal)
    return kind in {"MAX_REPEAT", "MIN_REPEAT"} and value[0] > 0 and denies(value[2])


@pytest.mark.parametrize("pattern", [pattern.pattern for pattern in _PATTERNS])
def test_no_pattern_matches_without_a_word_of_denial(pattern: str) -> None:
    assert denies(PARSER.parse(pattern))


def test_a_pattern_without_such_a_word_would_be_found_out() -> None:
    assert not denies(PARSER.parse(r"(?:no|any) (?:information )?about \x00"))
    assert not denies(PARSER.parse(r"(?:not )?(?:familiar) with \x00"))


def test_a_name_is_absent_only_where_it_is_what_was_denied() -> None:
    told = "i could not find any information about acme. "
    assert is_absence(told, told.index("acme"), told.index("acme") + 4)
    told = "there is no better choice than acme."
    assert not is_absence(told, told.index("acme"), told.index("acme") + 4)
