"""WordPress's REST API as it answers on real hosting: plain permalinks, PHP notices, firewalls, lost headers."""

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar
from urllib.parse import urlencode

from pydantic import JsonValue

from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.foreign import at, count_at, items_at, text_at
from citeloop.channels.judging import fault, garbled, judge
from citeloop.channels.patience import Patience
from citeloop.channels.reply import Body, HttpReply, Shape, parse_json, read_body
from citeloop.channels.wire import HttpRequest, Wire

T = TypeVar("T")

_JSON_START = re.compile(r'\{\s*"|\[\s*[{\]]')
_NOTICES = 20_000
"""Characters in which the JSON must begin."""
_NOT_FOUND, _FORBIDDEN, _UNAUTHORIZED = 404, 403, 401
_ENVELOPE = frozenset({"body", "status", "headers"})
_WRONG_LOGIN = frozenset({"incorrect_password", "invalid_username", "invalid_email"})
_STRIPPED = (
    "the site did not see the login: check user and application password; if they are right, its server strips "
    'the Authorization header (Apache: SetEnvIf Authorization "(.*)" HTTP_AUTHORIZATION=$1; '
    "nginx: fastcgi_pass_header Authorization)"
)
_WRONG = "the site knows the login and refuses it: check user and application password"
_FIREWALL = "a firewall before the site refused the request with an HTML page; allow /wp-json/ for this server"
_NO_REST = "the site has no REST API at this address; check base_url"


@dataclass(frozen=True, slots=True)
class Ask:
    method: str
    route: str
    query: Mapping[str, str]
    body: bytes = b""
    headers: Mapping[str, str] | None = None


class Rest:
    """One site's API. It learns once whether the site has plain permalinks."""

    def __init__(self, base_url: str, user: str, password: str, wire: Wire) -> None:
        self._base_url = base_url
        self._login = base64.b64encode(f"{user}:{password}".encode()).decode()
        self._wire = wire
        self.plain_permalinks = False

    async def ask(self, ask: Ask, patience: Patience, decode: Callable[[HttpReply], T]) -> T:
        try:
            return await self._wire.exchange(self._request(ask), patience.call(), decode)
        except ChannelError as error:
            if error.change != "use_rest_route_query" or self.plain_permalinks:
                raise
        self.plain_permalinks = True
        try:
            return await self._wire.exchange(self._request(ask), patience.call(), decode)
        except ChannelError:
            self.plain_permalinks = False
            raise

    def _request(self, ask: Ask) -> HttpRequest:
        if self.plain_permalinks:
            url = f"{self._base_url}/?{urlencode({'rest_route': ask.route, **ask.query})}"
        else:
            query = f"?{urlencode(ask.query)}" if ask.query else ""
            url = f"{self._base_url}/wp-json{ask.route}{query}"
        headers = {
            "Authorization": f"Basic {self._login}",
            "Accept": "application/json",
            **(ask.headers or {}),
        }
        return HttpRequest(ask.method, url, headers, ask.body)


def wordpress_json(reply: HttpReply) -> JsonValue:
    """The JSON of a good reply, PHP notices before it forgiven. Raises ChannelError with hosting faults in words."""
    reply, body = _opened(reply, _without_notices(read_body(reply)))
    if reply.status == _NOT_FOUND and body.shape is not Shape.JSON:
        raise fault(Fault.INVALID, reply, f"HTTP 404: {_NO_REST}", change="use_rest_route_query")
    if reply.status == _FORBIDDEN and body.shape is not Shape.JSON:
        raise fault(Fault.INVALID, reply, f"HTTP 403: {_FIREWALL}")
    if error := judge(reply, body):
        code = text_at(body.json, "code")
        if reply.status == _UNAUTHORIZED:
            words = _WRONG if code in _WRONG_LOGIN else _STRIPPED
            raise fault(Fault.UNAUTHORIZED, reply, f"HTTP 401 {code}: {words}")
        if code == "rest_invalid_featured_media":
            error.change = "drop_featured_media"
        if code == "rest_upload_sideload_error":
            error.fault = Fault.INVALID  # although it is a 500: the site takes no such file
        raise error
    if body.shape is not Shape.JSON:
        raise garbled(reply, f"expected JSON and got {body.shape}: {body.text[:120]}")
    return body.json


def created(reply: HttpReply) -> JsonValue:
    value = wordpress_json(reply)
    if not isinstance(value, dict) or not text_at(value, "id"):
        # A POST that a redirect on the way turned into a GET answers 200 with a list.
        raise garbled(reply, "the site did not say what it created")
    return value


def listed(reply: HttpReply) -> list[JsonValue]:
    value = wordpress_json(reply)
    if not isinstance(value, list):
        raise garbled(reply, "expected a list")
    return list(items_at(value))


def found(reply: HttpReply) -> JsonValue:
    """The one thing asked for by its id, None where it does not exist."""
    if reply.status == _NOT_FOUND and text_at(read_body(reply).json, "code").endswith("_invalid_id"):
        return None
    return wordpress_json(reply)


def term(reply: HttpReply) -> int:
    """The id of a tag or category, made now or there already."""
    answer = _without_notices(read_body(reply)).json
    if text_at(answer, "code") == "term_exists":
        return count_at(answer, "data", "term_id")
    return identity(created(reply))


def identity(item: JsonValue) -> int:
    found = at(item, "id")
    return found if isinstance(found, int) else 0


def _opened(reply: HttpReply, body: Body) -> tuple[HttpReply, Body]:
    """With `_envelope` the status is always 200 and the true one stands inside."""
    if not isinstance(body.json, dict) or set(body.json) != _ENVELOPE:
        return reply, body
    inner = HttpReply(count_at(body.json, "status") or reply.status, reply.headers, reply.body, reply.received_at)
    return inner, Body(Shape.JSON, body.raw, at(body.json, "body"))


def _without_notices(body: Body) -> Body:
    if body.shape not in {Shape.HTML, Shape.TEXT}:
        return body
    text = body.text
    for start in islice(_JSON_START.finditer(text, 0, _NOTICES), 5):
        try:
            value = parse_json(text[start.start() :])
        except ValueError:
            continue
        return Body(Shape.JSON, body.raw, value)
    return body
