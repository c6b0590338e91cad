"""Every error as RFC 9457 `application/problem+json`: what is wrong, with which field, and what to do about it."""

import logging
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.responses import Response
from temporalio.service import RPCError

from citeloop.models.record import Record
from citeloop.rules.requests import RequestError, kind_problem
from citeloop.store.errors import NotFound, StoreUnavailable
from starter.errors import CommandError, Conflict, Missing, NotRunning

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
_WRONG_METHOD = 405
_COME_BACK = "5"
"""Seconds, where none better are known."""
_SHOWN = 20
"""Faults of one body that are listed."""
_PLACES = {"body", "query", "path", "header"}


class Fault(Record):
    field: str
    problem: str


class Problem(Record):
    """RFC 9457. `type` resolves, against this API's address, to the paragraph that explains it."""

    type: str = Field(examples=["/docs#conflict"])
    title: str
    status: int
    detail: str
    field: str = ""
    remedy: str = ""
    request_id: str = ""
    errors: tuple[Fault, ...] = ()
    """All faults of a request that could not be read, where there are several."""


KINDS: Mapping[int, tuple[str, str, str]] = {
    400: ("unreadable", "The request cannot be read", "Send UTF-8 JSON without NUL characters."),
    401: ("no-key", "A key is needed", "Send `Authorization: Bearer ck_…`; `citeloop key create` makes a key."),
    403: ("viewer", "This key may only look", "Use an operator's key for anything but GET."),
    404: ("not-found", "Not found", "Check the id: it is there for the tenant of the key, or nowhere."),
    405: ("method", "Method not allowed", "The Allow header names what is possible here."),
    409: ("conflict", "It contradicts what is there", "Look at the present state, then decide anew."),
    413: ("too-large", "The body is too large", "Split it: a campaign may hold up to 20,000 keywords, 8 MiB in all."),
    422: ("invalid", "The request is wrong", "Correct the field that is named."),
    500: ("internal", "A fault of ours", "Report it with the request id."),
    503: ("unavailable", "Something we need does not answer", "Repeat the request: nothing is done twice."),
}
"""status → the fragment of its type, its title, and the remedy where none better is known."""


def problem(
    status: int,
    detail: str,
    *,
    field: str = "",
    remedy: str = "",
    request_id: str = "",
    errors: Sequence[Fault] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    """A 503 says when to come back, whoever gives it."""
    fragment, title, usual = KINDS.get(status) or ("other", HTTPStatus(status).phrase, "")
    told = {"Retry-After": _COME_BACK, **(headers or {})} if status == HTTPStatus.SERVICE_UNAVAILABLE else headers
    body = Problem(
        type=f"/docs#{fragment}",
        title=title,
        status=status,
        detail=detail,
        field=field,
        remedy=remedy or usual,
        request_id=request_id,
        errors=tuple(errors),
    )
    return Response(body.model_dump_json(), status, told, MEDIA_TYPE)


def install(app: FastAPI) -> None:
    handlers: tuple[tuple[type[Exception], Any], ...] = (
        (RequestValidationError, _unreadable),
        (HTTPException, _refused),
        (CommandError, _command),
        (RequestError, _request),
        (NotFound, _missing),
        (StoreUnavailable, _store_away),
        (RPCError, _temporal_away),
        (Exception, _fault),
    )
    for kind, handler in handlers:
        app.add_exception_handler(kind, handler)


async def _unreadable(request: Request, error: RequestValidationError) -> Response:
    """What was sent is never echoed: it may be a secret, or no Unicode."""
    found = error.errors()
    if found and found[0]["type"] == "json_invalid":
        return problem(400, "the body is no JSON", field="body", request_id=_id(request))
    faults = [_explained(one) for one in found[:_SHOWN]]
    first = faults[0]
    return problem(
        422,
        f"{first.field}: {first.problem}",
        field=first.field,
        request_id=_id(request),
        errors=faults if len(faults) > 1 else (),
    )


async def _refused(request: Request, error: HTTPException) -> Response:
    headers = dict(error.headers or {})
    if error.status_code == _WRONG_METHOD and (methods := _methods(request)):
        headers["Allow"] = ", ".join(methods)
    return problem(error.status_code, str(error.detail), request_id=_id(request), headers=headers)


def _methods(request: Request) -> list[str]:
    """All that the path knows: one route of a path does not know of the others."""
    document: dict[str, dict[str, Any]] = request.app.openapi()["paths"]
    path = request.url.path
    return sorted(
        method.upper()
        for template, item in document.items()
        if re.fullmatch(re.sub(r"\{[^}]+\}", "[^/]+", template), path)
        for method in item
    )


async def _command(request: Request, error: CommandError) -> Response:
    status = next((status for kind, status in _STATUS.items() if isinstance(error, kind)), 422)
    remedy = "" if "`citeloop" in error.remedy else error.remedy  # some are for the command line
    return problem(status, error.message, field=error.field, remedy=remedy, request_id=_id(request))


async def _request(request: Request, error: RequestError) -> Response:
    return problem(422, error.problem, field=error.field, remedy=error.remedy, request_id=_id(request))


async def _missing(request: Request, error: NotFound) -> Response:
    return problem(404, str(error), request_id=_id(request))


async def _store_away(request: Request, error: StoreUnavailable) -> Response:
    log.warning("%s: %s", _id(request), error)
    return problem(503, "the store does not answer", request_id=_id(request), headers={"Retry-After": "2"})


async def _temporal_away(request: Request, error: RPCError) -> Response:
    """Words are in the store before they are told: repeating them is safe."""
    log.warning("%s: Temporal: %s", _id(request), error.message)
    detail = "Temporal does not answer; what the request changes in the store is recorded"
    return problem(503, detail, request_id=_id(request))


async def _fault(request: Request, error: Exception) -> Response:
    log.error("%s: %s %s failed", _id(request), request.method, request.url.path, exc_info=error)
    return problem(500, "it has been logged", request_id=_id(request))


_STATUS = {Missing: 404, Conflict: 409, NotRunning: 503}


def _explained(fault: Mapping[str, Any]) -> Fault:
    loc = list(fault["loc"])
    place = loc.pop(0) if loc and loc[0] in _PLACES else ""
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc).lstrip(".")
    field = _plain(path) or str(place) or "request"
    if loc and loc[-1] == "kind":
        given, remedy = kind_problem(_plain(str(fault.get("input"))))
        return Fault(field=field, problem=f"{given}; {remedy}")
    told = {"missing": "is missing", "extra_forbidden": "is no known field"}
    return Fault(field=field, problem=told.get(fault["type"]) or _plain(fault["msg"].removeprefix("Value error, ")))


def _plain(text: str) -> str:
    """What JSON and UTF-8 can carry, and no more than a line needs."""
    return text.encode("utf-8", "replace").decode()[:300]


def _id(request: Request) -> str:
    return str(request.scope.get("state", {}).get("request_id", ""))
