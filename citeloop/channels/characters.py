"""Characters of others that cannot be kept: UTF-8 has no half of a surrogate pair, Postgres has no NUL."""

import re

from pydantic import JsonValue

_UNFIT = re.compile("[\x00\ud800-\udfff]")
_OPEN_END = re.compile("[\ud800-\udbff]\x00*\\Z")


def storable(text: str) -> str:
    """Halves that stand together are joined, lone ones become U+FFFD, NUL is dropped."""
    if not _UNFIT.search(text):
        return text
    return text.replace("\x00", "").encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def storable_json(value: JsonValue) -> JsonValue:
    """`value` with every text in it made storable, the names of its fields included."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list):
        return [storable_json(one) for one in value]
    if isinstance(value, dict):
        return {storable(name): storable_json(one) for name, one in value.items()}
    return value


class Halves:
    """Joins what a stream cut: the first half ends a text of one event, the second begins the same one of a later."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str | int, ...], str] = {}

    def joined(self, payload: JsonValue) -> JsonValue:
        """`payload` made storable; a half at the end of a text is kept back for the text at the same place."""
        return self._at((), payload)

    def _at(self, place: tuple[str | int, ...], value: JsonValue) -> JsonValue:
        if isinstance(value, str):
            return self._text(place, value)
        if isinstance(value, list):
            return [self._at((*place, n), one) for n, one in enumerate(value)]
        if isinstance(value, dict):
            return {storable(name): self._at((*place, name), one) for name, one in value.items()}
        return value

    def _text(self, place: tuple[str | int, ...], text: str) -> str:
        if text and self._kept:
            text = self._kept.pop(place, "") + text
        if cut := _OPEN_END.search(text):
            self._kept[place] = cut[0][0]
            text = text[: cut.start()]
        return storable(text)
