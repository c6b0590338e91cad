"""What every WordPress handler needs first: who asks, under which address, and errors in WordPress's shape."""

import base64
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sandbox.config import WordPressSettings
from sandbox.desk import Desk

Json = dict[str, object]
T = TypeVar("T")
Handler = Callable[[Request], Awaitable[Response]]
_PAGE_SIZE = 10
_LARGEST_PAGE = 100


class WpError(Exception):
    """`data` are further members of the error's own `data` object."""

    def __init__(self, status: int, code: str, message: str, **data: object) -> None:
        super().__init__(message)
        self.response = JSONResponse(
            {"code": code, "message": message, "data": {"status": status, **data}}, status_code=status
        )


def route(verbs: str, path: str, handle: Handler) -> Route:
    async def guarded(request: Request) -> Response:
        try:
            return await handle(request)
        except WpError as error:
            return error.response

    return Route(path, guarded, methods=verbs.split())


class Door:
    def __init__(self, site: str, desk: Desk) -> None:
        self.site = site
        self._desk = desk

    @property
    def settings(self) -> WordPressSettings:
        return self._desk.blog(self.site)

    def address(self, request: Request) -> str:
        """Without a slash at its end."""
        own = f"{request.url.scheme}://{request.url.netloc}/{self.site}"
        return self.settings.public_url.rstrip("/") or own

    def signed_in(self, request: Request) -> bool:
        """False without credentials. Raises WpError 401 for wrong ones."""
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "basic":
            return False
        try:
            user, _, password = base64.b64decode(given).decode().partition(":")
        except ValueError:
            return False
        if user != self.settings.user:
            raise WpError(401, "invalid_username", "Unknown username. Check again or try your email address.")
        if password.replace(" ", "") != self.settings.password.replace(" ", ""):
            message = "The provided password is an invalid application password."
            raise WpError(401, "incorrect_password", message)
        return True

    def demand(self, request: Request, code: str, message: str) -> None:
        if not self.signed_in(request):
            raise WpError(401, code, message)

    def edits(self, request: Request) -> bool:
        """Whether `context=edit` is asked for, and allowed."""
        signed_in = self.signed_in(request)
        if request.query_params.get("context") != "edit":
            return False
        if not signed_in:
            message = "Sorry, you are not allowed to edit posts in this post type."
            raise WpError(401, "rest_forbidden_context", message)
        return True


def paged(request: Request, found: Sequence[T], show: Callable[[T], Json]) -> Response:
    """One page of a list, with WordPress's total headers."""
    try:
        size = int(request.query_params.get("per_page", _PAGE_SIZE))
        number = int(request.query_params.get("page", 1))
    except ValueError:
        size = number = 0
    if not (1 <= size <= _LARGEST_PAGE and number >= 1):
        raise WpError(400, "rest_invalid_param", "Invalid parameter(s): per_page")
    pages = -(-len(found) // size)
    if number > max(1, pages):
        message = "The page number requested is larger than the number of pages available."
        raise WpError(400, "rest_post_invalid_page_number", message)
    shown = [show(item) for item in found[(number - 1) * size : number * size]]
    return JSONResponse(shown, headers={"x-wp-total": str(len(found)), "x-wp-totalpages": str(pages)})
