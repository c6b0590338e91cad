"""Posts of a WordPress-compatible site over REST, with the slips that real hosting has."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from html import escape

from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sandbox.blog import STATUSES, Blog, Post, as_slug
from sandbox.desk import Desk
from sandbox.library import Library, read_page
from sandbox.pages import challenge
from sandbox.wire import Severed
from sandbox.wp_door import Door, Json, WpError, paged, route
from sandbox.wp_front import Front
from sandbox.wp_media import MediaLibrary

_NEW = Post(
    id=0,
    title="",
    content="",
    excerpt="",
    slug="",
    asked_slug="",
    status="draft",
    date=datetime.min.replace(tzinfo=UTC),
    modified=datetime.min.replace(tzinfo=UTC),
)
Text = str | dict[str, str] | None
"""A string, or `{"raw": …}`."""


class PostFields(BaseModel):
    """What a caller may set; what is left out stays as it is."""

    model_config = ConfigDict(extra="ignore")

    id: int | None = None
    title: Text = None
    content: Text = None
    excerpt: Text = None
    slug: str | None = None
    status: str | None = None
    date: datetime | None = None
    date_gmt: datetime | None = None
    tags: tuple[int, ...] | None = None
    categories: tuple[int, ...] | None = None
    featured_media: int | None = None
    meta: dict[str, object] | list[object] | None = None


class WordPress:
    def __init__(self, site: str, desk: Desk, library: Library) -> None:
        self._site = site
        self._desk = desk
        self._library = library
        self._door = Door(site, desk)
        self._blog = Blog()

    def forget(self) -> None:
        self._blog.forget()

    def routes(self) -> list[Route]:
        posts = f"/{self._site}/wp-json/wp/v2/posts"
        return [
            route("GET", posts, self.list_posts),
            route("POST", posts, self.create),
            route("GET", f"{posts}/{{id:int}}", self.show),
            route("POST PUT PATCH", f"{posts}/{{id:int}}", self.update),
            route("DELETE", f"{posts}/{{id:int}}", self.delete),
            *MediaLibrary(self._door, self._blog).routes(),
            *Front(self._door, self._blog).routes(),
        ]

    async def list_posts(self, request: Request) -> Response:
        edit = self._door.edits(request)
        query = request.query_params
        statuses = set(query.get("status", "publish").split(","))
        statuses = set(STATUSES) if statuses == {"any"} else statuses
        if statuses - STATUSES - {"trash"}:
            raise WpError(400, "rest_invalid_param", "Invalid parameter(s): status")
        if statuses != {"publish"}:
            self._door.demand(request, "rest_forbidden_status", "Status is forbidden.")
        slugs = {as_slug(slug) for slug in query.get("slug", "").split(",") if slug}
        searched = query.get("search", "").casefold().split()
        found = [
            post
            for post in self._blog.posts.newest_first(slugs)
            if post.status in statuses
            and all(word in f"{post.title} {post.content} {post.excerpt}".casefold() for word in searched)
        ]
        return paged(request, found, lambda post: self._shown(post, request, edit=edit))

    async def show(self, request: Request) -> Response:
        edit = self._door.edits(request)
        post = self._post(request)
        if post.status != "publish":
            self._door.demand(request, "rest_forbidden", "Sorry, you are not allowed to do that.")
        return JSONResponse(self._shown(post, request, edit=edit))

    async def create(self, request: Request) -> Response:
        message = "Sorry, you are not allowed to create posts as this user."
        self._door.demand(request, "rest_cannot_create", message)
        fields = await _fields(request)
        if fields.id is not None:
            raise WpError(400, "rest_post_exists", "Cannot create existing post.")
        post = self._changed(_NEW, fields)
        if not (post.title or post.content or post.excerpt):
            raise WpError(400, "empty_content", "Content, title, and excerpt are empty.")
        settings = self._door.settings
        draw = self._desk.luck.draw(self._site, "create", post.title)
        kind = draw.one_of("fault", settings.fault_rates())
        entry = self._desk.ledger.site(self._site)
        if kind:
            entry.faults[kind] += 1
        await asyncio.sleep(draw.between("latency", settings.latency))
        if kind == "http_500":
            message = "<p>There has been a critical error on this website.</p>"
            raise WpError(500, "internal_server_error", message)
        if kind == "html_403":
            return challenge()
        if kind == "slow_insert":
            await asyncio.sleep(settings.slow_insert_seconds)
        post = self._blog.insert(post)
        entry.placed(post.keys)
        self._tell_library(post, request)
        if kind == "lost_reply":
            entry.lost_replies += 1
            return Severed()
        location = f"{self._door.address(request)}/wp-json/wp/v2/posts/{post.id}"
        shown = self._shown(post, request, edit=True)
        return JSONResponse(shown, status_code=201, headers={"location": location})

    async def update(self, request: Request) -> Response:
        message = "Sorry, you are not allowed to edit this post."
        self._door.demand(request, "rest_cannot_edit", message)
        before = self._post(request)
        post = self._blog.update(self._changed(before, await _fields(request)))
        self._library.remove(self._url(before, request))
        self._tell_library(post, request)
        return JSONResponse(self._shown(post, request, edit=True))

    async def delete(self, request: Request) -> Response:
        message = "Sorry, you are not allowed to delete this post."
        self._door.demand(request, "rest_cannot_delete", message)
        post = self._post(request)
        force = request.query_params.get("force") in {"1", "true"}
        if post.status == "trash" and not force:
            raise WpError(410, "rest_already_trashed", "The post has already been deleted.")
        previous = self._shown(post, request, edit=True)
        self._library.remove(self._url(post, request))
        if post.status != "trash":
            self._desk.ledger.site(self._site).removed(post.keys)
        if force:
            self._blog.posts.drop(post.id)
            return JSONResponse({"deleted": True, "previous": previous})
        trashed = self._blog.update(replace(post, status="trash"))
        return JSONResponse(self._shown(trashed, request, edit=True))

    def _post(self, request: Request) -> Post:
        post = self._blog.posts.get(request.path_params["id"])
        if post is None:
            raise WpError(404, "rest_post_invalid_id", "Invalid post ID.")
        return post

    def _changed(self, post: Post, fields: PostFields) -> Post:
        if fields.status is not None and fields.status not in STATUSES:
            raise WpError(400, "rest_invalid_param", "Invalid parameter(s): status")
        if fields.featured_media and self._blog.media.get(fields.featured_media) is None:
            raise WpError(400, "rest_invalid_featured_media", "Invalid featured media ID.")
        now = datetime.now(UTC)
        date = _aware(fields.date_gmt or fields.date) or (post.date if post.id else now)
        return replace(
            post,
            title=_raw(fields.title, post.title),
            content=_raw(fields.content, post.content),
            excerpt=_raw(fields.excerpt, post.excerpt),
            asked_slug=post.asked_slug if fields.slug is None else fields.slug,
            status=fields.status or post.status,
            date=date,
            modified=now,
            tags=post.tags if fields.tags is None else fields.tags,
            categories=post.categories if fields.categories is None else fields.categories,
            featured_media=post.featured_media if fields.featured_media is None else fields.featured_media,
            meta=fields.meta if isinstance(fields.meta, dict) else post.meta,
        )

    def _shown(self, post: Post, request: Request, *, edit: bool) -> Json:
        address = self._door.address(request)

        def both(text: str, rendered: str) -> Json:
            return {"rendered": rendered, "raw": text} if edit else {"rendered": rendered}

        return {
            "id": post.id,
            "date": _stamp(post.date),
            "date_gmt": _stamp(post.date),
            "modified_gmt": _stamp(post.modified),
            "guid": {"rendered": f"{address}/?p={post.id}"},
            "slug": post.slug,
            "status": post.status,
            "type": "post",
            "link": self._url(post, request),
            "title": both(post.title, escape(post.title, quote=False)),
            "content": {**both(post.content, post.content), "protected": False},
            "excerpt": {**both(post.excerpt, f"<p>{escape(post.excerpt)}</p>"), "protected": False},
            "author": 1,
            "featured_media": post.featured_media,
            "tags": list(post.tags),
            "categories": list(post.categories),
            "meta": post.meta,
        }

    def _url(self, post: Post, request: Request) -> str:
        address = self._door.address(request)
        return f"{address}/{post.slug}/" if post.status == "publish" else f"{address}/?p={post.id}"

    def _tell_library(self, post: Post, request: Request) -> None:
        if post.status != "publish":
            return
        self._library.put(
            read_page(
                url=self._url(post, request),
                title=post.title,
                content=f"<h1>{escape(post.title)}</h1>{post.content}",
                published=datetime.now(UTC).date(),
                site=f"{request.url.netloc}/{self._site}",
            )
        )


async def _fields(request: Request) -> PostFields:
    """Raises WpError 400 in WordPress's words."""
    body = await request.body()
    try:
        return PostFields.model_validate_json(body or b"{}")
    except ValidationError as error:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            raise WpError(400, "rest_invalid_json", "Invalid JSON body passed.") from None
        raise WpError(400, "rest_invalid_param", f"Invalid parameter(s): {first['loc'][0]}") from None


def _raw(value: Text, before: str) -> str:
    if isinstance(value, dict):
        return value.get("raw", before)
    return before if value is None else value


def _aware(moment: datetime | None) -> datetime | None:
    return moment.replace(tzinfo=UTC) if moment and moment.tzinfo is None else moment


def _stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")
