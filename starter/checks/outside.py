"""channels.toml and what it needs: keys that are set and taken, credentials of the sites, every role filled."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from citeloop.channels.catalog import CatalogError, load, missing_keys
from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.outside import ChannelGone, Outside
from citeloop.models.channel import Catalog, Role, SiteSpec
from starter.checks.findings import Finding, fail, ok, skipped, warn

_PASSING = frozenset({Fault.RATE_LIMITED, Fault.OVERLOADED})
_UNCALLED = "not called, because of --offline"
_UNFILLED = {
    Role.WRITE: "no channel writes, so that no article can be generated",
    Role.ANSWER: "no channel answers, so that nothing can be measured",
}


def catalog(file: Path, environ: Mapping[str, str]) -> tuple[Catalog | None, Finding]:
    """None: it cannot be used as it stands."""
    if not file.exists():
        remedy = "`cp examples/channels.toml channels.toml` and keep your channels in it, or set CITELOOP_CHANNELS"
        return None, fail("channels.toml", f"{file} is not there; {remedy}")
    try:
        known = load(file, environ)
    except CatalogError as error:
        return None, fail("channels.toml", str(error))
    return known, ok("channels.toml", f"{file}: {len(known.channels)} channels, {len(known.sites)} sites")


async def outside(known: Catalog, environ: Mapping[str, str], *, offline: bool) -> list[Finding]:
    """offline: nothing is called, so that a key which is set may still be a wrong one."""
    world = Outside(known, environ)
    try:
        channels = [_channel(world, known, channel.name, environ, offline=offline) for channel in known.channels]
        sites = [_site(world, known, site, environ, offline=offline) for site in known.sites]
        return [*await asyncio.gather(*channels, *sites), *_unfilled(known)]
    finally:
        await world.close()


async def _channel(world: Outside, known: Catalog, name: str, environ: Mapping[str, str], *, offline: bool) -> Finding:
    for lacking in missing_keys(known, environ, [name]):
        return fail(name, f"{lacking.variable} is not set; export it, or remove the channel from channels.toml")
    if offline:
        return skipped(name, _UNCALLED)
    probe = await world.probe(name)
    if probe.ok:
        return ok(name, probe.said)
    problem = probe.problem.removeprefix(f"{name}: ")
    return warn(name, f"{problem}; ask again in a while") if probe.fault in _PASSING else fail(name, problem)


async def _site(
    world: Outside, known: Catalog, site: SiteSpec, environ: Mapping[str, str], *, offline: bool
) -> Finding:
    missing = [lacking.variable for lacking in missing_keys(known, environ, [site.name])]
    if missing:
        verb, word = ("is", "it") if len(missing) == 1 else ("are", "them")
        remedy = f"export {word}, or remove the site from channels.toml"
        return fail(site.name, f"{' and '.join(missing)} {verb} not set; {remedy}")
    try:
        world.publisher(site.name)
    except (ChannelError, ChannelGone) as error:
        return fail(site.name, str(error).removeprefix(f"{site.name}: "))
    if offline:
        return skipped(site.name, _UNCALLED)
    report = await world.check_site(site.name)
    if not report.ok:
        return fail(site.name, "; ".join(report.problems).removeprefix(f"{site.name}: "))
    place = site.base_url or site.folder
    return ok(site.name, "; ".join((f"{site.kind} at {place} is as it should be", *report.notes)))


def _unfilled(known: Catalog) -> list[Finding]:
    findings = [
        warn("roles", f'{problem}; add a channel with roles = ["{role}"] to channels.toml')
        for role, problem in _UNFILLED.items()
        if not known.with_role(role)
    ]
    if not known.sites:
        findings.append(warn("roles", "there is no site, so that nothing can be published; add one to channels.toml"))
    return findings
