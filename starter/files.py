"""The files that people hand to a door: read, then understood by the product's own rules."""

from pathlib import Path

from citeloop.models.brand import Brand
from citeloop.models.request import KeywordLine
from citeloop.rules.parsing import parse_brand, parse_keywords
from starter.errors import CommandError


def read_brand(path: Path) -> Brand:
    """CommandError or RequestError, naming file, line and field."""
    return parse_brand(_bytes(path, "brand"), path.name)


def read_keywords(path: Path) -> tuple[KeywordLine, ...]:
    return parse_keywords(_bytes(path, "keywords"), path.name)


def read_text(path: Path, field: str) -> str:
    try:
        return _bytes(path, field).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CommandError(f"{path}: byte {error.start} is not UTF-8", field, "save it as UTF-8") from None


def _bytes(path: Path, field: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}", field, "name a file that can be read") from None
