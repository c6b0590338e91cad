"""An ASGI application on a loopback port, and what all recorded-shape servers need."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from email.parser import BytesParser
from typing import Any

import uvicorn
from starlette.requests import Request
from starlette.types import ASGIApp


@contextlib.asynccontextmanager
async def serve(app: ASGIApp) -> AsyncIterator[str]:
    """Its address, while it runs in this loop."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
        running = asyncio.create_task(server.serve(sockets=[listening]))
        while not server.started:
            await asyncio.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            await running


@dataclass(frozen=True)
class Part:
    name: str
    filename: str
    media_type: str
    data: bytes


async def parts(request: Request) -> dict[str, Part]:
    """The parts of a multipart body by name."""
    head = f"Content-Type: {request.headers['content-type']}\r\n\r\n".encode()
    message = BytesParser().parsebytes(head + await request.body())
    assert message.is_multipart()
    found = {}
    for part in message.get_payload():
        assert not isinstance(part, str)
        name = str(part.get_param("name", header="content-disposition"))
        data = part.get_payload(decode=True)
        assert isinstance(data, bytes)
        found[name] = Part(name, part.get_filename() or "", part.get_content_type(), data)
    return found


async def fields(request: Request) -> dict[str, Any]:
    body: dict[str, Any] = await request.json()
    return body
