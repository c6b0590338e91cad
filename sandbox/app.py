"""The whole outside world as one ASGI application."""

import contextlib
from collections.abc import AsyncIterator

import httpx
from pydantic import TypeAdapter, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from sandbox.config import (
    ENGINES,
    IMAGES,
    Config,
    ServiceSettings,
    WebhookSettings,
    WordPressSettings,
)
from sandbox.desk import Desk
from sandbox.engines import engine
from sandbox.images import Images
from sandbox.library import Library
from sandbox.providers import Chat, Models, Service
from sandbox.webhook import Hook
from sandbox.wordpress import WordPress
from sandbox.writers import writer

_CHANGES = TypeAdapter(dict[str, dict[str, object]])
_WAITS = TypeAdapter(dict[str, float])
_CALLBACK_TIMEOUT = httpx.Timeout(15.0)
_ENGINE_PATHS = {"perplexity": "/perplexity", "hunyuan": "/hunyuan/v1"}


class World:
    """Built once per process. `reset` makes it as it was at the start."""

    def __init__(self, config: Config, client: httpx.AsyncClient) -> None:
        self.desk = Desk(config)
        self.library = Library()
        self.services = self._services()
        self.blogs = [WordPress(name, self.desk, self.library) for name in self.desk.of_type(WordPressSettings)]
        self.hooks = [Hook(name, self.desk, self.library, client) for name in self.desk.of_type(WebhookSettings)]

    def routes(self) -> list[BaseRoute]:
        routes: list[BaseRoute] = [
            Route("/_healthz", self.healthz),
            Route("/_ledger", self.ledger),
            Route("/_config", self.configure, methods=["GET", "POST"]),
            Route("/_limit", self.limit, methods=["POST"]),
            Route("/_reset", self.reset, methods=["POST"]),
            Route("/robots.txt", self.robots),
        ]
        for path, service in self.services.items():
            routes.append(Route(path, service, methods=["POST"]))
            models = path.removesuffix("/chat/completions").removesuffix("/images/generations") + "/models"
            routes.append(Route(models, Models(service.name, self.desk), methods=["GET"]))
        for hook in self.hooks:
            routes += hook.routes()
        for blog in self.blogs:
            routes += blog.routes()
        return routes

    def _services(self) -> dict[str, Service]:
        """By path."""
        services: dict[str, Service] = {"/images/v1/images/generations": Images(IMAGES, self.desk)}
        for name in self.desk.of_type(ServiceSettings):
            if name != IMAGES:
                model = writer(name, self.desk.luck)
                services[f"/{name}/v1/chat/completions"] = Chat(name, self.desk, model)
        for engine_name in ENGINES:
            model = engine(engine_name, self.desk, self.library)
            path = f"{_ENGINE_PATHS[engine_name]}/chat/completions"
            services[path] = Chat(engine_name, self.desk, model)
        return services

    async def healthz(self, _request: Request) -> Response:
        return JSONResponse({"ok": True, "documents": len(self.library)})

    async def ledger(self, request: Request) -> Response:
        times = request.query_params.get("times") in {"1", "true"}
        journal = request.query_params.get("journal") in {"1", "true"}
        return JSONResponse(self.desk.ledger.as_json(times=times, journal=journal))

    async def limit(self, request: Request) -> Response:
        """`{service: seconds}`: the next call of each is refused with that Retry-After, once."""
        by_name = {service.name: service for service in self.services.values()}
        try:
            asked = _WAITS.validate_json(await request.body())
            for name, seconds in asked.items():
                by_name[name].limit_next = seconds
        except KeyError as error:
            return JSONResponse({"error": f"there is no service {error.args[0]!r} here"}, status_code=422)
        except ValidationError as error:
            return JSONResponse({"error": error.errors()[0]["msg"]}, status_code=422)
        return JSONResponse({"ok": True})

    async def configure(self, request: Request) -> Response:
        """`{name: {field: value}}`; all of it is taken, or nothing."""
        if request.method == "POST":
            try:
                self.desk.change(_CHANGES.validate_json(await request.body()))
            except KeyError as error:
                return JSONResponse({"error": f"there is no {error.args[0]!r} here"}, status_code=422)
            except ValidationError as error:
                first = error.errors()[0]
                where = ".".join(str(part) for part in first["loc"])
                return JSONResponse({"error": f"{where}: {first['msg']}"}, status_code=422)
        return JSONResponse(self.desk.as_json())

    async def reset(self, _request: Request) -> Response:
        self.desk.reset()
        self.library.clear()
        for service in self.services.values():
            service.gate.refill()
            service.limit_next = None
        for blog in self.blogs:
            blog.forget()
        for hook in self.hooks:
            hook.forget()
        return JSONResponse({"ok": True})

    async def robots(self, _request: Request) -> Response:
        return PlainTextResponse("User-agent: *\nAllow: /\n")


def build(config: Config) -> Starlette:
    client = httpx.AsyncClient(timeout=_CALLBACK_TIMEOUT, trust_env=False)

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        yield
        await client.aclose()

    return Starlette(routes=World(config, client).routes(), lifespan=lifespan)
