"""Reaching servers that may not be there: the first contact, with an error that says what to do."""

import asyncio

from temporalio.client import Client
from temporalio.service import RPCError

from citeloop.settings import Settings
from citeloop.store.database import Database
from citeloop.store.errors import StoreUnavailable
from citeloop.store.repositories import tenants
from citeloop.store.repositories.tenants import TenantRow
from starter import endpoints
from starter.errors import NotRunning
from workflows.client import connect

PATIENCE = 5


async def connected(settings: Settings) -> Client:
    address, namespace, _ = endpoints.temporal(settings)
    return await reached(address, namespace, endpoints.temporal_remedy(settings))


async def reached(address: str, namespace: str, remedy: str) -> Client:
    """With the client profile's TLS and key. NotRunning, with the remedy."""
    try:
        async with asyncio.timeout(PATIENCE):
            return await connect(address, namespace)
    except (RPCError, RuntimeError, ValueError, TimeoutError):
        raise NotRunning(f"no Temporal server at {address}", "temporal", remedy) from None


async def tenant_of(database: Database, name: str, remedy: str = endpoints.DATABASE_REMEDY) -> TenantRow:
    """The tenant's row, made on first use. remedy: where the database does not answer."""
    try:
        async with asyncio.timeout(PATIENCE), database.operator() as operator:
            return await tenants.ensure(operator, name)
    except (StoreUnavailable, OSError, TimeoutError) as error:
        raise NotRunning(f"the database does not answer ({error})", "database", remedy) from None
