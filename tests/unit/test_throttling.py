from datetime import UTC, datetime, time, timedelta
from fractions import Fraction

import pytest

from citeloop.models.channel import DailyReset
from citeloop.models.throttling import ADAPTATION, BREAKER, Cause


@pytest.mark.parametrize(
    ("now", "began"),
    [
        (datetime(2026, 11, 29, 15, 59, tzinfo=UTC), datetime(2026, 11, 28, 16, tzinfo=UTC)),
        (datetime(2026, 11, 29, 16, 0, tzinfo=UTC), datetime(2026, 11, 29, 16, tzinfo=UTC)),
    ],
)
def test_a_quota_begins_anew_at_midnight_in_its_own_zone(now: datetime, began: datetime) -> None:
    assert DailyReset(zone="Asia/Shanghai").day(now) == (began, began + timedelta(days=1))


def test_a_day_on_which_the_clocks_change_has_23_hours() -> None:
    began, ends = DailyReset(at=time(1, 30), zone="Europe/Berlin").day(datetime(2026, 3, 29, 1, 0, tzinfo=UTC))
    assert ends - began == timedelta(hours=23)


def test_steps_come_more_slowly_the_more_429s_were_met() -> None:
    steps = [ADAPTATION.step_after(streak).total_seconds() for streak in (0, 1, 2, 3, 7, 50)]
    assert steps == [15, 15, 30, 60, 600, 600]


def test_a_cut_stops_at_the_floor_and_a_rise_at_its_own_rate() -> None:
    own = Fraction(10)
    assert ADAPTATION.lowered(own, Fraction(11, 10)) == 1
    assert ADAPTATION.raised(own, Fraction(8)) == 9
    assert ADAPTATION.raised(own, Fraction(19, 2)) is None


def test_a_breaker_stays_open_longer_each_time_and_at_most_ten_minutes() -> None:
    assert [BREAKER.open_for(level).total_seconds() for level in (1, 2, 3, 40)] == [10, 20, 40, 600]


def test_work_moves_away_from_what_only_its_operator_can_mend_and_from_what_is_broken() -> None:
    assert {cause for cause in Cause if cause.moves_work} == {Cause.EXHAUSTED, Cause.UNAUTHORIZED, Cause.BREAKER}
