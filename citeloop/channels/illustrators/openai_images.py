"""Pictures through `POST {base_url}/images/generations`: base64 in the reply, or an address to fetch at once."""

import base64
import binascii
from dataclasses import dataclass

from pydantic import JsonValue

from citeloop.channels.asking import bearer, post_json
from citeloop.channels.fetching import fetched, picture_file
from citeloop.channels.foreign import at, text_at
from citeloop.channels.judging import garbled, judge_event, judged_json, request_id
from citeloop.channels.patience import Patience
from citeloop.channels.pictures import DOWNLOAD_LIMIT
from citeloop.channels.ports import Call, PictureBrief, PictureFile
from citeloop.channels.reply import HttpReply
from citeloop.channels.wire import HttpRequest, Wire
from citeloop.models.channel import ChannelSpec

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
        patience = Patience(call)
        made = await self._wire.exchange(self._request(brief), patience.call(), decode_image, limit=DOWNLOAD_LIMIT)
        data = await fetched(self._checked, made.url, patience.call()) if made.url else made.data
        return await picture_file(self._spec, data, request_id=made.request_id)

    def _request(self, brief: PictureBrief) -> HttpRequest:
        body: dict[str, JsonValue] = {
            "model": self._spec.model,
            "prompt": brief.prompt,
            "n": 1,
            "size": f"{_on_grid(brief.width)}x{_on_grid(brief.height)}",
            **self._spec.extra,
        }
        return post_json(f"{self._spec.base_url}/images/generations", body, bearer(self._key))


def decode_image(reply: HttpReply) -> Made:
    """The first picture of the reply. An error may stand beside an empty `data`, or inside an item."""
    payload = judged_json(reply, DOWNLOAD_LIMIT)
    return picture_in(at(payload, "data", 0), request_id(reply, payload), reply)


def picture_in(item: JsonValue, identity: str, reply: HttpReply) -> Made:
    """The picture of one item, as `b64_json` or `url`. Raises the judgement of an item's own error."""
    if at(item, "error") and (error := judge_event({"error": at(item, "error")}, reply)):
        raise error
    if encoded := text_at(item, "b64_json"):
        try:
            return Made(base64.b64decode(encoded.partition("base64,")[2] or encoded), "", identity)
        except (binascii.Error, ValueError):
            raise garbled(reply, "the picture's base64 is damaged") from None
    if url := text_at(item, "url"):
        return Made(b"", url, identity)
    raise garbled(reply, "the reply holds no picture")


def _on_grid(pixels: int) -> int:
    return max(_GRID, round(pixels / _GRID) * _GRID)
