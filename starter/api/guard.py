"""Nothing under /v1 is answered without a key, and nothing but GET to a viewer: no route can forget it."""

from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from citeloop.store.database import Database
from citeloop.store.errors import StoreUnavailable
from citeloop.store.repositories.api_keys import KeyRole
from starter import keys
from starter.api.problems import problem

GUARDED = "/v1/"
OPEN = "/v1/callbacks/"
"""Sites sign what they send; they have no key."""
_LOOKING = {"GET", "HEAD", "OPTIONS"}


class Guard:
    """Puts the key's Holder into `scope["state"]["holder"]`."""

    def __init__(self, app: ASGIApp, database: Callable[[Scope], Database]) -> None:
        self._app = app
        self._database = database

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if scope["type"] != "http" or not path.startswith(GUARDED) or path.startswith(OPEN):
            await self._app(scope, receive, send)
            return
        request_id = scope["state"]["request_id"]
        scheme, _, key = Headers(scope=scope).get("authorization", "").partition(" ")
        try:
            holder = await keys.holder(self._database(scope), key.strip()) if scheme.lower() == "bearer" else None
        except StoreUnavailable:
            refusal = problem(503, "the store does not answer", request_id=request_id, headers={"Retry-After": "2"})
            await refusal(scope, receive, send)
            return
        if holder is None:
            detail = "the key is unknown or revoked" if scheme else "no key was sent"
            challenge = {"WWW-Authenticate": 'Bearer realm="citeloop"'}
            refusal = problem(401, detail, field="Authorization", request_id=request_id, headers=challenge)
        elif holder.role is KeyRole.VIEWER and scope["method"] not in _LOOKING:
            refusal = problem(403, f"{holder.name} is a viewer's key", field="Authorization", request_id=request_id)
        else:
            scope["state"]["holder"] = holder
            await self._app(scope, receive, send)
            return
        await refusal(scope, receive, send)
