"""What stands on the real WordPress, read past the publisher."""

import html
from typing import Any, cast

import httpx

from tests.wordpress.serve import Site


class Reader:
    """The site as its administrator sees it."""

    def __init__(self, site: Site, http: httpx.AsyncClient) -> None:
        login = site.logins["administrator"]
        self._auth = (login.user, login.password)
        self._site = site
        self._http = http

    async def posts(self) -> list[dict[str, Any]]:
        statuses = "publish,future,draft,pending,private"
        asked = {"per_page": "100", "status": statuses, "context": "edit"}
        return cast(list[dict[str, Any]], await self._ask("GET", "posts", params=asked))

    async def media(self, number: int) -> dict[str, Any]:
        return cast(dict[str, Any], await self._ask("GET", f"media/{number}"))

    async def clear(self) -> None:
        for post in [*await self.posts(), *await self._trash()]:
            await self._ask("DELETE", f"posts/{post['id']}", params={"force": "true"})

    async def pages(self) -> list[str]:
        """What readers of the site find."""
        public = cast(list[dict[str, Any]], await self._ask("GET", "posts", params={"per_page": "100"}))
        return [html.unescape((await self._http.get(post["link"])).text) for post in public]

    async def _trash(self) -> list[dict[str, Any]]:
        asked = {"per_page": "100", "status": "trash", "context": "edit"}
        return cast(list[dict[str, Any]], await self._ask("GET", "posts", params=asked))

    async def _ask(self, method: str, route: str, params: dict[str, str] | None = None) -> object:
        url = f"{self._site.url}/wp-json/wp/v2/{route}"
        reply = await self._http.request(method, url, params=params, auth=self._auth)
        reply.raise_for_status()
        return reply.json()
