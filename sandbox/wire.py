"""The connection itself, so that the sandbox can cut it, and knows when the caller has gone."""

import asyncio
import json
import socket
import struct
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class Gone(Exception):  # noqa: N818 - an event, not an error
    """The caller closed the connection before the answer was complete."""


class Wire:
    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.gone = asyncio.Event()
        self.severed = False
        """Whether it was the sandbox that hung up."""

    @property
    def closed(self) -> bool:
        return self.gone.is_set() or self._transport.is_closing()

    async def sleep(self, seconds: float) -> None:
        """Raises Gone as soon as the caller hangs up."""
        if self.closed:
            raise Gone
        if seconds <= 0:
            return
        try:
            await asyncio.wait_for(self.gone.wait(), seconds)
        except TimeoutError:
            return
        raise Gone

    async def cut(self) -> None:
        """Close without another byte."""
        self.severed = True
        self._transport.abort()
        await self.gone.wait()

    async def reset(self) -> None:
        """Close with a TCP reset: the caller reads `connection reset by peer`."""
        sock = self._transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await self.cut()


class WireProtocol(HttpToolsProtocol):
    """uvicorn's HTTP/1.1, which also hands its connection to the application as `state["wire"]`."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wire = Wire(transport)
        self.app_state = {**self.app_state, "wire": self._wire}

    def connection_lost(self, exc: Exception | None) -> None:
        self._wire.gone.set()
        super().connection_lost(exc)


def wire_of(scope: Scope) -> Wire:
    wire = scope["state"]["wire"]
    assert isinstance(wire, Wire)
    return wire


class Severed(Response):
    """A reply that never comes: the connection is cut instead."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        await wire_of(scope).cut()


class Voice:
    """Writes one response piece by piece. Every method raises Gone when nobody listens any more."""

    def __init__(self, wire: Wire, send: Send) -> None:
        self.wire = wire
        self._send = send
        self.started = False

    async def start(self, status: int, headers: dict[str, str]) -> None:
        raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        self.started = True
        await self._put({"type": "http.response.start", "status": status, "headers": raw})

    async def write(self, body: bytes) -> None:
        await self._put({"type": "http.response.body", "body": body, "more_body": True})

    async def end(self, body: bytes = b"") -> None:
        await self._put({"type": "http.response.body", "body": body, "more_body": False})

    async def say(self, status: int, headers: dict[str, str], body: bytes) -> None:
        await self.start(status, {**headers, "content-length": str(len(body))})
        await self.end(body)

    async def _put(self, message: dict[str, Any]) -> None:
        if self.wire.closed:
            raise Gone
        await self._send(message)


_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def to_json(value: object) -> bytes:
    return _compact(value).encode()
