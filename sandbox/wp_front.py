"""The site's own face: its REST index, the signed-in user, and the pages that readers and engines see."""

from html import escape

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sandbox.blog import Blog, as_slug
from sandbox.pages import listing, missing, page
from sandbox.wp_door import Door, Json, route

_GRANTED = (
    "edit_posts",
    "publish_posts",
    "upload_files",
    "delete_posts",
    "edit_published_posts",
    "delete_published_posts",
    "manage_categories",
)
"""What the routes let a signed-in user do; without unfiltered_html, as for an editor of a multisite."""


class Front:
    def __init__(self, door: Door, blog: Blog) -> None:
        self._door = door
        self._blog = blog

    def routes(self) -> list[Route]:
        site = f"/{self._door.site}"
        return [
            route("GET", f"{site}/wp-json/", self.index),
            route("GET", f"{site}/wp-json/wp/v2/users/me", self.me),
            route("GET", f"{site}/wp-content/uploads/{{filename}}", self.upload),
            route("GET", f"{site}/", self.front),
            route("GET", f"{site}/{{slug}}/", self.public_page),
        ]

    async def index(self, request: Request) -> Response:
        address = self._door.address(request)
        authorize = {"authorization": f"{address}/wp-admin/authorize-application.php"}
        return JSONResponse(
            {
                "name": f"CiteLoop sandbox: {self._door.site}",
                "description": "Simulated",
                "url": address,
                "home": address,
                "gmt_offset": 0,
                "timezone_string": "UTC",
                "namespaces": ["oembed/1.0", "wp/v2", "wp-site-health/v1"],
                "authentication": {"application-passwords": {"endpoints": authorize}},
                "routes": {"/wp/v2/posts": {"methods": ["GET", "POST"]}},
            }
        )

    async def me(self, request: Request) -> Response:
        self._door.demand(request, "rest_not_logged_in", "You are not currently logged in.")
        user = self._door.settings.user
        out: Json = {"id": 1, "name": user, "slug": user}
        if self._door.edits(request):
            out |= {"roles": ["editor"], "capabilities": dict.fromkeys(_GRANTED, True)}
        return JSONResponse(out)

    async def front(self, request: Request) -> Response:
        address = self._door.address(request)
        standing = [post for post in self._blog.posts.newest_first() if post.status == "publish"]
        links = [(f"{address}/{post.slug}/", escape(post.title)) for post in standing]
        return listing(f"CiteLoop sandbox: {self._door.site}", links)

    async def public_page(self, request: Request) -> Response:
        post = self._blog.public(as_slug(request.path_params["slug"]))
        if post is None:
            return missing()
        address = self._door.address(request)
        picture = self._blog.media.get(post.featured_media)
        figure = ""
        if picture:
            source = escape(f"{address}/wp-content/uploads/{picture.filename}")
            figure = f'<figure><img src="{source}" alt="{escape(picture.alt_text)}"></figure>\n'
        return page(
            title=escape(post.title, quote=False),
            content=figure + post.content,
            canonical=f"{address}/{post.slug}/",
            excerpt=post.excerpt,
        )

    async def upload(self, request: Request) -> Response:
        wanted = request.path_params["filename"]
        found = next((m for m in self._blog.media.newest_first() if m.filename == wanted), None)
        return Response(found.data, media_type=found.media_type) if found else missing()
