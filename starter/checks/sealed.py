"""Secrets of registered sites: whether the key that is set here opens them."""

from citeloop.channels.site_entries import origin_of
from citeloop.models.record import Record
from citeloop.sealing import VARIABLE, Seal, SealError
from citeloop.store import migrate
from citeloop.store.database import Database, Scope
from citeloop.store.errors import StoreUnavailable
from citeloop.store.repositories import sites, tenants
from starter.checks.findings import Finding, fail, listed, ok

_CHECK = "secret key"
_PAGE = 2_000
_MOST = 100_000
"""Of one tenant; so many take about ten seconds."""
_GIVE_AGAIN = "`citeloop sites set NAME --secret-env VARIABLE`"


class Locked(Record):
    """Of the sites that were looked at, by name."""

    looked_at: int
    names: tuple[str, ...]
    """Those whose secret cannot be opened."""
    why: str
    """Of the first one, with the remedy."""


async def sealed(url: str, tenant: str, key: str | None) -> list[Finding]:
    """Of this tenant's sites. None while the store does not answer or has another schema: its own group tells that."""
    try:
        database = Database(url, pool_size=1)
    except ValueError:
        return []
    try:
        async with database.operator():
            pass  # it answers: the next question is not asked through the pool, and would fail in other words
        if await migrate.current_revision(url) != migrate.head_revision():
            return []
        async with database.operator() as op:
            row = await tenants.by_name(op, tenant)
        if row is None:
            return [_needless(key)]
        async with database.tenant(row.id) as scope:
            return [await _judged(scope, tenant, key)]
    except StoreUnavailable:
        return []
    finally:
        await database.close()


async def _judged(scope: Scope, tenant: str, key: str | None) -> Finding:
    known = await sites.count(scope)
    if not known:
        return _needless(key)
    theirs = f"tenant {tenant}'s {known:,} registered {'site' if known == 1 else 'sites'}"
    try:
        seal = Seal(key)
    except SealError as error:
        problem = str(error).partition("; ")[0].partition(": ")[0]
        return fail(
            _CHECK,
            f"{problem}, so that nothing opens the secrets of {theirs}; export the key under which they were sealed, "
            "here and where workers and API run, or one of `citeloop sites new-key`, and then give each secret again: "
            f"{_GIVE_AGAIN}",
        )
    found = await _locked(scope, seal)
    if found.names:
        return fail(
            _CHECK,
            f"{VARIABLE} opens {found.looked_at - len(found.names):,} secrets of {theirs} and not those of "
            f"{listed(found.names)}: {found.why} by {_GIVE_AGAIN}",
        )
    part = "" if found.looked_at == known else f"the first {found.looked_at:,} of "
    return ok(_CHECK, f"opens the secrets of {part}{theirs}")


async def _locked(scope: Scope, seal: Seal) -> Locked:
    looked_at, after, names, why = 0, "", [], ""
    while looked_at < _MOST:
        page = await sites.page(scope, after=after, limit=_PAGE)
        for site, secret in await sites.sealed(scope, [site.name for site in page]):
            try:
                seal.open(secret, (scope.tenant_id, site.name, origin_of(site.base_url)))
            except SealError as error:
                names.append(site.name)
                why = why or str(error)
        looked_at += len(page)
        if len(page) < _PAGE:
            break
        after = page[-1].name
    return Locked(looked_at=looked_at, names=tuple(names), why=why)


def _needless(key: str | None) -> Finding:
    return ok(_CHECK, "no site is registered that would need it" + ("" if key else "; it is not set"))
