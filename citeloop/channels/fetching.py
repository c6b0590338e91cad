"""A picture at an address that a provider named: fetched through the checked door, decoded, written anew."""

import asyncio
from datetime import UTC, datetime

from citeloop.channels.costs import picture_cost
from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.judging import fault, judge
from citeloop.channels.pictures import DOWNLOAD_LIMIT, clean_picture
from citeloop.channels.ports import Call, PictureFile
from citeloop.channels.reply import HttpReply, read_body
from citeloop.channels.wire import HttpRequest, Wire
from citeloop.models.channel import ChannelSpec


async def fetched(checked: Wire, url: str, call: Call) -> bytes:
    """Without any key: the address is not the provider's API. Signed addresses live for hours, so at once."""
    request = HttpRequest("GET", url, {"Accept": "image/*"})
    return await checked.exchange(request, call, _downloaded, limit=DOWNLOAD_LIMIT)


async def picture_file(spec: ChannelSpec, data: bytes, *, request_id: str = "", credit: str = "") -> PictureFile:
    """Raises ChannelError GARBLED for what is no picture."""
    picture = await asyncio.to_thread(clean_picture, data)
    return PictureFile(
        data=picture.data,
        media_type=picture.media_type,
        width=picture.width,
        height=picture.height,
        credit=credit,
        request_id=request_id,
        cost=picture_cost(spec, datetime.now(UTC).date()),
    )


def _downloaded(reply: HttpReply) -> bytes:
    if not reply.ok:
        raise judge(reply, read_body(reply)) or fault(Fault.UNAVAILABLE, reply, "the picture is gone")
    if not reply.body:
        raise ChannelError(Fault.GARBLED, "the picture's address answered with nothing", status=reply.status)
    return reply.body
