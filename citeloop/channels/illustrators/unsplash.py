"""A photograph from Unsplash: searched by the article's title, credited, and its use reported as Unsplash asks."""

from urllib.parse import urlencode, urlsplit

from citeloop.channels.asking import get_json
from citeloop.channels.errors import ChannelError
from citeloop.channels.fetching import fetched, picture_file
from citeloop.channels.patience import Patience
from citeloop.channels.ports import Call, PictureBrief, PictureFile
from citeloop.channels.stock import Photo, decode_unsplash, first_photo
from citeloop.channels.wire import HttpRequest, Wire
from citeloop.models.channel import ChannelSpec


class Unsplash:
    def __init__(self, spec: ChannelSpec, key: str, wire: Wire, checked: Wire) -> None:
        self._spec = spec
        self._key = key
        self._wire = wire
        self._checked = checked

    async def illustrate(self, brief: PictureBrief, call: Call) -> PictureFile:
        """Raises ChannelError, INVALID when no photograph was found."""
        patience = Patience(call)
        photo = await first_photo(lambda query: self._search(query, patience), brief)
        picture = await picture_file(
            self._spec, await fetched(self._checked, photo.url, patience.call()), credit=photo.credit
        )
        await self._report(photo, patience)
        return picture

    async def _search(self, query: str, patience: Patience) -> tuple[Photo, ...]:
        asked = {"query": query, "per_page": "5", "orientation": "landscape", "content_filter": "high"}
        asked |= {name: str(value) for name, value in self._spec.extra.items()}
        url = f"{self._spec.base_url}/search/photos?{urlencode(asked)}"
        return await self._wire.exchange(self._get(url), patience.call(), decode_unsplash)

    async def _report(self, photo: Photo, patience: Patience) -> None:
        """`download_location` is called with our key, so only at the API's own host. A lost report costs nothing."""
        if urlsplit(photo.used).netloc != urlsplit(self._spec.base_url).netloc:
            return
        try:
            await self._wire.exchange(self._get(photo.used), patience.call(), lambda reply: reply.status)
        except ChannelError:
            return

    def _get(self, url: str) -> HttpRequest:
        return get_json(url, headers(self._key))


def headers(key: str) -> dict[str, str]:
    return {"Accept-Version": "v1"} | ({"Authorization": f"Client-ID {key}"} if key else {})
