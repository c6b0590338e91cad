"""A photograph from Pexels: searched by the article's title, with a link and its photographer's name."""

from urllib.parse import urlencode

from citeloop.channels.asking import get_json
from citeloop.channels.fetching import fetched, picture_file
from citeloop.channels.patience import Patience
from citeloop.channels.ports import Call, PictureBrief, PictureFile
from citeloop.channels.stock import Photo, decode_pexels, first_photo
from citeloop.channels.wire import Wire
from citeloop.models.channel import ChannelSpec


class Pexels:
    def __init__(self, spec: ChannelSpec, key: str, wire: Wire, checked: Wire) -> None:
        self._spec = spec
        self._key = key
        self._wire = wire
        self._checked = checked

    async def illustrate(self, brief: PictureBrief, call: Call) -> PictureFile:
        """Raises ChannelError, INVALID when no photograph was found."""
        patience = Patience(call)
        photo = await first_photo(lambda query: self._search(query, patience), brief)
        data = await fetched(self._checked, photo.url, patience.call())
        return await picture_file(self._spec, data, credit=photo.credit)

    async def _search(self, query: str, patience: Patience) -> tuple[Photo, ...]:
        asked = {"query": query, "per_page": "5", "orientation": "landscape"}
        asked |= {name: str(value) for name, value in self._spec.extra.items()}
        request = get_json(f"{self._spec.base_url}/search?{urlencode(asked)}", headers(self._key))
        return await self._wire.exchange(request, patience.call(), decode_pexels)


def headers(key: str) -> dict[str, str]:
    """The key alone, without `Bearer`."""
    return {"Authorization": key} if key else {}
