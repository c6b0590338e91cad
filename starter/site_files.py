"""A CSV file of sites: one line each, every mistake with its line, all of them kept or none."""

import csv
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from pydantic import JsonValue, ValidationError

from citeloop.channels.site_entries import SETTINGS, SiteError
from citeloop.models.channel import SiteKind
from citeloop.models.record import Record
from citeloop.models.site import SiteEntry
from citeloop.store.repositories.sites import Put
from starter.errors import CommandError
from starter.site_commands import SiteCommands

COLUMNS = (
    "name", "kind", "base_url", "user", "secret", "user_env", "secret_env", "rate", "concurrency", "labels", "tags",
    "categories", "author", "indexnow_key", "max_server_time", "callback_deadline", "owned", "timeout",
)  # fmt: skip
"""`labels`, `tags` and `categories` hold several, separated by `|`. `timeout` is the longest one request may take."""
CONCURRENCY = 4
EVERY = 5_000
"""Lines between two words about the progress."""
MOST_FAULTS = 1_000
_LISTS = ("tags", "categories")
_TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class LineFault(Record):
    line: int
    site: str
    field: str
    problem: str
    remedy: str

    def __str__(self) -> str:
        place = ".".join(part for part in (self.site or "?", self.field) if part)
        told = f"line {self.line}: {place}: {self.problem}"
        return f"{told}; {self.remedy}" if self.remedy else told


class BadFile(CommandError):  # noqa: N818 - told like every other CommandError
    """Nothing was kept. faults: in order of line, at most MOST_FAULTS."""

    def __init__(self, path: Path, faults: list[LineFault]) -> None:
        first = faults[0]
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        super().__init__(f"{path}: {first}{more}", "sites", "nothing was imported; correct the file")
        self.faults = faults


async def import_sites(
    commands: SiteCommands,
    path: Path,
    environ: Mapping[str, str],
    progress: Callable[[str], None],
    *,
    dry_run: bool = False,
) -> Put | int:
    """Read, judge and keep the file; how many lines were read, where `dry_run`. Raises BadFile, CommandError."""
    entries: list[tuple[SiteEntry, str]] = []
    lines: list[int] = []
    faults: list[LineFault] = []
    seen: dict[str, int] = {}
    for line, row in _rows(path):
        try:
            entry, secret = _entry(row, environ)
            entry = commands.ready(entry, secret)
            _check_new(entry, seen.setdefault(entry.name, line), line)
            entries.append((entry, secret))
            lines.append(line)
        except SiteError as error:
            faults.append(_fault(line, row.get("name", "").strip(), error))
            if len(faults) >= MOST_FAULTS:
                break
        if len(seen) % EVERY == 0 and seen:
            progress(f"{len(seen):,} lines read")
    faults += [_fault(lines[place], entries[place][0].name, error) for place, error in await commands.refusals(entries)]
    if faults:
        raise BadFile(path, sorted(faults, key=lambda fault: fault.line)[:MOST_FAULTS])
    if not entries:
        raise CommandError(f"{path} holds no sites", "sites", "write one a line under the line with the columns")
    if dry_run:
        return len(entries)
    progress(f"{len(entries):,} lines read; keeping them")
    return await commands.import_(entries)


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """(line, cells by column). Raises CommandError for a file or heading that cannot be read."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file, strict=True)
            heading = [cell.strip().lower() for cell in next(rows, [])]
            _check_heading(path, heading)
            for cells in rows:
                if any(cell.strip() for cell in cells):
                    if len(cells) > len(heading):
                        problem = f"{path}: line {rows.line_num} has {len(cells)} cells, the heading {len(heading)}"
                        raise CommandError(problem, "sites", "put cells that hold a comma in quotes")
                    yield rows.line_num, dict(zip(heading, cells, strict=False))
    except OSError as error:
        raise CommandError(f"{path} cannot be read ({error.strerror})", "sites", "name a CSV file") from None
    except UnicodeDecodeError as error:
        raise CommandError(f"{path}: byte {error.start} is not UTF-8", "sites", "save the file as UTF-8") from None
    except csv.Error as error:
        raise CommandError(f"{path}: line {rows.line_num}: {error}", "sites", "save it as CSV with commas") from None


def _check_heading(path: Path, heading: list[str]) -> None:
    unknown = [cell for cell in heading if cell not in COLUMNS]
    missing = [cell for cell in ("name", "kind", "base_url") if cell not in heading]
    if unknown or missing or len(set(heading)) != len(heading):
        told = f"unknown column {unknown[0][:40]!r}" if unknown else f"no column {', '.join(missing) or 'twice'}"
        raise CommandError(f"{path}: line 1: {told}", "sites", f"the columns are {', '.join(COLUMNS)}")


def _entry(row: Mapping[str, str], environ: Mapping[str, str]) -> tuple[SiteEntry, str]:
    """Raises SiteError."""
    cells = {key: value.strip() for key, value in row.items() if value.strip()}
    name = cells.get("name", "")
    for key, value in cells.items():
        if "\0" in value:
            raise SiteError(name.replace("\0", ""), key, "holds a NUL character; remove it")
    kind = cells.get("kind", "")
    if kind not in set(SiteKind):
        raise SiteError(name, "kind", f"{kind[:40]!r} is not known; known are {', '.join(SiteKind)}")
    settings: dict[str, JsonValue] = {key: cells[key] for key in SETTINGS if key in cells}
    settings |= {key: _listed(cells[key]) for key in _LISTS if key in cells}
    if "owned" in cells:
        settings["owned"] = _truth(name, cells["owned"])
    if "timeout" in cells:
        settings["timeouts"] = {"total": cells["timeout"]}
    concurrency = cells.get("concurrency", str(CONCURRENCY))
    if not concurrency.isdecimal() or len(concurrency) > 4:  # noqa: PLR2004 - enough digits
        raise SiteError(name, "concurrency", f"{concurrency[:40]!r} is no whole number; write one such as 4")
    try:
        entry = SiteEntry(
            name=name,
            kind=SiteKind(kind),
            base_url=cells.get("base_url", ""),
            user=_credential(name, cells, "user", environ),
            rate=cells.get("rate"),
            concurrency=int(concurrency),
            labels=tuple(str(one) for one in _listed(cells.get("labels", ""))),
            settings=settings,
        )
    except ValidationError as error:
        field = str(error.errors()[0]["loc"][0])
        raise SiteError(name, field, "cannot be read; correct the cell") from None
    return entry, _credential(name, cells, "secret", environ)


def _fault(line: int, site: str, error: SiteError) -> LineFault:
    return LineFault(line=line, site=site, field=error.field, problem=error.problem, remedy=error.remedy)


def _check_new(entry: SiteEntry, first: int, line: int) -> None:
    if first != line:
        raise SiteError(entry.name, "name", f"repeats line {first}; remove one of the two")


def _credential(name: str, cells: Mapping[str, str], column: str, environ: Mapping[str, str]) -> str:
    """The cell's own, or that of the variable it names."""
    variable = cells.get(f"{column}_env")
    if variable is None:
        return cells.get(column, "")
    if not (value := environ.get(variable, "").strip()):
        raise SiteError(name, f"{column}_env", f"{variable[:60]} is not set; export it")
    return value


def _listed(cell: str) -> list[JsonValue]:
    return [one.strip() for one in cell.split("|") if one.strip()]


def _truth(name: str, cell: str) -> bool:
    if cell.lower() not in _TRUTHS:
        raise SiteError(name, "owned", f"{cell[:40]!r} is neither true nor false; write one of them")
    return _TRUTHS[cell.lower()]
