"""Keyword lists (CSV) and brand files (TOML) as people write them; errors name file, line, field and remedy."""

import csv
import io
import re
import tomllib
import unicodedata
from collections.abc import Iterator, Sequence

from pydantic import ValidationError

from citeloop.models.brand import Brand
from citeloop.models.request import KeywordLine
from citeloop.rules.requests import RequestError, explained, kind_problem

MAX_BYTES = 5_000_000
MAX_KEYWORD = 200
_COLUMNS = ("keyword", "locale", "kind", "priority")
_HEADERS = {
    "keyword": "keyword",
    "keywords": "keyword",
    "关键词": "keyword",
    "locale": "locale",
    "language": "locale",
    "语言": "locale",
    "kind": "kind",
    "type": "kind",
    "类型": "kind",
    "priority": "priority",
    "优先级": "priority",
}
_LOCALE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*")
_PRIORITIES = frozenset("12345")
_BRAND_KEYS = frozenset(
    {"name", "aliases", "domains", "homepage", "description", "voice", "banned_words", "control_prompts"}
    | {"facts", "rivals"}
)


def decode(data: bytes | str, filename: str) -> str:
    """UTF-8 with or without a mark; a GBK or UTF-16 file is named as such."""
    if isinstance(data, str):
        return data.removeprefix("\ufeff")
    if len(data) > MAX_BYTES:
        raise RequestError(filename, f"has {len(data)} bytes", f"keep it under {MAX_BYTES}")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise RequestError(filename, "is encoded as UTF-16", "save it as UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        try:
            data.decode("gb18030")
        except UnicodeDecodeError:
            raise RequestError(f"{filename} line {line}", "is not UTF-8 text", "save it as UTF-8") from None
        raise RequestError(
            f"{filename} line {line}",
            "looks GBK-encoded, as spreadsheets on Chinese Windows save it",
            "save it as “CSV UTF-8” or run `iconv -f GBK -t UTF-8`",
        ) from None


def same_keyword(keyword: str) -> str:
    """What two spellings of one keyword have in common."""
    return " ".join(unicodedata.normalize("NFKC", keyword).casefold().split())


def guess_locale(text: str) -> str:
    return "zh-CN" if re.search(r"[\u3400-\u9fff]", text) else "en"


def parse_keywords(text: str | bytes, filename: str = "keywords.csv") -> tuple[KeywordLine, ...]:
    """Columns keyword, locale, kind, priority; the header may be missing, and so may all but the first column.

    Without a locale a keyword with Chinese characters is zh-CN, any other en.
    """
    lines: list[KeywordLine] = []
    seen: dict[tuple[str, str, str], int] = {}
    columns: Sequence[str] = _COLUMNS
    for number, row in _rows(decode(text, filename), filename):
        if not lines and (header := _header(row)) is not None:
            columns = header
            continue
        line = _keyword_line(row, columns, f"{filename} line {number}")
        key = (same_keyword(line.keyword), line.locale.lower(), line.kind)
        if key in seen:
            where = f"{filename} line {number}, field keyword"
            raise RequestError(where, f"{line.keyword!r} repeats line {seen[key]}", "remove one of the two lines")
        seen[key] = number
        lines.append(line)
    if not lines:
        raise RequestError(filename, "has no keywords", "write one keyword a line")
    return tuple(lines)


def _rows(text: str, filename: str) -> Iterator[tuple[int, list[str]]]:
    first = text.split("\n", 1)[0]
    delimiter = "\t" if "\t" in first and "," not in first else ","
    reader = csv.reader(io.StringIO(text.rstrip(), newline=""), delimiter=delimiter, strict=True)
    try:
        for row in reader:
            yield reader.line_num, [cell.strip() for cell in row]
    except csv.Error as error:
        where = f"{filename} line {reader.line_num}"
        if "field limit" in str(error):
            problem = f"holds a text of more than {csv.field_size_limit()} characters"
            raise RequestError(where, problem, f"{MAX_KEYWORD} are allowed") from None
        raise RequestError(where, f"is no CSV ({error})", "close every quotation mark") from None


def _header(row: Sequence[str]) -> list[str] | None:
    names = [_HEADERS.get(cell.lower()) for cell in row]
    if "keyword" not in names:
        return None
    return [name or cell for name, cell in zip(names, row, strict=True)]


def _keyword_line(row: Sequence[str], columns: Sequence[str], where: str) -> KeywordLine:
    if len(row) > len(columns) and any(row[len(columns) :]):
        raise RequestError(
            where, f"has {len(row)} columns instead of {len(columns)}", "put a text with a comma in quotation marks"
        )
    cells = dict(zip(columns, row, strict=False))
    unknown = [name for name in cells if name not in _COLUMNS]
    if unknown:
        raise RequestError(
            where, f"{unknown[0]!r} is no column", f"use {', '.join(_COLUMNS)}; did a header cell get misspelt?"
        )
    keyword = cells.get("keyword", "")
    if not keyword:
        raise RequestError(f"{where}, field keyword", "is empty", "write the words people ask, or remove the line")
    if len(keyword) > MAX_KEYWORD:
        raise RequestError(f"{where}, field keyword", f"has {len(keyword)} characters", f"{MAX_KEYWORD} are allowed")
    priority = cells.get("priority") or "3"
    if priority not in _PRIORITIES:
        raise RequestError(f"{where}, field priority", f"{priority[:40]!r} is no priority", "write 1 (first) to 5")
    locale = cells.get("locale") or guess_locale(keyword)
    if not _LOCALE.fullmatch(locale):
        raise RequestError(f"{where}, field locale", f"{locale[:40]!r} is no locale", "write one such as zh-CN or en")
    fields = {"keyword": keyword, "locale": locale, "priority": int(priority)}
    if cells.get("kind"):
        fields["kind"] = cells["kind"].lower()
    try:
        return KeywordLine.model_validate(fields)
    except ValidationError as error:
        if error.errors()[0]["loc"] == ("kind",):
            raise RequestError(f"{where}, field kind", *kind_problem(cells["kind"])) from None
        raise explained(error, where) from None


def parse_brand(text: str | bytes, filename: str = "brand.toml") -> Brand:
    """A brand file: name, aliases, domains, homepage, voice, banned words, facts, rivals, control prompts."""
    source = decode(text, filename)
    try:
        told = tomllib.loads(source)
    except tomllib.TOMLDecodeError as error:
        message, _, place = str(error).partition(" (at ")
        line = re.search(r"line (\d+)", place)
        where = f"{filename} line {line.group(1)}" if line else f"{filename}, at the end"
        raise RequestError(where, f"is no TOML: {message}", "correct the line") from None
    for key in told:
        if key not in _BRAND_KEYS:
            raise RequestError(
                f"{_at(source, filename, (key,))}, field {key}",
                "is no known field",
                f"use {', '.join(sorted(_BRAND_KEYS))}",
            )
    if not told.get("facts"):
        raise RequestError(
            f"{filename}, field facts",
            "the brand has no facts",
            "add [[facts]] with id, text and the source_url of a public page",
        )
    try:
        return _brand(told)
    except ValidationError as error:
        raise _placed(error, source, filename) from None


def _brand(told: dict[str, object]) -> Brand:
    entity = {key: told[key] for key in ("name", "aliases", "domains") if key in told}
    rest = {key: value for key, value in told.items() if key not in {"name", "aliases", "domains", "rivals"}}
    rivals = told.get("rivals", ())
    return Brand.model_validate(
        {
            **rest,
            "entity": _with_alias_tables(entity),
            "rivals": [_with_alias_tables(rival) for rival in rivals] if isinstance(rivals, list) else rivals,
        }
    )


def _with_alias_tables(entity: object) -> object:
    """Aliases may be plain strings or tables with contexts."""
    if not isinstance(entity, dict) or not isinstance(entity.get("aliases"), list):
        return entity
    aliases = [{"text": alias} if isinstance(alias, str) else alias for alias in entity["aliases"]]
    return {**entity, "aliases": aliases}


def _placed(error: ValidationError, source: str, filename: str) -> RequestError:
    """The first fault, with the line on which its table or key stands."""
    location = tuple(part for part in error.errors()[0]["loc"] if part != "entity")
    plain = explained(error)
    field = plain.field.removeprefix("entity.")
    where = f"{_at(source, filename, location)}, field {field}"
    return RequestError(where, plain.problem, plain.remedy)


def _at(source: str, filename: str, location: tuple[int | str, ...]) -> str:
    lines = source.splitlines()
    table = str(location[0]) if location else ""
    start = 0
    if len(location) > 1 and isinstance(location[1], int):
        headers = [i for i, line in enumerate(lines) if re.match(rf"\s*\[\[\s*{re.escape(table)}\s*\]\]", line)]
        start = headers[location[1]] if location[1] < len(headers) else 0
    key = next((str(part) for part in reversed(location) if isinstance(part, str)), "")
    for number in range(start, len(lines)):
        if number > start and len(location) > 1 and re.match(r"\s*\[", lines[number]):
            break
        if re.match(rf"\s*\[*\s*[\"']?{re.escape(key)}\b", lines[number]):
            return f"{filename} line {number + 1}"
    return f"{filename} line {start + 1}" if start else filename
