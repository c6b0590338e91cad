import inspect
from typing import Any, get_type_hints

import pytest
from temporalio import activity

from activities.bookkeeping import BookkeepingActivities
from activities.correcting import CorrectingActivities
from activities.illustrating import IllustratingActivities
from activities.inspecting import InspectingActivities
from activities.monitoring import MonitoringActivities
from activities.publishing import PublishingActivities
from activities.reviewing import ReviewingActivities
from activities.writing import WritingActivities
from workflows import stages

KEPT_BY: dict[type, type] = {
    stages.Writing: WritingActivities,
    stages.Illustrating: IllustratingActivities,
    stages.Reviewing: ReviewingActivities,
    stages.Publishing: PublishingActivities,
    stages.Inspecting: InspectingActivities,
    stages.Correcting: CorrectingActivities,
    stages.Monitoring: MonitoringActivities,
    stages.Bookkeeping: BookkeepingActivities,
}


def activities_of(promise: type) -> dict[str, Any]:
    """Method → function, for what bears @activity.defn."""
    return {
        name: method
        for name, method in vars(promise).items()
        if inspect.isfunction(method) and activity._Definition.from_callable(method) is not None
    }


def defined_name(method: Any) -> str | None:
    found = activity._Definition.from_callable(method)
    return found.name if found is not None else None


PROMISES = [(promise, name) for promise in KEPT_BY for name in activities_of(promise)]


def test_every_abstract_class_of_stages_is_looked_at() -> None:
    promises = {found for _, found in inspect.getmembers(stages, inspect.isclass) if inspect.isabstract(found)}
    assert promises == set(KEPT_BY)
    assert len(PROMISES) > 10


@pytest.mark.parametrize(("promise", "name"), PROMISES, ids=[f"{p.__name__}.{n}" for p, n in PROMISES])
def test_a_promise_is_kept_under_its_name_with_its_records(promise: type, name: str) -> None:
    promised, kept = activities_of(promise)[name], getattr(KEPT_BY[promise], name)
    assert kept is not promised
    assert defined_name(kept) == defined_name(promised)
    assert get_type_hints(kept) == get_type_hints(promised)
    assert inspect.signature(kept) == inspect.signature(promised)


@pytest.mark.parametrize("promise", KEPT_BY, ids=lambda promise: promise.__name__)
def test_nothing_is_offered_that_was_not_promised(promise: type) -> None:
    assert set(activities_of(KEPT_BY[promise])) == set(activities_of(promise))


def test_no_two_activities_share_a_name() -> None:
    names = [defined_name(activities_of(promise)[name]) for promise, name in PROMISES]
    assert len(set(names)) == len(names)
