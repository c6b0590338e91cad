"""No body is read beyond the limit, whatever its headers say."""

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from starter.api.problems import problem

_TOO_LARGE = 413


class BodyLimit:
    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app = app
        self._most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        detail = f"at most {self._most} bytes"
        told = Headers(scope=scope).get("content-length", "")
        if told.isdecimal() and int(told[:20]) > self._most:
            refusal = problem(_TOO_LARGE, detail, field="body", request_id=scope["state"]["request_id"])
            await refusal(scope, receive, send)
            return
        left = self._most

        async def counted() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                raise HTTPException(_TOO_LARGE, detail)
            return message

        await self._app(scope, counted, send)
