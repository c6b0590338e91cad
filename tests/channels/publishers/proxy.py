"""A TCP proxy that delivers every request and, where it is told to, loses the reply."""

import asyncio
import contextlib
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Exchange:
    """One request and the status of its answer. `target` is path and query."""

    method: str
    target: str
    body: bytes
    status: int


Chosen = Callable[[Exchange], bool]
"""Whether the reply is lost."""
_CONNECTION = re.compile(rb"(?im)^(connection|keep-alive):.*\r\n")
_PATIENCE = 60.0


def nothing(_exchange: Exchange) -> bool:
    return False


class Proxy:
    """One request per connection, so that a lost reply is one lost reply."""

    def __init__(self, upstream: str) -> None:
        place = urlsplit(upstream)
        self._host, self._port = place.hostname or "", place.port or 80
        self.loses: Chosen = nothing
        self.lost: Counter[str] = Counter()
        """Replies that were lost, by `status method path`."""
        self.url = ""

    @contextlib.contextmanager
    def losing(self, chosen: Chosen) -> Iterator[None]:
        self.loses = chosen
        try:
            yield
        finally:
            self.loses = nothing

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                await self._pass_on(reader, writer)
        writer.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"(?im)^content-length:\s*(\d+)", head)
        body = await reader.readexactly(int(length[1])) if length else b""
        method, target, _ = head.split(b"\r\n", 1)[0].decode().split(" ", 2)
        onward, answer = await asyncio.open_connection(self._host, self._port)
        try:
            answer.write(_CONNECTION.sub(b"", head[:-2]) + b"Connection: close\r\n\r\n" + body)
            await answer.drain()
            reply = await onward.read()
        finally:
            answer.close()
        status = re.match(rb"HTTP/1\.\d (\d{3})", reply)
        exchange = Exchange(method, target, body, int(status[1]) if status else 0)
        if self.loses(exchange):
            self.lost[f"{exchange.status} {method} {target.partition('?')[0]}"] += 1
            writer.transport.abort()
            return
        writer.write(reply)
        await writer.drain()


@contextlib.asynccontextmanager
async def proxied(upstream: str) -> AsyncIterator[Proxy]:
    proxy = Proxy(upstream)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{urlsplit(upstream).path}"
    try:
        yield proxy
    finally:
        server.close()
