"""Uploads, tags and categories of a WordPress-compatible site."""

import re
from dataclasses import replace

from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sandbox.blog import Blog, Medium, Term
from sandbox.wp_door import Door, Json, WpError, paged, route

_FILENAME = re.compile(r"""filename\*?=(?:UTF-8'')?"?([^";]+)"?""", re.IGNORECASE)
_IMAGES = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})
_NOT_ALLOWED = "Sorry, you are not allowed to do that."


class TermFields(BaseModel):
    name: str
    slug: str = ""


class MediumFields(BaseModel):
    title: str | None = None
    alt_text: str | None = None


class MediaLibrary:
    def __init__(self, door: Door, blog: Blog) -> None:
        self._door = door
        self._blog = blog

    def routes(self) -> list[Route]:
        rest = f"/{self._door.site}/wp-json/wp/v2"
        terms = [
            entry
            for taxonomy in ("tags", "categories")
            for entry in (
                route("GET", f"{rest}/{taxonomy}", self.list_terms),
                route("POST", f"{rest}/{taxonomy}", self.create_term),
            )
        ]
        return [
            route("GET", f"{rest}/media", self.list_media),
            route("POST", f"{rest}/media", self.create),
            route("GET", f"{rest}/media/{{id:int}}", self.show),
            route("POST PUT PATCH", f"{rest}/media/{{id:int}}", self.update),
            route("DELETE", f"{rest}/media/{{id:int}}", self.delete),
            *terms,
        ]

    async def list_media(self, request: Request) -> Response:
        self._door.edits(request)
        slugs = {slug for slug in request.query_params.get("slug", "").split(",") if slug}
        searched = request.query_params.get("search", "").casefold().split()
        found = [
            medium
            for medium in self._blog.media.newest_first(slugs)
            if all(word in f"{medium.title} {medium.filename}".casefold() for word in searched)
        ]
        return paged(request, found, lambda medium: self._shown(medium, request))

    async def create(self, request: Request) -> Response:
        message = "Sorry, you are not allowed to create posts as this user."
        self._door.demand(request, "rest_cannot_create", message)
        media_type = request.headers.get("content-type", "").partition(";")[0].strip()
        disposition = request.headers.get("content-disposition", "")
        data = await request.body()
        if not data:
            raise WpError(400, "rest_upload_no_data", "No data supplied.")
        if not media_type:
            raise WpError(400, "rest_upload_no_content_type", "No Content-Type supplied.")
        if not disposition:
            message = "No Content-Disposition supplied."
            raise WpError(400, "rest_upload_no_content_disposition", message)
        named = _FILENAME.search(disposition)
        if named is None:
            message = 'Invalid Content-Disposition supplied. Use `attachment; filename="image.png"`.'
            raise WpError(400, "rest_upload_invalid_disposition", message)
        if media_type not in _IMAGES:
            message = "Sorry, you are not allowed to upload this file type."
            raise WpError(500, "rest_upload_sideload_error", message)
        alt_text = request.query_params.get("alt_text", "")
        medium = self._blog.add_medium(named[1].strip(), media_type, data, alt_text)
        location = f"{self._door.address(request)}/wp-json/wp/v2/media/{medium.id}"
        return JSONResponse(self._shown(medium, request), status_code=201, headers={"location": location})

    async def show(self, request: Request) -> Response:
        self._door.edits(request)
        return JSONResponse(self._shown(self._medium(request), request))

    async def update(self, request: Request) -> Response:
        self._door.demand(request, "rest_cannot_edit", _NOT_ALLOWED)
        medium = self._medium(request)
        try:
            fields = MediumFields.model_validate_json(await request.body())
        except ValidationError:
            raise WpError(400, "rest_invalid_json", "Invalid JSON body passed.") from None
        changed = replace(medium, title=fields.title or medium.title, alt_text=fields.alt_text or medium.alt_text)
        self._blog.media.put(changed)
        return JSONResponse(self._shown(changed, request))

    async def delete(self, request: Request) -> Response:
        self._door.demand(request, "rest_cannot_delete", _NOT_ALLOWED)
        medium = self._medium(request)
        if request.query_params.get("force") not in {"1", "true"}:
            message = "The post does not support trashing. Set 'force' to true to delete."
            raise WpError(501, "rest_trash_not_supported", message)
        self._blog.media.drop(medium.id)
        return JSONResponse({"deleted": True, "previous": self._shown(medium, request)})

    async def list_terms(self, request: Request) -> Response:
        query = request.query_params
        slugs = {slug for slug in query.get("slug", "").split(",") if slug}
        searched = query.get("search", "").casefold()
        found = [
            term
            for term in self._blog.terms[_taxonomy(request)].values()
            if (not slugs or term.slug in slugs) and searched in term.name.casefold()
        ]
        return paged(request, found, _term_shown)

    async def create_term(self, request: Request) -> Response:
        message = "Sorry, you are not allowed to create terms in this taxonomy."
        self._door.demand(request, "rest_cannot_create", message)
        try:
            fields = TermFields.model_validate_json(await request.body())
        except ValidationError:
            message = "Missing parameter(s): name"
            raise WpError(400, "rest_missing_callback_param", message, params=["name"]) from None
        term, new = self._blog.add_term(_taxonomy(request), fields.name, fields.slug)
        if not new:
            message = "A term with the name provided already exists in this taxonomy."
            raise WpError(400, "term_exists", message, term_id=term.id)
        return JSONResponse(_term_shown(term), status_code=201)

    def _medium(self, request: Request) -> Medium:
        medium = self._blog.media.get(request.path_params["id"])
        if medium is None:
            raise WpError(404, "rest_post_invalid_id", "Invalid post ID.")
        return medium

    def _shown(self, medium: Medium, request: Request) -> Json:
        source = f"{self._door.address(request)}/wp-content/uploads/{medium.filename}"
        return {
            "id": medium.id,
            "date_gmt": medium.date.strftime("%Y-%m-%dT%H:%M:%S"),
            "slug": medium.slug,
            "status": "inherit",
            "type": "attachment",
            "media_type": "image",
            "mime_type": medium.media_type,
            "link": source,
            "source_url": source,
            "title": {"rendered": medium.title, "raw": medium.title},
            "alt_text": medium.alt_text,
        }


def _taxonomy(request: Request) -> str:
    return request.url.path.rstrip("/").rpartition("/")[2]


def _term_shown(term: Term) -> Json:
    return {"id": term.id, "name": term.name, "slug": term.slug, "count": 0}
