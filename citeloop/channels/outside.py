"""Everything outside, by name: the only place where dialects meet keys and the connection pool."""

import base64
import copy
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import TypeVar

import httpx

from citeloop.channels import engines, illustrators, probing, publishers, writers
from citeloop.channels.addresses import Doors
from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.ports import Ability, Call, Engine, Illustrator, Post, Publisher, SiteReport, Writer
from citeloop.channels.probing import Probe
from citeloop.channels.publishers.folder import Folder
from citeloop.channels.publishers.ghost import Ghost
from citeloop.channels.publishers.halo import Halo
from citeloop.channels.publishers.indexnow import IndexNow
from citeloop.channels.publishers.page_check import PageCheck, check_page
from citeloop.channels.publishers.webhook import WebhookSite
from citeloop.channels.publishers.wechat import WeChat
from citeloop.channels.publishers.wordpress import WordPress
from citeloop.channels.site_entries import SiteError, environ_of, origin_of, registered
from citeloop.channels.wire import Wire
from citeloop.models.channel import Catalog, ChannelSpec, Role, SiteKind, SiteSpec
from citeloop.models.plan import CallPolicy
from citeloop.models.site import RegisteredSite, SiteView
from citeloop.sealing import VARIABLE, Seal, SealError

T = TypeVar("T")

_SPARE_CONNECTIONS = 16
_REGISTERED_CONNECTIONS = 200
_MOST_PUBLISHERS = 1000
"""Of registered sites, kept for what they have learned; the one that was used longest ago is forgotten first."""
_PROBE = timedelta(seconds=3)
_SITE_CHECK = timedelta(seconds=20)
_START_AGAIN = "export it and start again"


class ChannelGone(LookupError):  # noqa: N818 - a fact about the catalogue, handled by the next route
    """A plan names a channel or site that channels.toml no longer knows, or not in that role."""


class Outside:
    """Channels and sites of one process, over one connection pool. Close it with `await close()`.

    environ: the only source of keys. http: a client to use as it is, for tests; then addresses are not checked.
    """

    def __init__(self, catalog: Catalog, environ: Mapping[str, str], http: httpx.AsyncClient | None = None) -> None:
        self._catalog = catalog
        self._environ = environ
        self._own = http is None
        self._http = http or _client(catalog)
        self._publishers: dict[str, Publisher] = {}
        self._learned: OrderedDict[tuple[str, str, int, bytes], Publisher] = OrderedDict()
        self._registered: Mapping[str, RegisteredSite] = {}
        self._gone: Mapping[str, str] = {}

    def knowing(self, tenant_id: str, entry: SiteView, sealed: bytes) -> "Outside":
        """The same outside world, in which one tenant's registered site stands under its name.

        Where channels.toml has a site of that name too, nobody can say which one is meant: then there is neither.
        """
        if self._catalog.site(entry.name):
            return self.lacking(entry.name, "is in channels.toml and in the registry; rename one of the two")
        try:
            site = registered(tenant_id, entry, sealed)
        except SiteError as error:
            return self.lacking(entry.name, f"stands in the registry with a mistake: {error}")
        view = copy.copy(self)
        view._registered = {entry.name: site}  # noqa: SLF001 - a view of our own kind
        view._own = False  # noqa: SLF001
        return view

    def lacking(self, site: str, why: str) -> "Outside":
        """The same outside world without that site."""
        view = copy.copy(self)
        view._gone = {site: why}  # noqa: SLF001
        view._own = False  # noqa: SLF001
        return view

    def channel(self, name: str) -> ChannelSpec:
        if spec := self._catalog.channel(name):
            return spec
        raise ChannelGone(f"channel {name} is not in channels.toml")

    def site(self, name: str) -> SiteSpec:
        if name in self._gone:
            raise ChannelGone(f"site {name} {self._gone[name]}")
        if name in self._registered:
            return self._registered[name].spec
        if spec := self._catalog.site(name):
            return spec
        raise ChannelGone(f"site {name} is not in channels.toml, nor registered")

    def registered(self, name: str) -> RegisteredSite | None:
        """None for a site of channels.toml."""
        return self._registered.get(name)

    def writer(self, name: str) -> Writer:
        """Raises ChannelGone, and ChannelError UNAUTHORIZED for a key that is not set (so do the next three)."""
        spec = self._with_role(name, Role.WRITE)
        key = self._key(spec)
        return _dialect(writers.DIALECTS, spec)(spec, key, self._wire(spec, key))

    def engine(self, name: str) -> Engine:
        spec = self._with_role(name, Role.ANSWER)
        key = self._key(spec)
        return _dialect(engines.DIALECTS, spec)(spec, key, self._wire(spec, key))

    def illustrator(self, name: str) -> Illustrator:
        spec = self._with_role(name, Role.ILLUSTRATE)
        key = self._key(spec)
        fetching = Wire(self._http, spec.name, secrets=(key,), checked=True)
        return _dialect(illustrators.DIALECTS, spec)(spec, key, self._wire(spec, key), fetching)

    def publisher(self, name: str) -> Publisher:
        """One instance per site: it learns how the site wants to be addressed."""
        if site := self._registered.get(name):
            return self._publisher_of(site)
        spec = self.site(name)
        if name not in self._publishers:
            self._publishers[name] = self._new_publisher(spec, self._environ)
        return self._publishers[name]

    def abilities(self, name: str) -> frozenset[Ability]:
        """What a post may ask of the site. Needs no key."""
        return publishers.ABILITIES[self.site(name).kind]

    async def check_site(self, name: str) -> SiteReport:
        """Whether the site is reachable, takes the login and grants what is needed; posts nothing that stays."""
        site = self.site(name)
        policy = site.policy.model_copy(update={"total": _SITE_CHECK})
        try:
            return await self.publisher(name).check(Call(purchase_id=f"check/{name}", policy=policy))
        except ChannelError as error:
            return SiteReport(problems=(error.message,))

    async def check_page(self, name: str, url: str, post: Post, call: Call) -> PageCheck:
        """Whether answer engines can read the published page."""
        return await check_page(Wire(self._http, name, checked=True), url, post, call)

    def indexnow(self, name: str) -> IndexNow | None:
        """None for a site without a key."""
        site = self.site(name)
        wire = Wire(self._http, name, checked=name in self._registered)
        return IndexNow(site.base_url, site.indexnow_key, wire) if site.indexnow_key else None

    def signing_secret(self, name: str) -> str | None:
        """The `whsec_…` secret by which a webhook site's callbacks are verified; None for other sites."""
        site = self.site(name)
        if site.kind is not SiteKind.WEBHOOK:
            return None
        if registered := self._registered.get(name):
            return self._opened(registered)
        return self._secret(site.name, site.secret_env)

    async def probe(self, name: str) -> Probe:
        """Whether the channel is reachable, takes the key and knows the model; buys nothing."""
        spec = self.channel(name)
        policy = CallPolicy(connect=_PROBE, first_byte=_PROBE, between_chunks=_PROBE, total=_PROBE)
        try:
            key = self._key(spec)
            call = Call(purchase_id=f"probe/{spec.name}", policy=policy)
            answered = await self._wire(spec, key).exchange(
                probing.probe_request(spec, key), call, probing.decode_probe
            )
        except ChannelError as error:
            return probing.failed(spec, error)
        return probing.found(spec, answered)

    async def close(self) -> None:
        if self._own:
            await self._http.aclose()

    def _publisher_of(self, site: RegisteredSite) -> Publisher:
        key = (site.tenant_id, site.spec.name, site.revision, site.sealed)
        if key not in self._learned:
            if site.spec.kind is SiteKind.FOLDER:
                raise ChannelGone(f"site {site.spec.name} is a folder: only channels.toml may name one")
            self._learned[key] = self._new_publisher(site.spec, environ_of(site.user, self._opened(site)))
            while len(self._learned) > _MOST_PUBLISHERS:
                self._learned.popitem(last=False)
        self._learned.move_to_end(key)
        return self._learned[key]

    def _opened(self, site: RegisteredSite) -> str:
        """The secret, in memory only. Raises ChannelError UNAUTHORIZED."""
        try:
            belongs_to = (site.tenant_id, site.spec.name, origin_of(site.spec.base_url))
            return Seal(self._environ.get(VARIABLE)).open(site.sealed, belongs_to)
        except SealError as error:
            raise ChannelError(Fault.UNAUTHORIZED, f"{site.spec.name}: {error}") from None

    def _new_publisher(self, site: SiteSpec, environ: Mapping[str, str]) -> Publisher:
        if site.kind is SiteKind.FOLDER:
            return Folder(site, environ)
        user = self._variable(site.name, site.user_env, environ)
        secret = self._secret(site.name, site.secret_env, environ)
        login = base64.b64encode(f"{user}:{secret}".encode()).decode()
        wire = Wire(self._http, site.name, secrets=(secret, secret.rpartition(":")[2], login), checked=True)
        match site.kind:
            case SiteKind.WEBHOOK:
                return WebhookSite(site, secret, wire)
            case SiteKind.GHOST:
                return Ghost(site, secret, wire)
            case SiteKind.HALO:
                return Halo(site, secret, wire)
            case SiteKind.WECHAT:
                return WeChat(site, user, secret, wire)
            case SiteKind.WORDPRESS:
                return WordPress(site, user, secret, wire)

    def _with_role(self, name: str, role: Role) -> ChannelSpec:
        spec = self.channel(name)
        if role not in spec.roles:
            raise ChannelGone(f"channel {name} does not {role}; its roles are {', '.join(sorted(spec.roles))}")
        return spec

    def _wire(self, spec: ChannelSpec, key: str) -> Wire:
        return Wire(self._http, spec.name, secrets=(key,), pool=spec.name)

    def _key(self, spec: ChannelSpec) -> str:
        # Who lacks it pauses the channel, and no restart ends a pause.
        remedy = f"export it, start again, then `citeloop channels resume {spec.name}`"
        return self._secret(spec.name, spec.key_env, remedy=remedy)

    def _secret(
        self, name: str, variable: str | None, environ: Mapping[str, str] | None = None, remedy: str = _START_AGAIN
    ) -> str:
        secret = self._variable(name, variable, environ, remedy)
        if not secret.isascii() or not secret.isprintable():
            raise ChannelError(
                Fault.UNAUTHORIZED, f"{name}: {variable} holds characters that no key has; copy it again"
            )
        return secret

    def _variable(
        self, name: str, variable: str | None, environ: Mapping[str, str] | None = None, remedy: str = _START_AGAIN
    ) -> str:
        if variable is None:
            return ""
        value = (self._environ if environ is None else environ).get(variable, "").strip()
        if not value:
            raise ChannelError(Fault.UNAUTHORIZED, f"{name}: {variable} is not set; {remedy}")
        return value


def _client(catalog: Catalog) -> httpx.AsyncClient:
    # At INFO httpx logs whole addresses; WeChat's token and some callbacks' stand in the query.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    connections = _SPARE_CONNECTIONS + sum(one.concurrency for one in catalog.channels)
    connections += _REGISTERED_CONNECTIONS + sum(one.concurrency for one in catalog.sites)
    doors = Doors(connections, allow_private_addresses=catalog.allow_private_addresses)
    return httpx.AsyncClient(transport=doors, trust_env=False, follow_redirects=False, timeout=None)  # noqa: S113 - wire.py keeps the clocks


def _dialect(table: Mapping[str, Callable[..., T]], spec: ChannelSpec) -> Callable[..., T]:
    if spec.dialect not in table:
        raise ChannelGone(f"channel {spec.name}: dialect {spec.dialect} is not known here")
    return table[spec.dialect]
