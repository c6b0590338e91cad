"""IndexNow: telling search engines which pages are new or changed (indexnow.org, yandex.com/support/webmaster).

One ping reaches all engines that take part. The key is no secret: it stands at `/<key>.txt` of the site.
"""

import json
import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from citeloop.channels.delays import header_delay
from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.judging import fault, judge
from citeloop.channels.ports import Call
from citeloop.channels.reply import HttpReply, read_body
from citeloop.channels.wire import HttpRequest, Wire
from citeloop.models.record import Record

ENDPOINT = "https://api.indexnow.org"
KEY = re.compile(r"[A-Za-z0-9-]{8,128}")
MOST = 10_000
"""Addresses in one ping."""
_TAKEN, _PENDING = 200, 202
_REFUSED = {
    400: "the request has a shape it does not know",
    403: "the key is not valid: the site must answer {place} with the key and nothing else",
    405: "this address takes no pings",
    422: "the addresses are not those of this host, or the key does not fit them",
}
_TOO_MANY = 429


class Pinged(Record):
    """Taken. `note` says what is still open."""

    note: str = ""


class IndexNow:
    def __init__(self, base_url: str, key: str, wire: Wire, endpoint: str = ENDPOINT) -> None:
        """`base_url`: the site's public address."""
        self._base_url = base_url
        self._key = key
        self._wire = wire
        self._endpoint = endpoint

    @property
    def key_file(self) -> str:
        """The address that must answer with the key."""
        return f"{self._base_url}/{self._key}.txt"

    async def ping(self, urls: Sequence[str], call: Call) -> Pinged:
        """Raises INVALID for what would be refused again, RATE_LIMITED with the delay asked for."""
        host = urlsplit(self._base_url).netloc
        if not KEY.fullmatch(self._key):
            raise ChannelError(Fault.INVALID, "indexnow_key must be 8 to 128 letters, digits and hyphens")
        strangers = [url for url in urls if urlsplit(url).netloc != host]
        if strangers or not 0 < len(urls) <= MOST:
            problem = f"{strangers[0]} is not an address of {host}" if strangers else f"1 to {MOST} addresses at once"
            raise ChannelError(Fault.INVALID, f"IndexNow: {problem}")
        told = {"host": host, "key": self._key, "keyLocation": self.key_file, "urlList": list(urls)}
        headers = {"Content-Type": "application/json; charset=utf-8"}
        request = HttpRequest("POST", f"{self._endpoint}/indexnow", headers, json.dumps(told).encode())
        return await self._wire.exchange(request, call, lambda reply: decode_ping(reply, self.key_file))


def decode_ping(reply: HttpReply, place: str) -> Pinged:
    if reply.status == _TAKEN:
        return Pinged()
    if reply.status == _PENDING:
        return Pinged(note=f"taken; the key at {place} is still to be checked: repeat the ping later if it stays so")
    if reply.status in _REFUSED:
        raise fault(
            Fault.INVALID, reply, f"IndexNow, HTTP {reply.status}: {_REFUSED[reply.status].format(place=place)}"
        )
    if reply.status == _TOO_MANY:
        error = fault(Fault.RATE_LIMITED, reply, "IndexNow, HTTP 429: too many pings")
        error.delay = header_delay(reply.headers, reply.received_at)
        raise error
    raise judge(reply, read_body(reply)) or fault(Fault.UNAVAILABLE, reply, f"IndexNow, HTTP {reply.status}")
