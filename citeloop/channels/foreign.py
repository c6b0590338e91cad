"""Reading JSON that others wrote: every step may be missing or of another type."""

from collections.abc import Iterator

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


def items_at(value: JsonValue, *path: str | int) -> Iterator[JsonValue]:
    """The elements of the list at `path`, if there is one."""
    found = at(value, *path)
    if isinstance(found, list):
        yield from found
