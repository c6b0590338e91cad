"""A TCP server that says exactly the bytes it is told, when it is told to."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

Behaviour = Callable[["Peer"], Awaitable[None]]


@dataclass
class Peer:
    """One accepted connection, after its request was read."""

    head: str
    body: bytes
    writer: asyncio.StreamWriter
    closed: asyncio.Event

    async def say(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def start_stream(self, content_type: str = "text/event-stream") -> None:
        """Headers of a reply that ends with the connection."""
        await self.say(f"HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\nconnection: close\r\n\r\n".encode())

    async def reply(self, status: int, body: bytes, **headers: str) -> None:
        lines = [f"HTTP/1.1 {status} X", f"content-length: {len(body)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        await self.say("\r\n".join([*lines, "", ""]).encode() + body)


@dataclass
class RawServer:
    behaviour: Behaviour
    peers: list[Peer] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            peer = Peer(head, await reader.readexactly(_content_length(head)), writer, asyncio.Event())
            self.peers.append(peer)
            watch = asyncio.create_task(_watch(reader, peer))
            try:
                await self.behaviour(peer)
            finally:
                writer.close()
                await watch


def _content_length(head: str) -> int:
    lengths = [line.partition(":")[2] for line in head.lower().split("\r\n") if line.startswith("content-length:")]
    return int(lengths[0]) if lengths else 0


async def _watch(reader: asyncio.StreamReader, peer: Peer) -> None:
    with contextlib.suppress(ConnectionError):
        while await reader.read(1024):
            pass
    peer.closed.set()


@contextlib.asynccontextmanager
async def raw_server(behaviour: Behaviour, host: str = "127.0.0.1") -> AsyncIterator[RawServer]:
    server = RawServer(behaviour)
    listening = await asyncio.start_server(server._serve, host, 0)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
