"""The HTTP API: `python -m starter.api`, or the factory `create` for an ASGI server."""

import importlib.metadata
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from temporalio.client import Client

from citeloop.channels import catalog
from citeloop.channels.outside import Outside
from citeloop.sealing import VARIABLE
from citeloop.settings import Settings
from citeloop.store.database import Database
from starter import endpoints
from starter.api import (
    articles,
    brands,
    callbacks,
    campaigns,
    channels,
    corrections,
    dead_letters,
    docs,
    drafts,
    figures,
    health,
    problems,
    publications,
    samples,
    sites,
    streams,
)
from starter.api.guard import Guard
from starter.api.limits import BodyLimit
from starter.api.request_ids import RequestIds
from starter.api.starting import Starter
from starter.api.wiring import Wiring, database_of
from workflows.client import connect

MAX_BODY = 8 * 1024 * 1024
_ROOMS = (
    brands, campaigns, articles, drafts, corrections, publications, samples, figures, dead_letters, channels, sites,
    streams, callbacks, health, docs,
)  # fmt: skip

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]


def create() -> FastAPI:
    """Reads the environment, as the CLI does."""
    return build(Settings())


def build(settings: Settings) -> FastAPI:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        database = Database(endpoints.database_url(settings))
        known = catalog.load(endpoints.channels_file(settings), os.environ)
        key = endpoints.secret_key(settings)
        outside = Outside(known, {VARIABLE: key, **os.environ} if key is not None else os.environ)
        try:
            async with Starter() as starter:
                app.state.wiring = Wiring(database, await _client(settings), outside, known, starter, secret_key=key)
                yield
        finally:
            await outside.close()
            await database.close()

    return assemble(lifespan)


def assemble(lifespan: Lifespan | None = None) -> FastAPI:
    """Every route; `app.state.wiring` is for the lifespan, or the caller, to set."""
    app = FastAPI(
        title="CiteLoop",
        version=importlib.metadata.version("citeloop"),
        description="From a keyword to a measured AI answer, durably.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        generate_unique_id_function=_name,
        separate_input_output_schemas=False,
    )
    for room in _ROOMS:
        app.include_router(room.router)
    problems.install(app)
    app.add_middleware(BodyLimit, most=MAX_BODY)
    app.add_middleware(Guard, database=database_of)
    app.add_middleware(RequestIds)  # the outermost: what the others refuse has an id too
    app.openapi = lambda: _document(app)  # type: ignore[method-assign]
    return app


async def _client(settings: Settings) -> Client:
    """Lazy: what only needs the store works while Temporal is away."""
    address, namespace, _ = endpoints.temporal(settings)
    return await connect(address, namespace, lazy=True)


def _name(route: APIRoute) -> str:
    return route.name


def _document(app: FastAPI) -> dict[str, Any]:
    """FastAPI's own, with the one schema of all problems."""
    if app.openapi_schema is None:
        made = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        schemas = made["components"]["schemas"]
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        problem = problems.Problem.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas.update(problem.pop("$defs"))
        schemas["Problem"] = problem
        for route in (route for room in _ROOMS for route in room.router.routes):
            if isinstance(route, APIRoute) and route.include_in_schema:
                _restore_examples(route, made["paths"][route.path_format])
        app.openapi_schema = made
    return app.openapi_schema


def _restore_examples(route: APIRoute, item: dict[str, Any]) -> None:
    """FastAPI drops every null of the document, those of the examples too."""
    for method in route.methods or ():
        operation = item[method.lower()]
        bodies = [(operation["responses"][str(status)], answer) for status, answer in route.responses.items()]
        if route.openapi_extra:
            bodies.append((operation["requestBody"], route.openapi_extra["requestBody"]))
        for shown, given in bodies:
            for media, content in given.get("content", {}).items():
                shown["content"][media]["example"] = content["example"]
