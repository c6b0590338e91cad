"""What the API's requests work with; made once by the app, handed to each of them."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated

from fastapi import Depends, Request
from starlette.types import Scope
from temporalio.client import Client

from citeloop.channels.outside import Outside
from citeloop.models.channel import Catalog
from citeloop.store.database import Database
from citeloop.store.repositories.api_keys import Holder
from citeloop.store.repositories.tenants import TenantRow
from starter.api.starting import Starter
from starter.commands import PATIENCE, Commands
from starter.page_commands import PageCommands
from starter.site_commands import SiteCommands


@dataclass(frozen=True)
class Wiring:
    database: Database
    client: Client
    outside: Outside
    catalog: Catalog = field(default_factory=Catalog)
    starter: Starter = field(default_factory=Starter)
    patience: timedelta = PATIENCE
    heartbeat: timedelta = timedelta(seconds=15)
    """A stream on which nothing happens gives a sign of life this often."""
    stream: timedelta = timedelta(hours=1)
    """A stream ends after this; its reader comes back with its last id, and with a key that is looked at again."""
    secret_key: str | None = field(default=None, repr=False)
    """What seals the secrets of registered sites."""


@dataclass(frozen=True)
class Caller:
    """One request's key, and what it may work with."""

    parts: Wiring
    holder: Holder

    @property
    def database(self) -> Database:
        return self.parts.database

    @property
    def tenant(self) -> TenantRow:
        return self.holder.tenant

    @property
    def commands(self) -> Commands:
        return Commands(
            self.parts.client,
            self.parts.database,
            self.parts.catalog,
            self.holder.tenant,
            by=self.holder.name,
            patience=self.parts.patience,
        )

    @property
    def pages(self) -> PageCommands:
        parts = self.parts
        return PageCommands(
            parts.client, parts.database, self.holder.tenant, by=self.holder.name, patience=parts.patience
        )

    @property
    def sites(self) -> SiteCommands:
        return SiteCommands(self.database, self.parts.catalog, self.tenant, self.parts.secret_key)


async def wiring(request: Request) -> Wiring:
    """Async, as all dependencies here: FastAPI would take a thread for any other."""
    return wired(request)


def wired(request: Request) -> Wiring:
    made = request.app.state.wiring
    assert isinstance(made, Wiring)
    return made


def database_of(scope: Scope) -> Database:
    made = scope["app"].state.wiring
    assert isinstance(made, Wiring)
    return made.database


async def caller(request: Request) -> Caller:
    holder = request.state.holder
    assert isinstance(holder, Holder)
    return Caller(wired(request), holder)


CallerDep = Annotated[Caller, Depends(caller)]
