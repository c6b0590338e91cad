"""A rate-limited HTTP service: who may call, how often, and what goes wrong; the answer comes from a model."""

import hashlib
import json
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Scope, Send

from sandbox.config import ServiceSettings
from sandbox.desk import Desk
from sandbox.dialects import CLOUDFLARE_PAGE, Dialect, Fault, dialect_of
from sandbox.ledger import ServiceEntry
from sandbox.limits import Gate, Limited
from sandbox.luck import Draw
from sandbox.speech import Envelope, Reply, Speaker
from sandbox.wire import Gone, Voice, to_json, wire_of

_JSON_HEADERS = {"content-type": "application/json"}


class Message(BaseModel):
    role: str
    content: str | list[dict[str, Any]] | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return "\n".join(str(part.get("text", "")) for part in self.content)
        return self.content or ""


class Ask(BaseModel):
    """A chat request. Fields the sandbox has no use for are accepted, as the real services do."""

    model_config = ConfigDict(extra="ignore")

    model: str
    messages: list[Message] = Field(min_length=1)
    stream: bool = False
    max_tokens: int | None = None
    max_completion_tokens: int | None = None

    @property
    def limit(self) -> int | None:
        return self.max_completion_tokens or self.max_tokens

    @property
    def text(self) -> str:
        return "\n".join(message.text for message in self.messages)

    @property
    def question(self) -> str:
        return next((m.text for m in reversed(self.messages) if m.role == "user"), self.messages[-1].text)


@dataclass(frozen=True)
class Answered:
    """What a model made of an ask. `fault` names an answer that is none, such as `not_searched`."""

    reply: Reply
    fault: str = ""


Model = Callable[[Ask, Draw, ServiceSettings], Awaitable[Answered]]


class Service:
    """The door of one service: key, money, limits and the ledger, before and after the work itself."""

    def __init__(self, name: str, desk: Desk) -> None:
        self.name = name
        self.desk = desk
        self.dialect: Dialect = dialect_of(name)
        self.gate = Gate()
        self.limit_next: float | None = None
        """Seconds that the next call is told to wait, whatever the bucket holds; set by `/_limit`."""

    @property
    def settings(self) -> ServiceSettings:
        return self.desk.service(self.name)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        voice = Voice(wire_of(scope), send)
        try:
            body = await request.body()
        except ClientDisconnect:
            return
        settings = self.settings
        entry = self.desk.ledger.arrived(self.name)
        purchase_id = request.headers.get("x-client-request-id", "")
        call = self.desk.ledger.begun(self.name, purchase_id)
        try:
            if settings.key and request.headers.get("authorization") != f"Bearer {settings.key}":
                entry.unauthorized += 1
                await self._fail(voice, self.dialect.unauthorized)
                return
            if settings.exhausted:
                entry.faults["exhausted"] += 1
                await self._fail(voice, self.dialect.exhausted)
                return
            if self.limit_next is not None:
                call.limited = True
                await self._limit_once(voice)
                return
            limit = self.gate.enter(settings)
            if limit is not None:
                call.limited = True
                await self._limit(voice, limit, settings)
                return
            try:
                entry.inside += 1
                entry.max_concurrent = max(entry.max_concurrent, entry.inside)
                await self._serve(body, purchase_id, voice, entry)
            finally:
                entry.inside -= 1
                self.gate.leave()
        except Gone:
            entry.abandoned += not voice.wire.severed
        finally:
            call.ended = time.time()

    async def _serve(self, body: bytes, purchase_id: str, voice: Voice, entry: ServiceEntry) -> None:
        raise NotImplementedError  # each kind of provider answers in its own way

    async def _limit(self, voice: Voice, limit: Limited, settings: ServiceSettings) -> None:
        by_bucket = limit is Limited.RATE
        self.desk.ledger.limited(self.name, by_bucket=by_bucket)
        seconds = self.gate.retry_after(settings) if by_bucket else 1
        fault = self.dialect.limited if by_bucket else self.dialect.crowded
        await self._fail(voice, fault, {"retry-after": str(seconds)})

    async def _limit_once(self, voice: Voice) -> None:
        seconds, self.limit_next = self.limit_next or 0.0, None
        self.desk.ledger.limited(self.name, by_bucket=False)
        await self._fail(voice, self.dialect.limited, {"retry-after": str(math.ceil(seconds))})

    async def _fail(self, voice: Voice, fault: Fault, headers: dict[str, str] | None = None) -> None:
        await voice.say(fault.status, {**_JSON_HEADERS, **(headers or {})}, to_json(fault.body))

    async def _break(self, kind: str, voice: Voice, settings: ServiceSettings, wait: float) -> bool:
        """Whether the fault was one that replaces the answer altogether."""
        if kind not in {"http_500", "http_503", "html", "hang"}:
            return False
        await voice.wire.sleep(settings.hang_seconds if kind == "hang" else wait)
        match kind:
            case "hang":
                await voice.wire.cut()
            case "html":
                await voice.say(502, {"content-type": "text/html; charset=UTF-8"}, CLOUDFLARE_PAGE.encode())
            case "http_500":
                await self._fail(voice, self.dialect.http_500)
            case _:
                await self._fail(voice, self.dialect.http_503)
        return True


class Chat(Service):
    """`POST …/chat/completions` of a writer or an answer engine."""

    def __init__(self, name: str, desk: Desk, model: Model) -> None:
        super().__init__(name, desk)
        self._model = model

    async def _serve(self, body: bytes, purchase_id: str, voice: Voice, entry: ServiceEntry) -> None:
        settings = self.settings
        try:
            ask = Ask.model_validate_json(body)
        except ValidationError as error:
            entry.invalid += 1
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "body"
            await self._fail(voice, self.dialect.invalid(f"{where}: {first['msg']}"))
            return
        if _refused(ask.text, settings.refuse):
            entry.faults["refused"] += 1
            entry.refused.append(_keyword(ask.question))
            await self._fail(voice, self.dialect.refused)
            return
        draw = self.desk.luck.draw(self.name, json.dumps([m.text for m in ask.messages]))
        kind = draw.one_of("fault", settings.fault_rates())
        if kind:
            entry.faults[kind] += 1
        speaker = Speaker(settings, self.dialect, draw, voice)
        if await self._break(kind, voice, settings, speaker.patience):
            return
        answered = await self._model(ask, draw, settings)
        if answered.fault:
            entry.faults[answered.fault] += 1
        reply = answered.reply.at_most(ask.limit)
        if kind == "truncated":
            reply = reply.truncated()
        elif kind == "empty":
            reply = reply.emptied()
        request_id = hashlib.sha256(f"{self.name}\x1f{len(entry.times)}\x1f{purchase_id}".encode()).hexdigest()
        envelope = Envelope(model=self.dialect.model, request_id=request_id[:24])
        say = speaker.stream if ask.stream else speaker.whole
        await say(reply, envelope, broken=kind == "reset")
        if voice.wire.gone.is_set():
            raise Gone
        if not kind and reply.finish_reason == "stop":
            self.desk.ledger.paid(self.name, purchase_id)


class Models:
    """`GET …/models`: free of charge and of limits, but the key is checked."""

    def __init__(self, name: str, desk: Desk) -> None:
        self._name = name
        self._desk = desk
        self._dialect = dialect_of(name)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        voice = Voice(wire_of(scope), send)
        settings = self._desk.service(self._name)
        body: object = {
            "object": "list",
            "data": [{"id": self._dialect.model, "object": "model", "owned_by": self._name}],
        }
        status = 200
        if settings.key and request.headers.get("authorization") != f"Bearer {settings.key}":
            status, body = self._dialect.unauthorized.status, self._dialect.unauthorized.body
        try:
            await voice.say(status, _JSON_HEADERS, to_json(body))
        except Gone:
            return


def _refused(text: str, words: tuple[str, ...]) -> bool:
    folded = text.casefold()
    return any(word.casefold() in folded for word in words)


def _keyword(prompt: str) -> str:
    """The keyword of a writing prompt, else the prompt's beginning: to tie a parked article to its fault."""
    _, opening, rest = prompt.partition("<keyword>")
    return rest.partition("</keyword>")[0].strip() if opening else prompt[:80]
