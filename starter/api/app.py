"""The HTTP API: `python -m starter.api`, or the factory `create` for an ASGI server."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, HTTPException, Request, status
from temporalio.service import RPCError

from citeloop.channels import catalog
from citeloop.channels.outside import Outside
from citeloop.settings import Settings
from citeloop.store.database import Database
from citeloop.store.errors import StoreUnavailable
from citeloop.store.repositories import channels
from starter import endpoints
from starter.api import callbacks
from starter.api.wiring import Wiring
from starter.connecting import connected


def create() -> FastAPI:
    """Reads the environment, as the CLI does."""
    return build(Settings())


def build(settings: Settings) -> FastAPI:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        database = Database(endpoints.database_url(settings))
        known = catalog.load(endpoints.channels_file(settings), os.environ)
        outside = Outside(known, os.environ)
        try:
            app.state.wiring = Wiring(database, await connected(settings), outside)
            yield
        finally:
            await outside.close()
            await database.close()

    app = FastAPI(title="CiteLoop", lifespan=lifespan)
    app.include_router(callbacks.router)
    app.add_api_route("/healthz", healthz, tags=["health"])
    app.add_api_route("/readyz", readyz, tags=["health"], responses={503: {}})
    return app


async def healthz() -> dict[str, str]:
    """This process answers."""
    return {"status": "ok"}


async def readyz(request: Request) -> dict[str, str]:
    """Store and Temporal answer too."""
    parts = request.app.state.wiring
    assert isinstance(parts, Wiring)
    try:
        async with parts.database.operator() as operator:
            await channels.rows(operator)
        answers = await parts.client.service_client.check_health()
    except (StoreUnavailable, OSError, RPCError, TimeoutError):
        answers = False
    if not answers:
        raise HTTPException(status.HTTP_503_SERVICE_UNAVAILABLE, "store or Temporal does not answer")
    return {"status": "ready"}
