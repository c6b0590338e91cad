"""Seedream on Volcengine Ark: the images call of OpenAI with fields and failures of its own.

Its reply may be whole or a stream; a refusal is an HTTP 400, an item with an `error`, or an event `partial_failed`
before a `completed` that holds no picture (volcengine-python-sdk b5be43b5, 2026-07-23).
"""

from pydantic import JsonValue

from citeloop.channels.asking import bearer, post_json
from citeloop.channels.fetching import fetched, picture_file
from citeloop.channels.foreign import at, text_at
from citeloop.channels.illustrators.openai_images import Made, decode_image, picture_in
from citeloop.channels.judging import garbled, judge, judge_event, request_id
from citeloop.channels.patience import Patience
from citeloop.channels.pictures import DOWNLOAD_LIMIT
from citeloop.channels.ports import Call, PictureBrief, PictureFile
from citeloop.channels.reply import HttpReply, Shape, read_body
from citeloop.channels.streams import payloads
from citeloop.channels.wire import HttpRequest, Wire
from citeloop.models.channel import ChannelSpec


class ArkSeedream:
    """`extra = { size = "2304x1296" }` chooses another size than the model's own 2K."""

    def __init__(self, spec: ChannelSpec, key: str, wire: Wire, checked: Wire) -> None:
        self._spec = spec
        self._key = key
        self._wire = wire
        self._checked = checked

    async def illustrate(self, brief: PictureBrief, call: Call) -> PictureFile:
        """Raises ChannelError; a blocked prompt or picture is REFUSED."""
        patience = Patience(call)
        made = await self._wire.exchange(self._request(brief), patience.call(), decode_seedream, limit=DOWNLOAD_LIMIT)
        data = await fetched(self._checked, made.url, patience.call()) if made.url else made.data
        return await picture_file(self._spec, data, request_id=made.request_id)

    def _request(self, brief: PictureBrief) -> HttpRequest:
        body: dict[str, JsonValue] = {
            "model": self._spec.model,
            "prompt": brief.prompt,
            "size": "2K",
            "response_format": "b64_json",
            "sequential_image_generation": "disabled",
            "watermark": False,
            **self._spec.extra,
        }
        stream = body.get("stream") is True
        return post_json(f"{self._spec.base_url}/images/generations", body, bearer(self._key), stream=stream)


def decode_seedream(reply: HttpReply) -> Made:
    body = read_body(reply, DOWNLOAD_LIMIT)
    if body.shape is not Shape.EVENTS:
        return decode_image(reply)
    if error := judge(reply, body):
        raise error
    made: Made | None = None
    for payload in payloads(body.raw, reply):
        if text_at(payload, "type").endswith("partial_failed"):
            raise judge_event({"error": at(payload, "error") or "failed"}, reply) or garbled(reply, "no picture")
        if made is None and (at(payload, "b64_json") or at(payload, "url")):
            made = picture_in(payload, request_id(reply), reply)
    if made is None:
        raise garbled(reply, "the stream ended without a picture")
    return made
