"""A TOML file whose every value knows its line, so that a mistake can be named where it stands."""

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TypeVar

from citeloop.models.plan import per_second

C = TypeVar("C", bound=str)

_TABLE = re.compile(r"^\s*\[([^\[\]]+)\]")
_KEY = re.compile(r"^\s*((?:[\w-]+|\"[^\"]*\"|'[^']*')(?:\s*\.\s*(?:[\w-]+|\"[^\"]*\"|'[^']*'))*)\s*=")
_PART = re.compile(r"[\w-]+|\"[^\"]*\"|'[^']*'")
_POSITION = re.compile(r"\s*\(at (?:line (\d+), column \d+|end of document)\)")
_TWICE = re.compile(r"Cannot (?:declare \((.*?)\) twice|overwrite a value)")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)")
_DURATION_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}


class CatalogError(ValueError):
    """A mistake in channels.toml: one line with file, line, field and remedy."""


class Spot:
    """One value of the file, and how to complain about it."""

    def __init__(self, file: str, lines: Mapping[tuple[str, ...], int], path: tuple[str, ...], value: object) -> None:
        self._file = file
        self._lines = lines
        self._path = path
        self._value = value

    @property
    def value(self) -> object:
        return self._value

    @property
    def name(self) -> str:
        return self._path[-1]

    @property
    def place(self) -> str:
        """`channels.toml:12: channels.deepseek.rate`"""
        path = self._path
        while path and path not in self._lines:
            path = path[:-1]
        line = f":{self._lines[path]}" if path else ""
        return f"{self._file}{line}" + (f": {'.'.join(self._path)}" if self._path else "")

    def wrong(self, problem: str) -> CatalogError:
        """The error to raise: `channels.toml:12: channels.deepseek.rate: …`."""
        return CatalogError(f"{self.place}: {problem}")

    def table(self, allowed: Iterable[str] | None = None, required: Iterable[str] = ()) -> dict[str, "Spot"]:
        """The entries of a table. Unknown keys are refused with the nearest known one."""
        if not isinstance(self._value, dict):
            raise self.wrong("must be a table")
        entries = {key: self._below(key, value) for key, value in self._value.items()}
        known = None if allowed is None else tuple(allowed)
        for key, entry in entries.items():
            if known is not None and key not in known:
                raise entry.wrong(f"unknown key; {_suggestion(key, known)}")
        for key in required:
            if key not in entries:
                raise self.wrong(f"{key} is missing; add a line `{key} = …`")
        return entries

    def text(self) -> str:
        if not isinstance(self._value, str) or not self._value.strip():
            raise self.wrong('must be a text in quotes, such as "…"')
        return self._value.strip()

    def flag(self) -> bool:
        if not isinstance(self._value, bool):
            raise self.wrong("must be true or false")
        return self._value

    def whole(self, least: int, most: int) -> int:
        if not isinstance(self._value, int) or isinstance(self._value, bool) or not least <= self._value <= most:
            raise self.wrong(f"must be a whole number from {least} to {most}")
        return self._value

    def number(self, least: float, most: float) -> float:
        if not isinstance(self._value, (int, Decimal)) or isinstance(self._value, bool):
            raise self.wrong("must be a number, such as 2.5")
        if not least <= self._value <= most:
            raise self.wrong(f"must be a number from {least:g} to {most:g}")
        return float(self._value)

    def micros(self) -> int:
        """An amount of money in millionths."""
        if not isinstance(self._value, (int, Decimal)) or isinstance(self._value, bool):
            raise self.wrong("must be a number, such as 2.0")
        if not 0 <= self._value <= 10**9:
            raise self.wrong("must be an amount from 0 to 1000000000")
        return round(Decimal(self._value) * 1_000_000)

    def duration(self) -> timedelta:
        match = _DURATION.fullmatch(self._value.strip()) if isinstance(self._value, str) else None
        if match is None or not 0 < (seconds := float(match[1]) * _DURATION_UNITS[match[2]]) <= 30 * 86400:
            raise self.wrong(f'{self._value!r} is no duration; write "5s", "2m", "300ms" or "1h"')
        return timedelta(seconds=seconds)

    def rate(self) -> Fraction:
        if isinstance(self._value, bool) or not isinstance(self._value, (str, int, Decimal)):
            raise self.wrong('must be a rate, such as "2/s", "12/min" or "500/h"; 0 pauses')
        try:
            return per_second(str(self._value))
        except ValueError as error:
            raise self.wrong(str(error)) from None

    def choice(self, choices: Iterable[C]) -> C:
        known = tuple(choices)
        for one in known:
            if one == self._value:
                return one
        names = [str(one) for one in known]
        raise self.wrong(f"{self._value!r} is not known; {_suggestion(str(self._value), names)}")

    def choices(self, choices: Iterable[C]) -> tuple[C, ...]:
        if not isinstance(self._value, list) or not self._value:
            raise self.wrong('must be a list, such as ["write"]')
        known = tuple(choices)
        return tuple(Spot(self._file, self._lines, self._path, one).choice(known) for one in self._value)

    def _below(self, key: str, value: object) -> "Spot":
        return Spot(self._file, self._lines, (*self._path, key), value)


def read_toml(path: Path) -> Spot:
    """The file's root table. Raises CatalogError for a missing, unreadable or malformed file."""
    try:
        source = path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except FileNotFoundError:
        raise CatalogError(f"{path}: not found; write it, or name another file in CITELOOP_CHANNELS") from None
    except OSError as error:
        raise CatalogError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise CatalogError(f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8") from None
    lines = _find_lines(source)
    try:
        return Spot(str(path), lines, (), tomllib.loads(source, parse_float=Decimal))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise _malformed(path, source, error) from None


def _malformed(path: Path, source: str, error: Exception) -> CatalogError:
    position = _POSITION.search(str(error))
    line = int(position[1]) if position and position[1] else source.count("\n") + 1
    problem = _POSITION.sub("", str(error)) or "nested too deeply"
    lines = source.split("\n")
    twice = _TWICE.search(problem)
    if twice:
        # tomllib names the place after the offending key; the key itself stands on that line or the one before.
        line = next(n for n in (line, line - 1) if n < 2 or _names(lines[n - 1]))  # noqa: PLR2004 - first line
        field = _names(lines[line - 1]) or "this name"
        return CatalogError(f"{path}:{line}: {field}: declared twice; rename or remove one of the two")
    quoted = lines[line - 1].strip()[:80] if line <= len(lines) else ""
    return CatalogError(f"{path}:{line}: {problem}; correct the line `{quoted}`")


def _names(line: str) -> str:
    found = _TABLE.match(line) or _KEY.match(line)
    return found[1].strip() if found else ""


def _find_lines(source: str) -> dict[tuple[str, ...], int]:
    """Where each table and key stands. Entries of inline tables stand on their table's line."""
    found: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    for number, line in enumerate(source.split("\n"), start=1):
        if header := _TABLE.match(line):
            table = _parts(header[1])
            for depth in range(1, len(table) + 1):
                found.setdefault(table[:depth], number)
        elif key := _KEY.match(line):
            found.setdefault((*table, *_parts(key[1])), number)
    return found


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in _PART.findall(dotted))


def _suggestion(given: str, known: Iterable[str]) -> str:
    names = sorted(known)
    nearest = difflib.get_close_matches(given, names, n=1, cutoff=0.6)
    return f"did you mean {nearest[0]}?" if nearest else f"known are {', '.join(names)}"
