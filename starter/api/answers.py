"""How operations describe their answers: one example each, and every status that can come."""

from collections.abc import Mapping
from typing import Any

from fastapi import Request, Security
from fastapi.security import HTTPBearer

from citeloop.rules.requests import RequestError
from starter.api.problems import KINDS, MEDIA_TYPE

Answers = dict[int | str, dict[str, Any]]

_BEARER = HTTPBearer(auto_error=False, bearerFormat="ck_…", description="`citeloop key create` makes a key.")
KEY_NEEDED = Security(_BEARER)
"""For the document only: the guard in front of all routes is what checks the key."""

ALWAYS = (401, 422, 503)
WRITING = (400, 403, 413)


def answers(
    example: object, *others: int, status: int = 200, also: Mapping[int, tuple[type, str]] | None = None
) -> Answers:
    """The good answer with its example; `also` names other good ones; problems: the usual ones and `others`."""
    good: Answers = {status: {"content": {"application/json": {"example": example}}}}
    for code, (model, description) in (also or {}).items():
        content = {"application/json": {"example": example}}
        good[code] = {"model": model, "description": description, "content": content}
    return {**good, **problems(*ALWAYS, *others)}


def problems(*statuses: int) -> Answers:
    return {status: _problem(status) for status in sorted(set(statuses))}


def body(example: object) -> dict[str, Any]:
    """The example of a request's body."""
    return {"requestBody": {"content": {"application/json": {"example": example}}}}


async def plain_text(request: Request) -> None:
    """Postgres keeps no NUL character in a text; nobody means one. RequestError."""
    written = await request.body()
    if b"\\u0000" in written and _holds_nul(written):
        raise RequestError("body", "holds a NUL character", "remove it")


def _holds_nul(written: bytes) -> bool:
    r"""Whether some `\u0000` is an escape and not the tail of an escaped backslash."""
    place = written.find(b"\\u0000")
    while place >= 0:
        before = place
        while before > 0 and written[before - 1 : before] == b"\\":
            before -= 1
        if (place - before) % 2 == 0:
            return True
        place = written.find(b"\\u0000", place + 1)
    return False


def _problem(status: int) -> dict[str, Any]:
    fragment, title, remedy = KINDS[status]
    example = {
        "type": f"/docs#{fragment}",
        "title": title,
        "status": status,
        "detail": _DETAILS[status],
        "field": _FIELDS.get(status, ""),
        "remedy": remedy,
        "request_id": "01KB8M3Z5T8W4Q2N6J7R9V0XYC",
        "errors": [],
    }
    schema = {"$ref": "#/components/schemas/Problem"}
    return {"description": title, "content": {MEDIA_TYPE: {"schema": schema, "example": example}}}


_DETAILS = {
    400: "the body is no JSON",
    401: "no key was sent",
    403: "dashboard is a viewer's key",
    404: "'01KB8M3Z5T8W4Q2N6J7R9V0XYA' is no article",
    405: "Method Not Allowed",
    409: "'vector database for RAG' has ended: measured",
    413: "Content Too Large",
    422: "keywords[0].keyword: String should have at least 1 character",
    503: "the store does not answer",
}
_FIELDS = {400: "body", 401: "Authorization", 403: "Authorization", 404: "article", 422: "keywords[0].keyword"}
