"""Pictures through `POST {base_url}/images/generations`: base64 in the reply, or an address to fetch at once."""

import asyncio
import base64
import binascii
import json
from dataclasses import dataclass

from pydantic import JsonValue

from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.foreign import at, text_at
from citeloop.channels.judging import fault, garbled, judge, judge_event, judged_json, request_id
from citeloop.channels.pictures import DOWNLOAD_LIMIT, clean_picture
from citeloop.channels.ports import Call, PictureBrief, PictureFile
from citeloop.channels.reply import HttpReply, read_body
from citeloop.channels.wire import HttpRequest, Wire
from citeloop.models.channel import ChannelSpec
from citeloop.models.money import Money

_GRID = 16
"""gpt-image-2 takes sizes in multiples of 16 (openai-python, 2026-08)."""


@dataclass(frozen=True, slots=True)
class Made:
    """Either the picture's bytes or where they are."""

    data: bytes
    url: str
    request_id: str


class OpenAIImages:
    def __init__(self, spec: ChannelSpec, key: str, wire: Wire, checked: Wire) -> None:
        self._spec = spec
        self._key = key
        self._wire = wire
        self._checked = checked

    async def illustrate(self, brief: PictureBrief, call: Call) -> PictureFile:
        """Raises ChannelError; a blocked prompt is REFUSED, and the article goes on without a picture."""
        made = await self._wire.exchange(self._request(brief), call, decode_image, limit=DOWNLOAD_LIMIT)
        data = made.data
        if made.url:
            fetch = HttpRequest("GET", made.url, {"Accept": "image/*"})
            data = await self._checked.exchange(fetch, call, _downloaded, limit=DOWNLOAD_LIMIT)
        picture = await asyncio.to_thread(clean_picture, data)
        return PictureFile(
            data=picture.data,
            media_type=picture.media_type,
            width=picture.width,
            height=picture.height,
            request_id=made.request_id,
            cost=Money(micros=self._spec.price.call, currency=self._spec.price.currency),
        )

    def _request(self, brief: PictureBrief) -> HttpRequest:
        body: dict[str, JsonValue] = {
            "model": self._spec.model,
            "prompt": brief.prompt,
            "n": 1,
            "size": f"{_on_grid(brief.width)}x{_on_grid(brief.height)}",
            **self._spec.extra,
        }
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        return HttpRequest("POST", f"{self._spec.base_url}/images/generations", headers, content)


def decode_image(reply: HttpReply) -> Made:
    """The first picture of the reply. An error may stand beside an empty `data`, or inside an item."""
    payload = judged_json(reply, DOWNLOAD_LIMIT)
    item = at(payload, "data", 0)
    if at(item, "error") and (error := judge_event({"error": at(item, "error")}, reply)):
        raise error
    identity = request_id(reply, payload)
    if encoded := text_at(item, "b64_json"):
        try:
            return Made(base64.b64decode(encoded.partition("base64,")[2] or encoded), "", identity)
        except (binascii.Error, ValueError):
            raise garbled(reply, "the picture's base64 is damaged") from None
    if url := text_at(item, "url"):
        return Made(b"", url, identity)
    raise garbled(reply, "the reply holds no picture")


def _downloaded(reply: HttpReply) -> bytes:
    if not reply.ok:
        raise judge(reply, read_body(reply)) or fault(Fault.UNAVAILABLE, reply, "the picture is gone")
    if not reply.body:
        raise ChannelError(Fault.GARBLED, "the picture's address answered with nothing", status=reply.status)
    return reply.body


def _on_grid(pixels: int) -> int:
    return max(_GRID, round(pixels / _GRID) * _GRID)
