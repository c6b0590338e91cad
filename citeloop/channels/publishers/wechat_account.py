"""One WeChat account: its token, shared by all workers, and what its error numbers mean.

The stable token (cgi-bin/stable_token) stays the same in every process until it expires, and fetching it ends nobody
else's, unlike cgi-bin/token. Errors are HTTP 200 with `errcode` (numbers: developers.weixin.qq.com, wechatpy).
"""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeVar
from urllib.parse import quote

from pydantic import JsonValue

from citeloop.channels.delays import BEIJING, next_day
from citeloop.channels.errors import ChannelError, Fault, Remedy
from citeloop.channels.foreign import at, count_at, text_at
from citeloop.channels.judging import fault, garbled, judge
from citeloop.channels.patience import Patience
from citeloop.channels.reply import HttpReply, read_body
from citeloop.channels.wire import HttpRequest, Wire

T = TypeVar("T")

_TOKEN_MARGIN = timedelta(minutes=2)
_TOKEN_REFUSED = frozenset({40001, 40014, 42001})
_NO_SUCH_MEDIA, _BUSY = 40007, -1
_MEANING: dict[int, tuple[Fault, str]] = {
    -1: (Fault.OVERLOADED, "WeChat is busy"),
    40001: (Fault.UNAUTHORIZED, "the token is not valid"),
    40014: (Fault.UNAUTHORIZED, "the token is not valid"),
    42001: (Fault.UNAUTHORIZED, "the token has expired"),
    40013: (Fault.UNAUTHORIZED, "there is no such AppID"),
    40125: (Fault.UNAUTHORIZED, "the AppSecret is wrong"),
    40164: (Fault.UNAUTHORIZED, "this server's address is not on the account's IP whitelist; add it there"),
    40243: (Fault.UNAUTHORIZED, "the AppSecret is frozen; unfreeze it in the console"),
    48001: (Fault.UNAUTHORIZED, "this kind of account lacks the permission"),
    40007: (Fault.INVALID, "there is no such permanent material"),
    44003: (Fault.INVALID, "the article is empty"),
    47001: (Fault.INVALID, "the request has a shape WeChat does not know"),
    45002: (Fault.REFUSED, "the text is too long"),
    45166: (Fault.REFUSED, "the content is refused"),
    53503: (Fault.REFUSED, "the draft failed the check before publishing"),
    53504: (Fault.REFUSED, "the draft failed the check before publishing"),
    53505: (Fault.REFUSED, "the draft failed the check before publishing"),
    45009: (Fault.EXHAUSTED, "today's quota of this API is used up"),
    45011: (Fault.RATE_LIMITED, "too many calls in this minute"),
}


@dataclass(frozen=True, slots=True)
class Upload:
    content_type: str
    body: bytes


class Account:
    def __init__(self, base_url: str, app_id: str, secret: str, wire: Wire, now: Callable[[], datetime]) -> None:
        self._base_url = base_url
        self._app_id = app_id
        self._secret = secret
        self._wire = wire
        self._now = now
        self._token = ""
        self._valid_until = datetime.min.replace(tzinfo=UTC)
        self._lock = asyncio.Lock()

    async def ask(
        self,
        path: str,
        patience: Patience,
        decode: Callable[[HttpReply], T],
        content: dict[str, JsonValue] | None = None,
        *,
        upload: Upload | None = None,
    ) -> T:
        """`path` below cgi-bin. A token that is refused is renewed once, by one of all who found it so."""
        token = await self._current(patience)
        try:
            return await self._wire.exchange(self._request(path, token, content, upload), patience.call(), decode)
        except ChannelError as error:
            if error.remedy is not Remedy.REFRESH_TOKEN:
                raise
        token = await self._current(patience, refused=token)
        return await self._wire.exchange(self._request(path, token, content, upload), patience.call(), decode)

    async def _current(self, patience: Patience, refused: str = "") -> str:
        async with self._lock:
            if not self._token or self._token == refused or self._now() >= self._valid_until:
                wanted = {
                    "grant_type": "client_credential",
                    "appid": self._app_id,
                    "secret": self._secret,
                    "force_refresh": False,
                }
                request = HttpRequest(
                    "POST",
                    f"{self._base_url}/cgi-bin/stable_token",
                    {"Content-Type": "application/json"},
                    json.dumps(wanted).encode(),
                )
                granted = await self._wire.exchange(request, patience.call(), _granted)
                self._token = text_at(granted, "access_token")
                life = timedelta(seconds=count_at(granted, "expires_in"))
                self._valid_until = self._now() + life - _TOKEN_MARGIN
            return self._token

    def _request(
        self, path: str, token: str, content: dict[str, JsonValue] | None, upload: Upload | None
    ) -> HttpRequest:
        url = f"{self._base_url}/cgi-bin/{path}{'&' if '?' in path else '?'}access_token={quote(token)}"
        if upload is not None:
            return HttpRequest("POST", url, {"Content-Type": upload.content_type}, upload.body)
        if content is None:
            return HttpRequest("GET", url)
        body = json.dumps(content, ensure_ascii=False).encode("utf-8", "replace")
        return HttpRequest("POST", url, {"Content-Type": "application/json; charset=utf-8"}, body)


def wechat_json(reply: HttpReply) -> JsonValue:
    """The JSON of a good reply. Raises what its `errcode` means, in words, with WeChat's own after them."""
    body = read_body(reply)
    number = at(body.json, "errcode")
    if isinstance(number, int) and number:
        kind, words = _MEANING.get(number, (Fault.INVALID, "WeChat refuses the call"))
        error = fault(kind, reply, f"errcode {number}: {words} ({text_at(body.json, 'errmsg')[:120]})")
        if number != _BUSY:
            error.status = None  # refused in so many words: certainly nothing was made, although HTTP said 200
        if number in _TOKEN_REFUSED:
            error.remedy = Remedy.REFRESH_TOKEN
        elif number == _NO_SUCH_MEDIA:
            error.change = "reupload_cover"
        elif kind is Fault.EXHAUSTED:
            due = next_day(reply.received_at, BEIJING)
            error.delay, error.until = due.delay, due.named
        raise error
    if complaint := judge(reply, body):
        raise complaint
    if not isinstance(body.json, dict):
        raise garbled(reply, f"expected JSON and got {body.shape}: {body.text[:120]}")
    return body.json


def _granted(reply: HttpReply) -> JsonValue:
    granted = wechat_json(reply)
    if not text_at(granted, "access_token"):
        raise garbled(reply, "WeChat granted no token")
    return granted
