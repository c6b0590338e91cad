"""A provider that gives prepared replies in order, and remembers what it was asked."""

import json
from collections.abc import Callable
from typing import Any, Self

import httpx

from citeloop.channels.wire import Wire
from citeloop.models.channel import ChannelSpec
from tests.channels.settings import KEY

Answer = httpx.Response | Callable[[httpx.Request], httpx.Response]
EVENTS = {"content-type": "text/event-stream"}


class Provider:
    """Use as an async context manager; its last reply is repeated. `wire` is the door to it."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self._http = httpx.AsyncClient(transport=httpx.MockTransport(self._answer))
        self.requests: list[httpx.Request] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    def wire(self, channel: ChannelSpec) -> Wire:
        return Wire(self._http, channel.name, secrets=(KEY,))

    def body(self, place: int = 0) -> dict[str, Any]:
        sent = json.loads(self.requests[place].content)
        assert isinstance(sent, dict)
        return sent

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return answer(request) if callable(answer) else answer


def stream(*payloads: object) -> httpx.Response:
    """Server-sent events, with the names that Anthropic and Responses give them."""
    parts = []
    for payload in payloads:
        name = payload.get("type") if isinstance(payload, dict) else None
        parts.append((f"event: {name}\n" if name else "") + f"data: {json.dumps(payload, ensure_ascii=False)}\n\n")
    return httpx.Response(200, headers=EVENTS, content="".join(parts).encode())
