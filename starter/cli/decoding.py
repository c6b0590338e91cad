"""decode: what is to be done with a puzzling reply of a provider or a site."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from citeloop.channels.delays import http_date
from citeloop.channels.reply import HttpReply
from citeloop.channels.services import SERVICES, judgement, judgement_of_silence
from starter.cli.output import hint, print_json, say
from starter.cli.session import AsJson
from starter.errors import CommandError

_NO_REPLY = frozenset({"", "0", "null", "none"})
_STATUSES = range(100, 1000)


def decode(
    service: Annotated[str, typer.Option(help="Who answered, such as deepseek, gemini, wordpress or generic_http.")],
    file: Annotated[str, typer.Argument(help="The reply's body, byte for byte; - reads standard input.")] = "",
    status: Annotated[str, typer.Option(help="The HTTP status; leave it out when no reply came.")] = "",
    header: Annotated[list[str] | None, typer.Option(help="NAME:VALUE, as often as needed.")] = None,
    as_json: AsJson = False,
) -> None:
    """Judge one reply as CiteLoop would: what to do, which kind of fault, how long to wait, and why.

    Example: citeloop decode --service openai --status 429 --header retry-after-ms:1450 reply.json
    """
    if service not in SERVICES:
        hint(f"{service} is not known, so the reply is judged by its shape; known are {', '.join(SERVICES)}")
    code = _status(status)
    if code is None:
        found = judgement_of_silence(service)
    else:
        headers = _headers(header or [])
        received_at = http_date(headers.get("date", "")) or datetime.now(UTC)
        found = judgement(service, HttpReply(code, headers, _body(file), received_at))
    if as_json:
        print_json(found)
        return
    say(f"handling  {found.handling}")
    say(f"kind      {found.kind}")
    if found.delay_s is not None:
        say(f"delay     {found.delay_s:g} s")
    say(f"why       {found.why}")


def _status(given: str) -> int | None:
    if given.strip().lower() in _NO_REPLY:
        return None
    if not given.isdecimal() or int(given) not in _STATUSES:
        raise CommandError(f"{given!r} is no HTTP status", "status", "such as 429; leave it out when no reply came")
    return int(given)


def _headers(given: list[str]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for one in given:
        name, colon, value = one.partition(":")
        if not colon or not name.strip():
            raise CommandError(f"{one!r} is no header", "header", "such as retry-after:30")
        known = headers.get(name.strip().lower())
        headers[name.strip().lower()] = value.strip() if known is None else f"{known}, {value.strip()}"
    return headers


def _body(file: str) -> bytes:
    if not file:
        return b""
    if file == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise CommandError(
            f"{file} cannot be read: {error.strerror}", "file", "name a file, or - for standard input"
        ) from None
