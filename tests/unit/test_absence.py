import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from citeloop.rules.absence import _DENIAL, _NAME, _PATTERNS, is_absence


@pytest.mark.parametrize("pattern", _PATTERNS, ids=range(len(_PATTERNS)))
def test_no_pattern_stands_without_a_word_of_denial(pattern: re.Pattern[str]) -> None:
    @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.from_regex(pattern))
    def of(clause: str) -> None:
        before, _, after = clause.partition(_NAME)
        assert _DENIAL.search(before) or _DENIAL.search(after)

    of()


def test_a_name_beside_a_denial_is_absent_only_where_it_is_what_was_denied() -> None:
    told = "i could not find any information about acme. "
    assert is_absence(told, told.index("acme"), told.index("acme") + 4)
    told = "there is no better choice than acme."
    assert not is_absence(told, told.index("acme"), told.index("acme") + 4)
