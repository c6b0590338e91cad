import logging

import pytest

from activities.experience import Experience
from tests.store.channel_material import spec

CHANNEL = spec("deepseek", None, slow_factor=2.0)


def experienced(seconds: float, count: int = 30) -> Experience:
    made = Experience()
    for _ in range(count):
        made.lasted(CHANNEL, seconds)
    return made


def test_a_call_far_over_the_usual_is_logged_once_with_its_trace(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        experienced(1.0).lasted(CHANNEL, 2.1)
    [record] = caplog.records
    assert record.getMessage() == f"slow call: channel deepseek took 2.1 s, p95 is 1.0 s, trace {'0' * 32}"


@pytest.mark.parametrize(("earlier", "seconds"), [(30, 1.9), (5, 60.0)])
def test_an_ordinary_call_and_one_of_which_too_little_is_known_are_not_slow(
    earlier: int, seconds: float, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        experienced(1.0, earlier).lasted(CHANNEL, seconds)
    assert caplog.records == []


def test_tokens_are_guessed_from_the_prompt_first_and_from_earlier_calls_later() -> None:
    known = Experience()
    assert (known.estimate(CHANNEL, 5000), known.estimate(CHANNEL, 0)) == (5000, 1000)
    for _ in range(10):
        known.used(CHANNEL, 1000)
    assert (known.estimate(CHANNEL, 5000), known.estimate(CHANNEL, 800)) == (1200, 800)
