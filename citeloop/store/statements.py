"""SQL with named parameters, and the rows it gives: the driver spoken directly (ADR 0011)."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import asyncpg

_SPOT = re.compile(r"'[^']*'|::|:([a-z_]+)")
"""A quoted text and a cast are passed over; what is left of a colon and a word is a parameter."""
_NOTHING: Mapping[str, object] = {}


class Statement:
    """Written with `:name`, as the driver knows it: `$1`, with the names in that order."""

    __slots__ = ("names", "sql")

    def __init__(self, written: str) -> None:
        places: dict[str, int] = {}

        def place(spot: re.Match[str]) -> str:
            name = spot[1]
            return spot[0] if name is None else f"${places.setdefault(name, len(places) + 1)}"

        self.sql = _SPOT.sub(place, written)
        self.names = tuple(places)

    def arguments(self, values: Mapping[str, object]) -> list[object]:
        """In the driver's order. KeyError names the one that is missing."""
        return [values[name] for name in self.names]

    def misfit(self, error: asyncpg.DataError) -> str:
        """Which value Postgres or the driver could not take for what it should be."""
        spot = re.search(r"\$(\d+)", str(error))
        name = self.names[int(spot[1]) - 1] if spot else "a value"
        return f"{name}: does not fit its place in the statement ({type(error).__name__})"


def text(written: str) -> Statement:
    """Postgres infers each parameter's type from where it stands: write CAST(:name AS type) where it cannot."""
    return Statement(written)


class Row(asyncpg.Record):  # type: ignore[misc]  # the driver's rows are compiled and untyped
    """A row whose columns are attributes, too."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def _asdict(self) -> dict[str, Any]:
        return dict(self.items())


class Rows:
    """Everything that a statement returned. LookupError where the number of rows is not the one asked for."""

    __slots__ = ("_rows",)

    def __init__(self, rows: list[Row]) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def all(self) -> list[Row]:
        return self._rows

    def one_or_none(self) -> Row | None:
        if len(self._rows) > 1:
            raise LookupError(f"{len(self._rows)} rows, where at most one was expected")
        return self._rows[0] if self._rows else None

    def one(self) -> Row:
        row = self.one_or_none()
        if row is None:
            raise LookupError("no row, where one was expected")
        return row

    def scalars(self) -> list[Any]:
        """The first column."""
        return [row[0] for row in self._rows]

    def scalar_one(self) -> Any:
        return self.one()[0]

    def scalar_one_or_none(self) -> Any:
        row = self.one_or_none()
        return row[0] if row is not None else None


class Sql:
    """Runs statements on one connection."""

    __slots__ = ("_driver",)

    def __init__(self, driver: Any) -> None:
        self._driver = driver

    async def execute(self, statement: Statement, values: Mapping[str, object] = _NOTHING) -> Rows:
        """TypeError names the value that does not fit its place, and does not show it."""
        try:
            return Rows(await self._driver.fetch(statement.sql, *statement.arguments(values)))
        except asyncpg.DataError as error:
            raise TypeError(statement.misfit(error)) from None
