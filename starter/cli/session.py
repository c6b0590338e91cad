"""One command's connections: settings, store and Temporal, opened at the edge and closed after it."""

import asyncio
import getpass
import os
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from temporalio.client import Client

from citeloop import telemetry
from citeloop.channels.catalog import load
from citeloop.channels.outside import Outside
from citeloop.models.channel import Catalog
from citeloop.sealing import VARIABLE
from citeloop.settings import Settings
from citeloop.store.database import Database
from citeloop.store.repositories.tenants import TenantRow
from starter import endpoints
from starter.cli.output import hint
from starter.commands import PATIENCE, Commands
from starter.connecting import connected, tenant_of
from starter.page_commands import PageCommands
from starter.preflight import Preflight
from starter.site_commands import SiteCommands

Result = TypeVar("Result")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Ref = Annotated[str, typer.Argument(help="An article's id, a unique beginning of it, or its exact keyword.")]
OfCampaign = Annotated[
    bool, typer.Option("--campaign", help="REF is a campaign's id or name; the word goes to all its articles.")
]


@dataclass(frozen=True)
class Session:
    settings: Settings
    database: Database
    tenant: TenantRow


@dataclass(frozen=True)
class Desk:
    """A session that can act."""

    session: Session
    client: Client
    catalog: Catalog
    outside: Outside
    commands: Commands
    pages: PageCommands


def settings_of(context: typer.Context) -> Settings:
    settings = context.find_root().obj
    assert isinstance(settings, Settings)
    return settings


def make_settings(home: Path | None, channels: Path | None, tenant: str | None) -> Settings:
    """The environment, with what the command line says laid over it."""
    given: dict[str, Any] = {"home": home, "channels": channels, "tenant": tenant}
    return Settings(**{name: value for name, value in given.items() if value is not None})


def run(work: Coroutine[Any, Any, Result]) -> Result:
    return asyncio.run(work)


@asynccontextmanager
async def reading(settings: Settings) -> AsyncIterator[Session]:
    """The store only. NotRunning when it does not answer."""
    database = Database(endpoints.database_url(settings), pool_size=2)
    try:
        tenant = await tenant_of(database, settings.tenant, endpoints.database_remedy(settings))
        yield Session(settings, database, tenant)
    finally:
        await database.close()


@asynccontextmanager
async def acting(settings: Settings, *, check_keys: bool = False) -> AsyncIterator[Desk]:
    """Store and Temporal. NotRunning, before anything is done, when one of them does not answer.

    check_keys: a submission's channels are called before it; else it is only looked whether their keys are set.
    """
    client = await connected(settings)
    catalog = catalog_of(settings)
    async with reading(settings) as session, _outside(catalog) as outside, traced(settings):
        commands = Commands(
            client,
            session.database,
            catalog,
            session.tenant,
            preflight=Preflight(outside, catalog, os.environ, calls=check_keys, warn=hint),
            by=getpass.getuser(),
        )
        pages = PageCommands(client, session.database, session.tenant, by=getpass.getuser(), patience=PATIENCE)
        yield Desk(session, client, catalog, outside, commands, pages)


@asynccontextmanager
async def registry(settings: Settings) -> AsyncIterator[SiteCommands]:
    """The tenant's own sites. NotRunning when the store does not answer."""
    catalog = catalog_of(settings)
    async with reading(settings) as session:
        key = endpoints.secret_key(settings)
        yield SiteCommands(session.database, catalog, session.tenant, key, listing="`citeloop sites list`")


@asynccontextmanager
async def probing(settings: Settings) -> AsyncIterator[tuple[Catalog, Outside]]:
    """The outside world only: no server of ours is needed."""
    catalog = catalog_of(settings)
    async with _outside(catalog) as outside:
        yield catalog, outside


@asynccontextmanager
async def _outside(catalog: Catalog) -> AsyncIterator[Outside]:
    outside = Outside(catalog, os.environ)
    try:
        yield outside
    finally:
        await outside.close()


@asynccontextmanager
async def traced(settings: Settings) -> AsyncIterator[None]:
    """An article that is started here has its root span here."""
    otlp = os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT")
    provider = telemetry.configure("citeloop-cli", home=settings.home, otlp_endpoint=otlp)
    try:
        yield
    finally:
        telemetry.shutdown(provider)


def catalog_of(settings: Settings) -> Catalog:
    """channels.toml, read with the environment of the running stack laid under ours."""
    known = endpoints.read(settings.home)
    if known is not None:
        for name, value in known.env.items():
            os.environ.setdefault(name, value)
    if (key := endpoints.secret_key(settings)) is not None:
        os.environ.setdefault(VARIABLE, key)
    return load(endpoints.channels_file(settings), os.environ)
