"""Reading JSON that others wrote: every step may be missing or of another type."""

from collections.abc import Iterator, Mapping

from pydantic import JsonValue

_LARGEST_COUNT = 10**12


def at(value: JsonValue, *path: str | int) -> JsonValue:
    """The value at `path`, or None where the path ends early."""
    for step in path:
        if isinstance(step, str) and isinstance(value, dict):
            value = value.get(step)
        elif isinstance(step, int) and isinstance(value, list) and -len(value) <= step < len(value):
            value = value[step]
        else:
            return None
    return value


def text_at(value: JsonValue, *path: str | int) -> str:
    """The string at `path`; numbers are written out, anything else is empty."""
    found = at(value, *path)
    if isinstance(found, str):
        return found
    if isinstance(found, (int, float)) and not isinstance(found, bool):
        return str(found)
    return ""


def count_at(value: JsonValue, *path: str | int) -> int:
    """The non-negative whole number at `path`, else 0."""
    found = at(value, *path)
    if isinstance(found, int) and not isinstance(found, bool) and 0 <= found <= _LARGEST_COUNT:
        return found
    return 0


def first_count(value: JsonValue, *paths: tuple[str | int, ...]) -> int:
    """The first of the counts at `paths` that is not 0."""
    return next((count for path in paths if (count := count_at(value, *path))), 0)


def items_at(value: JsonValue, *path: str | int) -> Iterator[JsonValue]:
    """The elements of the list at `path`, if there is one."""
    found = at(value, *path)
    if isinstance(found, list):
        yield from found


def merged(base: dict[str, JsonValue], over: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """`base` with the values of `over`, tables merged entry by entry."""
    made = dict(base)
    for name, value in over.items():
        below = made.get(name)
        made[name] = merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return made
