"""What can be done to a tenant's own sites: registered, changed, checked, taken out again."""

from collections.abc import Sequence

from pydantic import JsonValue

from citeloop.channels.outside import Outside
from citeloop.channels.ports import SiteReport
from citeloop.channels.site_entries import SiteError, check_secret, checked, origin_of, registered
from citeloop.models.channel import Catalog, SiteSpec
from citeloop.models.record import Record
from citeloop.models.site import SiteEntry, SiteState, SiteView
from citeloop.sealing import Seal, SealError
from citeloop.store.database import Database, Scope
from citeloop.store.repositories import sites
from citeloop.store.repositories.sites import Kept, Put, SealedEntry
from citeloop.store.repositories.tenants import TenantRow
from starter.errors import CommandError, Conflict, Missing

_KEEP = "its address or kind changes, so its secret must be given again"


class Changes(Record):
    """What is None stays. labels and settings are replaced as a whole."""

    base_url: str | None = None
    user: str | None = None
    rate: str | None = None
    """"": no limit."""
    concurrency: int | None = None
    labels: tuple[str, ...] | None = None
    settings: dict[str, JsonValue] | None = None
    state: SiteState | None = None


class SiteCommands:
    """secret_key: CITELOOP_SECRET_KEY; needed only where a secret is given. listing: shows all sites at this door."""

    def __init__(
        self,
        database: Database,
        catalog: Catalog,
        tenant: TenantRow,
        secret_key: str | None,
        *,
        listing: str = "GET /v1/sites",
    ) -> None:
        self._database = database
        self._catalog = catalog
        self._tenant = tenant
        self._secret_key = secret_key
        self._listing = listing

    async def page(
        self, *, after: str | None = None, limit: int, kind: str | None = None, label: str | None = None
    ) -> list[SiteView]:
        async with self._database.tenant(self._tenant.id) as scope:
            return await sites.page(scope, after=after or "", limit=limit, kind=kind, label=label)

    def filed(self, kind: str | None = None) -> tuple[SiteSpec, ...]:
        """The operator's sites in channels.toml, which every tenant may name beside its own."""
        return tuple(site for site in self._catalog.sites if kind in {None, site.kind})

    async def show(self, name: str) -> SiteView:
        """Missing."""
        async with self._database.tenant(self._tenant.id) as scope:
            return await self._standing(scope, name)

    async def put(self, entry: SiteEntry, secret: str) -> tuple[SiteView, bool]:
        """The site as it stands now, and whether it is new. secret "": the one that is kept. CommandError, Conflict."""
        async with self._database.tenant(self._tenant.id) as scope:
            return await self._put(scope, entry, secret)

    async def change(self, name: str, changes: Changes, secret: str = "") -> SiteView:
        """Missing, CommandError."""
        given = {key: value for key in Changes.model_fields if (value := getattr(changes, key)) is not None}
        state = given.pop("state", None)
        if given.get("rate") == "":
            given["rate"] = None
        async with self._database.tenant(self._tenant.id) as scope:
            there = await self._standing(scope, name)
            if given or secret:
                there, _ = await self._put(scope, _entry(there).model_copy(update=given), secret)
            if state is not None:
                await sites.set_state(scope, name, state)
            return await self._standing(scope, name)

    async def remove(self, name: str) -> None:
        """What is planned for it can no longer be published. Missing."""
        async with self._database.tenant(self._tenant.id) as scope:
            if not await sites.remove(scope, name):
                raise self._missing(name)

    async def import_(self, given: Sequence[tuple[SiteEntry, str]]) -> Put:
        """(entry, secret) each, all or none; they are `ready` already, and `refusals` are none. CommandError."""
        async with self._database.tenant(self._tenant.id) as scope:
            known = await sites.kept(scope, [entry.name for entry, secret in given if not secret])
            try:
                seal = self._seal() if any(secret for _, secret in given) else None
                closed = [self._closed(entry, secret, known.get(entry.name), seal) for entry, secret in given]
            except SiteError as error:
                raise CommandError(error.problem, str(error).partition(": ")[0], error.remedy) from None
            return await sites.put(scope, closed)

    async def refusals(self, given: Sequence[tuple[SiteEntry, str]]) -> list[tuple[int, SiteError]]:
        """All that `import_` would refuse, by place in `given`; a missing key once, at the first that needs it."""
        async with self._database.tenant(self._tenant.id) as scope:
            known = await sites.kept(scope, [entry.name for entry, secret in given if not secret])
        found: list[tuple[int, SiteError]] = []
        needs_key = True
        for place, (entry, secret) in enumerate(given):
            try:
                if not secret:
                    _keeps(entry, known.get(entry.name))
                elif needs_key:
                    needs_key = False
                    self._seal()
            except SiteError as error:
                found.append((place, error))
            except CommandError as error:
                found.append((place, SiteError(entry.name, error.field, f"{error.message}; {error.remedy}")))
        return found

    def ready(self, entry: SiteEntry, secret: str) -> SiteEntry:
        """The entry as it will be kept. Raises SiteError; without a secret, what is kept is looked for later."""
        if self._catalog.site(entry.name):
            raise SiteError(entry.name, "name", "is the name of a site in channels.toml; choose another")
        spec = checked(entry, allow_private_addresses=self._catalog.allow_private_addresses)
        if secret:
            check_secret(entry, secret)
        return entry.model_copy(update={"base_url": spec.base_url})

    async def names(self, label: str | None, *, most: int) -> list[str]:
        """CommandError where there are more than `most`."""
        found = [site.name for site in await self.page(limit=most + 1, label=label)]
        if len(found) > most:
            raise CommandError(f"there are more than {most}", "sites", "name them, or a label that fewer of them bear")
        return found

    async def check(self, name: str, outside: Outside) -> SiteReport:
        """Whether it can be published to: a registered site, or one of channels.toml. Missing."""
        async with self._database.tenant(self._tenant.id) as scope:
            world = await world_at(scope, outside, name)
        if world is outside and self._catalog.site(name) is None:
            raise self._missing(name)
        return await world.check_site(name)

    async def _put(self, scope: Scope, entry: SiteEntry, secret: str) -> tuple[SiteView, bool]:
        if self._catalog.site(entry.name):
            raise Conflict(f"{entry.name!r} is a site of channels.toml", "name", "choose another name")
        try:
            ready = self.ready(entry, secret)
            known = await sites.kept(scope, [entry.name])
            seal = self._seal() if secret else None
            put = await sites.put(scope, [self._closed(ready, secret, known.get(entry.name), seal)])
        except SiteError as error:
            raise CommandError(error.problem, error.field or "name", error.remedy) from None
        return await self._standing(scope, entry.name), bool(put.new)

    def _closed(self, entry: SiteEntry, secret: str, known: Kept | None, seal: Seal | None) -> SealedEntry:
        if secret and seal is not None:
            belongs_to = (self._tenant.id, entry.name, origin_of(entry.base_url))
            return SealedEntry(
                entry=entry, sealed=seal.close(secret, belongs_to), sealed_print=seal.print_of(secret, belongs_to)
            )
        kept = _keeps(entry, known)
        return SealedEntry(entry=entry, sealed=kept.sealed, sealed_print=kept.sealed_print)

    async def _standing(self, scope: Scope, name: str) -> SiteView:
        found = await sites.find(scope, name)
        if found is None:
            raise self._missing(name)
        return found

    def _missing(self, name: str) -> Missing:
        return Missing(f"{name!r} is no site", "site", f"{self._listing} lists those that are registered")

    def _seal(self) -> Seal:
        try:
            return Seal(self._secret_key)
        except SealError as error:
            problem, _, remedy = str(error).partition("; ")
            raise CommandError(problem, "secret", remedy) from None


async def with_registered(scope: Scope, catalog: Catalog, names: Sequence[str]) -> Catalog:
    """The catalogue, with those of the named sites that it lacks and the tenant has registered."""
    lacking = [name for name in dict.fromkeys(names) if catalog.site(name) is None]
    if not lacking:
        return catalog
    try:
        found = [registered(scope.tenant_id, *one).spec for one in await sites.sealed(scope, lacking)]
    except SiteError as error:
        raise CommandError(error.problem, "sites", error.remedy) from None
    return catalog.model_copy(update={"sites": (*catalog.sites, *found)})


async def world_at(scope: Scope, outside: Outside, name: str) -> Outside:
    """`outside`, in which `name` means the tenant's registered site if it has one."""
    found = await sites.sealed(scope, [name])
    return outside.knowing(scope.tenant_id, *found[0]) if found else outside


def _keeps(entry: SiteEntry, known: Kept | None) -> Kept:
    """What holds the secret of an entry that gives none. Raises SiteError."""
    if known is None:
        raise SiteError(entry.name, "secret", f"is missing; a {entry.kind} site needs one")
    if known.kind != entry.kind or origin_of(known.base_url) != origin_of(entry.base_url):
        raise SiteError(entry.name, "secret", f"is missing; {_KEEP}")
    return known


def _entry(view: SiteView) -> SiteEntry:
    return SiteEntry(**{key: getattr(view, key) for key in SiteEntry.model_fields})
