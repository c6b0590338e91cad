"""HTTP/1.1 as the sandbox's callers speak it: a request is read whole, then answered by the application.

h11 took more of the processor than all that the sandbox does, and what the referee takes, the measured system lacks.
"""

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

from starlette.types import ASGIApp, Message, Scope
from uvicorn import Config
from uvicorn.server import ServerState

from sandbox.wire import Wire

_log = logging.getLogger("uvicorn.error")
_LONGEST_HEAD = 64 * 1024
_CLOSE = (b"connection", b"close")
_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}
_BODILESS = frozenset({204, 304})
Headers = list[tuple[bytes, bytes]]


class Malformed(ValueError):  # noqa: N818 - what came, not what failed
    """What came is no HTTP request."""


@dataclass(frozen=True)
class Head:
    method: str
    target: bytes
    version: str
    headers: Headers

    def header(self, name: bytes) -> bytes:
        return next((value for key, value in self.headers if key == name), b"").lower()

    @property
    def stays(self) -> bool:
        """Whether the connection is kept for another request."""
        wish = self.header(b"connection")
        return wish == b"keep-alive" if self.version == "1.0" else wish != b"close"


def read_head(raw: bytes) -> Head:
    """Without the empty line at its end. Raises Malformed."""
    first, *lines = raw.lstrip(b"\r\n").split(b"\r\n")
    try:
        method, target, version = first.split(b" ")
        pairs = [line.split(b":", 1) for line in lines]
        headers = [(name.lower(), value.strip()) for name, value in pairs]
        return Head(method.decode("ascii"), target, version.removeprefix(b"HTTP/").decode("ascii"), headers)
    except ValueError:
        raise Malformed from None


def read_body(head: Head, received: bytearray) -> tuple[bytes, int] | None:
    """The body and how many bytes it took, None while some are missing. Raises Malformed."""
    try:
        if head.header(b"transfer-encoding") == b"chunked":
            return _read_chunks(received)
        length = int(head.header(b"content-length") or 0)
    except ValueError:
        raise Malformed from None
    if length < 0:
        raise Malformed
    return (bytes(received[:length]), length) if len(received) >= length else None


def _read_chunks(received: bytearray) -> tuple[bytes, int] | None:
    body, at = bytearray(), 0
    while (line_end := received.find(b"\r\n", at)) >= 0:
        size = int(received[at:line_end].partition(b";")[0], 16)
        if size == 0:
            end = received.find(b"\r\n\r\n", line_end)
            return None if end < 0 else (bytes(body), end + 4)
        start = line_end + 2
        body += received[start : start + size]
        at = start + size + 2
    return None


class Exchange:
    """One request and its answer, as ASGI wants them."""

    def __init__(self, head: Head, body: bytes, wire: Wire, defaults: Headers) -> None:
        self._head = head
        self._body: bytes | None = body
        self._wire = wire
        self._defaults = defaults
        self._chunked = False
        self.stays = head.stays
        self.started = False
        self.complete = False

    async def receive(self) -> Message:
        if self._body is None:
            if not self.complete:
                await self._wire.gone.wait()
            return {"type": "http.disconnect"}
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(self, message: Message) -> None:
        await self._wire.writable.wait()
        if message["type"] == "http.response.start":
            self._start(message["status"], message["headers"])
            return
        last = not message.get("more_body", False)
        body = message.get("body", b"")
        if self._head.method != "HEAD":
            if self._chunked:
                body = (b"%x\r\n%b\r\n" % (len(body), body) if body else b"") + (b"0\r\n\r\n" if last else b"")
            self._wire.write(body)
        if last:
            self.complete = True
            self._wire.flush()

    def _start(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self.started = True
        told = [*self._defaults, *headers]
        if not any(name == b"content-length" for name, _ in told) and status not in _BODILESS:
            if self._head.version == "1.0":
                self.stays = False
            else:
                self._chunked = True
                told.append((b"transfer-encoding", b"chunked"))
        self.stays = self.stays and _CLOSE not in told
        if not self.stays and _CLOSE not in told:
            told.append(_CLOSE)
        lines = b"".join([b"%b: %b\r\n" % pair for pair in told])
        self._wire.write(b"%b%b\r\n" % (_STATUS_LINES[status], lines))

    async def fail(self, status: int) -> None:
        headers = [(b"content-type", b"text/plain; charset=utf-8"), _CLOSE]
        await self.send({"type": "http.response.start", "status": status, "headers": headers})
        await self.send({"type": "http.response.body", "body": HTTPStatus(status).phrase.encode()})


class WireProtocol(asyncio.Protocol):
    """One connection under uvicorn's server; the application finds it as `state["wire"]`."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._app: ASGIApp = config.loaded_app
        self._keep_alive = config.timeout_keep_alive
        self._server = server_state
        self._state = app_state
        self._loop = _loop or asyncio.get_running_loop()
        self._received = bytearray()
        self._head: Head | None = None
        self._exchange: Exchange | None = None
        self._ending = False
        self._idle_since = self._loop.time()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self._wire = Wire(transport, self._loop)
        self._state = {**self._state, "wire": self._wire}
        self._addresses = {"server": transport.get_extra_info("sockname")[:2], "client": self._peer()}
        self._server.connections.add(self)  # type: ignore[arg-type]
        self._watch = self._loop.call_later(self._keep_alive, self._close_if_idle)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._watch.cancel()
        self._server.connections.discard(self)
        self._wire.lost()

    def data_received(self, data: bytes) -> None:
        self._received += data
        if self._exchange is None:
            self._read()

    def pause_writing(self) -> None:
        self._wire.writable.clear()

    def resume_writing(self) -> None:
        self._wire.writable.set()

    def shutdown(self) -> None:
        """uvicorn's word for: no request after this one."""
        self._ending = True
        if self._exchange is None:
            self._transport.close()

    def _read(self) -> None:
        try:
            if self._head is None:
                self._head = self._read_head()
            found = self._head and read_body(self._head, self._received)
        except Malformed:
            _log.warning("Invalid HTTP request received.")
            self._run(Exchange(Head("GET", b"", "1.1", [_CLOSE]), b"", self._wire, []), None)
            return
        if self._head and found:
            body, taken = found
            del self._received[:taken]
            exchange = Exchange(self._head, body, self._wire, self._server.default_headers)
            self._run(exchange, self._scope(self._head))

    def _read_head(self) -> Head | None:
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            if len(self._received) > _LONGEST_HEAD:
                raise Malformed
            return None
        head = read_head(bytes(self._received[:end]))
        del self._received[: end + 4]
        if head.header(b"expect") == b"100-continue":
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return head

    def _run(self, exchange: Exchange, scope: Scope | None) -> None:
        self._exchange = exchange
        task = self._loop.create_task(self._answer(exchange, scope))
        self._server.tasks.add(task)
        task.add_done_callback(self._server.tasks.discard)

    async def _answer(self, exchange: Exchange, scope: Scope | None) -> None:
        """Without a scope there is no request that could be answered."""
        try:
            if scope is None:
                await exchange.fail(HTTPStatus.BAD_REQUEST)
            else:
                await self._app(scope, exchange.receive, exchange.send)
        except Exception:  # noqa: BLE001 - the log is told, the caller reads 500, the server lives on
            _log.exception("Exception in ASGI application")
            if not exchange.started:
                await exchange.fail(HTTPStatus.INTERNAL_SERVER_ERROR)
        finally:
            self._answered(exchange)

    def _answered(self, exchange: Exchange) -> None:
        self._server.total_requests += 1
        self._exchange = self._head = None
        self._idle_since = self._loop.time()
        if self._ending or not (exchange.complete and exchange.stays):
            self._transport.close()
        elif self._received:
            self._read()

    def _scope(self, head: Head) -> Scope:
        raw_path, _, query = head.target.partition(b"?")
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": head.version,
            **self._addresses,
            "scheme": "http",
            "method": head.method,
            "root_path": "",
            "path": unquote(raw_path.decode("latin-1")),
            "raw_path": raw_path,
            "query_string": query,
            "headers": head.headers,
            "state": self._state.copy(),
        }

    def _peer(self) -> tuple[str, int] | None:
        peer = self._transport.get_extra_info("peername")
        return peer[:2] if peer else None

    def _close_if_idle(self) -> None:
        rest = self._idle_since + self._keep_alive - self._loop.time()
        if rest <= 0 and self._exchange is None:
            self._transport.close()
        else:
            self._watch = self._loop.call_later(max(rest, 1), self._close_if_idle)
