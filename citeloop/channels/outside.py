"""Everything outside, by name: the only place where dialects meet keys and the connection pool."""

import base64
import logging
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
from citeloop.channels.wire import Wire
from citeloop.models.channel import Catalog, ChannelSpec, Role, SiteKind, SiteSpec
from citeloop.models.plan import CallPolicy

T = TypeVar("T")

_SPARE_CONNECTIONS = 16
_PROBE = timedelta(seconds=3)
_SITE_CHECK = timedelta(seconds=20)


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

    def channel(self, name: str) -> ChannelSpec:
        if spec := self._catalog.channel(name):
            return spec
        raise ChannelGone(f"channel {name} is not in channels.toml")

    def site(self, name: str) -> SiteSpec:
        if spec := self._catalog.site(name):
            return spec
        raise ChannelGone(f"site {name} is not in channels.toml")

    def writer(self, name: str) -> Writer:
        """Raises ChannelGone, and ChannelError UNAUTHORIZED for a key that is not set (so do the next three)."""
        spec = self._with_role(name, Role.WRITE)
        key = self._secret(spec.name, spec.key_env)
        return _dialect(writers.DIALECTS, spec)(spec, key, self._wire(spec, key))

    def engine(self, name: str) -> Engine:
        spec = self._with_role(name, Role.ANSWER)
        key = self._secret(spec.name, spec.key_env)
        return _dialect(engines.DIALECTS, spec)(spec, key, self._wire(spec, key))

    def illustrator(self, name: str) -> Illustrator:
        spec = self._with_role(name, Role.ILLUSTRATE)
        key = self._secret(spec.name, spec.key_env)
        fetching = Wire(self._http, spec.name, secrets=(key,), checked=True)
        return _dialect(illustrators.DIALECTS, spec)(spec, key, self._wire(spec, key), fetching)

    def publisher(self, name: str) -> Publisher:
        """One instance per site: it learns how the site wants to be addressed."""
        if name not in self._publishers:
            self._publishers[name] = self._new_publisher(self.site(name))
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
        return IndexNow(site.base_url, site.indexnow_key, Wire(self._http, name)) if site.indexnow_key else None

    def signing_secret(self, name: str) -> str | None:
        """The `whsec_…` secret by which a webhook site's callbacks are verified; None for other sites."""
        site = self.site(name)
        return self._secret(site.name, site.secret_env) if site.kind is SiteKind.WEBHOOK else None

    async def probe(self, name: str) -> Probe:
        """Whether the channel is reachable, takes the key and knows the model; buys nothing."""
        spec = self.channel(name)
        policy = CallPolicy(connect=_PROBE, first_byte=_PROBE, between_chunks=_PROBE, total=_PROBE)
        try:
            key = self._secret(spec.name, spec.key_env)
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

    def _new_publisher(self, site: SiteSpec) -> Publisher:
        if site.kind is SiteKind.FOLDER:
            return Folder(site, self._environ)
        user, secret = self._variable(site.name, site.user_env), self._secret(site.name, site.secret_env)
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
        return Wire(self._http, spec.name, secrets=(key,))

    def _secret(self, name: str, variable: str | None) -> str:
        secret = self._variable(name, variable)
        if not secret.isascii() or not secret.isprintable():
            raise ChannelError(
                Fault.UNAUTHORIZED, f"{name}: {variable} holds characters that no key has; copy it again"
            )
        return secret

    def _variable(self, name: str, variable: str | None) -> str:
        if variable is None:
            return ""
        value = self._environ.get(variable, "").strip()
        if not value:
            raise ChannelError(Fault.UNAUTHORIZED, f"{name}: {variable} is not set; export it and start again")
        return value


def _client(catalog: Catalog) -> httpx.AsyncClient:
    # At INFO httpx logs whole addresses; WeChat's token and some callbacks' stand in the query.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    connections = _SPARE_CONNECTIONS + sum(one.concurrency for one in catalog.channels)
    connections += sum(one.concurrency for one in catalog.sites)
    doors = Doors(connections, allow_private_addresses=catalog.allow_private_addresses)
    return httpx.AsyncClient(transport=doors, trust_env=False, follow_redirects=False, timeout=None)  # noqa: S113 - wire.py keeps the clocks


def _dialect(table: Mapping[str, Callable[..., T]], spec: ChannelSpec) -> Callable[..., T]:
    if spec.dialect not in table:
        raise ChannelGone(f"channel {spec.name}: dialect {spec.dialect} is not known here")
    return table[spec.dialect]
