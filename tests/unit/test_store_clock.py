from datetime import UTC, datetime, timedelta

from activities.store_clock import StoreClock
from citeloop.store.repositories.pacing import Slot

BEGAN = datetime(2026, 11, 29, tzinfo=UTC)


def slot(told: float, asked: float, answered: float, wait: float = 0.0) -> Slot:
    """A reply in which the database's clock, which began at 0 with ours, showed `told` seconds."""
    shown = BEGAN + timedelta(seconds=told)
    return Slot(fire_at=shown + timedelta(seconds=wait), told=shown, asked=asked, answered=answered)


def test_an_answer_that_lay_about_while_the_process_stalled_is_due_when_it_was_meant() -> None:
    clock = StoreClock()
    clock.due(slot(1.0, 0.999, 1.001))
    assert abs(clock.due(slot(2.0, 1.999, 2.7, wait=0.2)) - 2.2) < 0.01


def test_a_question_that_waited_for_a_lock_is_not_due_early() -> None:
    assert StoreClock().due(slot(2.0, 1.0, 2.001, wait=0.2)) >= 2.2


def test_a_clock_that_was_set_back_is_believed_at_once() -> None:
    clock = StoreClock()
    clock.due(slot(100.0, 0.999, 1.001))
    assert abs(clock.due(slot(50.0, 1.999, 2.001, wait=1.0)) - 3.0) < 0.01
