"""Printing: tables for people, JSON for programs, one line for an error."""

import json
import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from citeloop.models.record import Record

WIDE = 220
"""Columns when nobody looks at a terminal: a table in a file is not cut off at 80."""


def console(*, stderr: bool = False) -> Console:
    """stderr: for people only, beside JSON on stdout."""
    terminal = (sys.stderr if stderr else sys.stdout).isatty()
    return Console(width=None if terminal else WIDE, highlight=False, soft_wrap=False, stderr=stderr)


def print_json(value: Record | Sequence[Record] | Sequence[dict[str, Any]] | dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(_plain(value), ensure_ascii=False) + "\n")


def say(text: str) -> None:
    sys.stdout.write(text + "\n")


def hint(text: str) -> None:
    """For people only: never in the way of what a program reads."""
    sys.stderr.write(text + "\n")


def table(*columns: str, title: str | None = None) -> Table:
    made = Table(title=title, title_justify="left", header_style="bold", box=None, pad_edge=False)
    for column in columns:
        right = column in {"attempts", "cost", "seconds", "total", "calls", "429s", "faults", "prio", "backlog"}
        made.add_column(column, justify="right" if right else "left", overflow="fold")
    return made


def _plain(value: Any) -> Any:
    if isinstance(value, Record):
        return value.model_dump(mode="json")
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
