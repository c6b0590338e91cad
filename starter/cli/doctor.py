"""doctor: what is wrong with this installation, and what to do about it."""

import os
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from starter.cli.output import console, print_json
from starter.cli.session import AsJson, run, settings_of

if TYPE_CHECKING:
    from starter.checks.findings import Diagnosis

_STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red", "skipped": "dim"}
_COUNTED = (("fail", "failure"), ("warn", "warning"))


def doctor(
    context: typer.Context,
    offline: Annotated[
        bool, typer.Option("--offline", help="Call no channel and no site: keys are looked for, not tried.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check the whole installation; exit 1 when something fails. Works while nothing runs, and changes nothing.

    Example: citeloop doctor --offline
    """
    from starter.doctor import examine

    diagnosis = run(examine(settings_of(context), os.environ, offline=offline))
    if as_json:
        print_json({"ok": diagnosis.healthy, **diagnosis.model_dump(mode="json")})
    else:
        _show(diagnosis)
    if not diagnosis.healthy:
        raise typer.Exit(1)


def _show(diagnosis: "Diagnosis") -> None:
    out = console()
    for group in diagnosis.groups:
        rows = Table.grid(padding=(0, 2, 0, 0))
        for width in (9, 18):
            rows.add_column(no_wrap=True, min_width=width)
        rows.add_column(overflow="fold")
        for finding in group.findings:
            style = _STYLES[finding.standing]
            said = Text(finding.message, style if finding.standing in {"warn", "fail"} else "")
            rows.add_row(Text(f"  {finding.standing}", style), Text(finding.check), said)
        out.print(Text(group.name, "bold"))
        out.print(rows)
    out.print(_summary(diagnosis), markup=False)


def _summary(diagnosis: "Diagnosis") -> str:
    counts = [(name, sum(f.standing == kind for g in diagnosis.groups for f in g.findings)) for kind, name in _COUNTED]
    told = [f"{count} {name}{'' if count == 1 else 's'}" for name, count in counts if count]
    return ", ".join(told) or "all is well"
