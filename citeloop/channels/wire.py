"""The one place where bytes leave and arrive: timeouts kept exactly, nothing retried, no redirect followed."""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeVar
from urllib.parse import quote

import httpx
from opentelemetry import trace

from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.ports import Call
from citeloop.channels.reply import BODY_LIMIT, HttpReply
from citeloop.channels.scrubbing import mask, scrub
from citeloop.models.plan import CallPolicy

T = TypeVar("T")

CHECKED = "citeloop.checked"
"""The httpx extension by which a request asks for the guarded transport (addresses.py)."""
POOL = "citeloop.pool"
"""The httpx extension that names whose connections a request uses."""
_DONE = re.compile(rb"^data:\s*\[DONE\]\s*$", re.MULTILINE)
_DONE_LENGTH = 64
_AFTER_DONE = 0.5
"""Seconds for the connection to end after `[DONE]`; some servers never end it."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


class Wire:
    """Performs requests for one channel or site.

    secrets: masked in every message. checked: the address was given by a user and must be public.
    pool: whose connections are used; sites share one.
    """

    def __init__(
        self,
        http: httpx.AsyncClient,
        channel: str,
        *,
        secrets: tuple[str, ...] = (),
        checked: bool = False,
        pool: str = "",
        tracer: trace.Tracer | None = None,
    ) -> None:
        self._http = http
        self._channel = channel
        self._secrets = secrets
        self._extensions = {CHECKED: checked, POOL: pool}
        self._tracer = tracer or trace.get_tracer("citeloop.channels")

    async def exchange(
        self, request: HttpRequest, call: Call, decode: Callable[[HttpReply], T], *, limit: int = BODY_LIMIT
    ) -> T:
        """Send, read, decode: one client span. Raises only ChannelError, its message free of secrets.

        A reply that never came has `sent` set if any of the request had left.
        """
        with self._tracer.start_as_current_span(
            f"HTTP {request.method}",
            kind=trace.SpanKind.CLIENT,
            attributes=self._attributes(request),
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                reply = await _Conversation(call.policy, limit).hold(self._http, self._built(request, call))
                span.set_attribute("http.response.status_code", reply.status)
                return decode(reply)
            except ChannelError as error:
                error.message = scrub(error.message, self._secrets)
                error.request_id = mask(error.request_id, self._secrets)
                error.args = (error.message,)
                span.set_attribute("error.type", error.fault)
                span.set_status(trace.StatusCode.ERROR, error.message)
                span.add_event("exception", {"exception.type": error.fault, "exception.message": error.message})
                raise
            except asyncio.CancelledError:
                span.set_attribute("error.type", "cancelled")
                span.set_status(trace.StatusCode.ERROR, "cancelled")
                raise

    def _built(self, request: HttpRequest, call: Call) -> httpx.Request:
        headers = {
            "Accept-Encoding": "identity",
            "User-Agent": "citeloop",
            **request.headers,
            "X-Client-Request-Id": quote(call.purchase_id, safe="/:-_.~"),
        }
        try:
            return self._http.build_request(
                request.method,
                request.url,
                headers=headers,
                content=request.body or None,
                timeout=None,
                extensions=dict(self._extensions),
            )
        except (UnicodeError, httpx.InvalidURL, ValueError):
            raise ChannelError(
                Fault.INVALID, "the address or a header holds characters that HTTP cannot carry"
            ) from None

    def _attributes(self, request: HttpRequest) -> dict[str, str | int]:
        attributes: dict[str, str | int] = {
            "http.request.method": request.method,
            "citeloop.channel": self._channel,
        }
        try:
            url = httpx.URL(request.url)
        except httpx.InvalidURL:
            return attributes
        return attributes | {
            "server.address": url.host,
            "server.port": url.port or (443 if url.scheme == "https" else 80),
            "url.path": url.path,
        }


class _Conversation:
    """One request and its reply, with the clocks of the policy.

    `connect` runs until the connection stands; then `first_byte` until content arrives, begun anew by every
    comment or blank line (the provider's sign that the call waits in its queue); then `between_chunks` from
    chunk to chunk; `total` over all of it.
    """

    def __init__(self, policy: CallPolicy, limit: int) -> None:
        self._policy = policy
        self._limit = limit
        self._silence = asyncio.timeout(None)
        self._phase = "connect"
        self._sent = False
        self._done = False
        self._reply: HttpReply | None = None

    async def hold(self, http: httpx.AsyncClient, request: httpx.Request) -> HttpReply:
        request.extensions["trace"] = self._on_event
        try:
            async with asyncio.timeout(self._policy.total.total_seconds()), self._silence:
                await self._talk(http, request)
        except TimeoutError:
            if not self._done:
                raise self._timed_out() from None
        except httpx.HTTPError as error:
            raise self._failed(error, request) from None
        except (httpx.InvalidURL, UnicodeError) as error:
            raise ChannelError(Fault.INVALID, f"the address cannot be used: {error}") from None
        except (httpx.StreamError, OSError) as error:
            raise self._lost(str(error)) from None
        assert self._reply is not None
        return self._reply

    async def _talk(self, http: httpx.AsyncClient, request: httpx.Request) -> None:
        response = await http.send(request, stream=True, follow_redirects=False)
        self._sent = True
        try:
            await self._read(response)
        finally:
            await response.aclose()

    async def _read(self, response: httpx.Response) -> None:
        headers = {name.lower(): value for name, value in response.headers.items()}
        body = bytearray()
        content = False
        self._wait("first_byte")
        async for chunk in _chunks(response):
            body += chunk
            if len(body) > self._limit:
                raise ChannelError(
                    Fault.GARBLED, f"the reply is larger than {self._limit} bytes", status=response.status_code
                )
            content = content or _has_content(body)
            self._wait("between_chunks" if content else "first_byte")
            if _DONE.search(body, max(0, len(body) - len(chunk) - _DONE_LENGTH)):
                self._done = True
                self._keep(response, headers, body)
                self._expect(_AFTER_DONE)
        self._keep(response, headers, body)

    def _keep(self, response: httpx.Response, headers: dict[str, str], body: bytearray) -> None:
        self._reply = HttpReply(response.status_code, headers, bytes(body), datetime.now(UTC))

    async def _on_event(self, name: str, _info: object) -> None:
        """httpcore's trace: the only place that tells connecting from sending from waiting."""
        if name == "connection.connect_tcp.started":
            self._wait("connect")
        elif name.endswith(("send_request_headers.started", "send_request_body.complete")):
            self._sent = True
            self._wait("first_byte")

    def _wait(self, phase: str) -> None:
        self._phase = phase
        patience = {
            "connect": self._policy.connect,
            "first_byte": self._policy.first_byte,
            "between_chunks": self._policy.between_chunks,
        }[phase]
        self._expect(patience.total_seconds())

    def _expect(self, seconds: float) -> None:
        if not self._silence.expired():
            self._silence.reschedule(asyncio.get_running_loop().time() + seconds)

    def _timed_out(self) -> ChannelError:
        if not self._silence.expired():
            seconds = self._policy.total.total_seconds()
            return ChannelError(Fault.TIMED_OUT, f"not finished after {seconds:g} s (total)", sent=self._sent)
        if self._phase == "connect":
            seconds = self._policy.connect.total_seconds()
            return ChannelError(Fault.UNAVAILABLE, f"no connection within {seconds:g} s", sent=self._sent)
        patience = self._policy.first_byte if self._phase == "first_byte" else self._policy.between_chunks
        return ChannelError(
            Fault.TIMED_OUT, f"silent for {patience.total_seconds():g} s ({self._phase})", sent=self._sent
        )

    def _failed(self, error: httpx.HTTPError, request: httpx.Request) -> ChannelError:
        if isinstance(error, (httpx.UnsupportedProtocol, httpx.LocalProtocolError)):
            return ChannelError(Fault.INVALID, f"the request cannot be sent: {error}")
        if isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)):
            place = f"{request.url.host}:{request.url.port or request.url.scheme}"
            return ChannelError(Fault.UNAVAILABLE, f"cannot reach {place}: {_reason(error)}")
        if isinstance(error, httpx.TimeoutException):
            return ChannelError(Fault.TIMED_OUT, "timed out", sent=True)
        return self._lost(str(error))

    def _lost(self, reason: str) -> ChannelError:
        return ChannelError(Fault.UNAVAILABLE, f"the connection was lost: {reason or 'reset'}", sent=True)


def _reason(error: BaseException) -> str:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not valid: {cause.verify_message}"
        if isinstance(cause, ConnectionRefusedError):
            return "connection refused"
        cause = cause.__cause__ or cause.__context__
    return str(error) or type(error).__name__


async def _chunks(response: httpx.Response) -> AsyncIterator[bytes]:
    """The body as it comes. A fake transport's reply may be read already."""
    if response.is_stream_consumed:
        yield response.content
        return
    async for chunk in response.aiter_raw():
        yield chunk


def _has_content(body: bytearray) -> bool:
    """Whether anything but blank lines and SSE comments has come."""
    return any(line.strip() and not line.startswith(b":") for line in bytes(body).splitlines())
