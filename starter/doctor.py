"""A look at the whole installation, also while nothing of it runs; every failure with its remedy. Changes nothing."""

import asyncio
import sys
from collections.abc import Awaitable, Mapping

from temporalio.service import RPCError, RPCStatusCode

from citeloop.models.channel import Catalog
from citeloop.settings import Settings
from citeloop.store.database import Database
from citeloop.store.errors import StoreUnavailable
from citeloop.store.repositories import channels
from citeloop.store.repositories.channels import ChannelRow
from starter import endpoints
from starter.checks import embedded, machine, outside, postgres, sealed, temporal, work
from starter.checks.findings import Diagnosis, Finding, Group, fail, skipped
from starter.connecting import connected
from starter.errors import CommandError, NotRunning

PATIENCE = 45
"""Seconds for one group. Within it every single call has a limit of its own."""


async def examine(settings: Settings, environ: Mapping[str, str], *, offline: bool = False) -> Diagnosis:
    """environ: where keys are looked for. offline: no channel is called."""
    stack = endpoints.read(settings.home)
    environ = {**(stack.env if stack else {}), **environ}
    known, readable = outside.catalog(endpoints.channels_file(settings), environ)
    return Diagnosis(
        groups=tuple(
            await asyncio.gather(
                _group("This machine", _machine(settings)),
                _group("Postgres", _postgres(settings)),
                _group("Temporal", _temporal(settings, known)),
                _group("Channels and sites", _outside(settings, known, readable, environ, offline=offline)),
                _group("Work", _work(settings, known)),
            )
        )
    )


async def _group(name: str, findings: Awaitable[list[Finding]]) -> Group:
    """What a check did not foresee is a failure of its group, and the others still report."""
    try:
        async with asyncio.timeout(PATIENCE):
            found = await findings
    except CommandError as error:
        found = [fail("server", f"{error.message}; {error.remedy}")]
    except TimeoutError:
        found = [fail("server", f"no answer within {PATIENCE} s; see whether it is overloaded, and ask again")]
    except Exception as error:  # noqa: BLE001 - one broken check must not hide what the others see
        said = (str(error).strip().splitlines() or [""])[0][:200]
        found = [fail("server", f"could not be looked at ({type(error).__name__}: {said}); ask again, or report it")]
    return Group(name=name, findings=tuple(found))


async def _machine(settings: Settings) -> list[Finding]:
    elsewhere = endpoints.temporal_profile().get("target_host")
    programs = machine.programs(settings.home, temporal=not elsewhere, postgres=settings.database_url is None)
    return [
        machine.python(sys.version_info[:3]),
        machine.disk(settings.home),
        *await programs,
        *machine.kept_ports(settings.home),
        *await embedded.stack(settings.home),
    ]


async def _postgres(settings: Settings) -> list[Finding]:
    return await postgres.postgres(endpoints.database_url(settings))


async def _temporal(settings: Settings, known: Catalog | None) -> list[Finding]:
    client = await connected(settings)
    return await temporal.temporal(client, client.service_client.config.target_host, work.queues_of(known))


async def _outside(
    settings: Settings, known: Catalog | None, readable: Finding, environ: Mapping[str, str], *, offline: bool
) -> list[Finding]:
    called = [] if known is None else await outside.outside(known, environ, offline=offline)
    return [readable, *called, *await _secrets(settings)]


async def _secrets(settings: Settings) -> list[Finding]:
    try:
        url = endpoints.database_url(settings)
    except CommandError:
        return []
    return await sealed.sealed(url, settings.tenant, endpoints.secret_key(settings))


async def _work(settings: Settings, known: Catalog | None) -> list[Finding]:
    try:
        return await work.work(await connected(settings), known, await _rows(settings))
    except NotRunning:
        return [skipped("worker", "Temporal does not answer, so that its queues cannot be seen")]
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        return [skipped("worker", "the namespace is not there, so that its queues cannot be seen")]


async def _rows(settings: Settings) -> list[ChannelRow]:
    """None while the store does not answer or is not there yet: its own group tells that."""
    try:
        database = Database(endpoints.database_url(settings), pool_size=1)
    except (CommandError, ValueError):
        return []
    try:
        async with database.operator() as op:
            return await channels.rows(op)
    except StoreUnavailable:
        return []
    finally:
        await database.close()
