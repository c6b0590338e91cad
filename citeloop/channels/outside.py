"""Everything outside, by name: the only place where dialects meet keys and the connection pool."""

import base64
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import TypeVar

import httpx

from citeloop.channels import engines, illustrators, writers
from citeloop.channels.addresses import Doors
from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.judging import judge
from citeloop.channels.ports import Call, Engine, Illustrator, Publisher, Writer
from citeloop.channels.publishers.webhook import WebhookSite
from citeloop.channels.publishers.wordpress import WordPress
from citeloop.channels.reply import HttpReply, read_body
from citeloop.channels.wire import HttpRequest, Wire
from citeloop.models.channel import Catalog, ChannelSpec, Role, SiteKind, SiteSpec
from citeloop.models.plan import CallPolicy
from citeloop.models.record import Record

T = TypeVar("T")

_SPARE_CONNECTIONS = 16
_PROBE = timedelta(seconds=3)
_NOT_OFFERED = frozenset({404, 405})


class ChannelGone(LookupError):  # noqa: N818 - a fact about the catalogue, handled by the next route
    """A plan names a channel or site that channels.toml no longer knows, or not in that role."""


class Probe(Record):
    ok: bool
    problem: str = ""
    """One line with the remedy; empty when all is well."""
    fault: Fault | None = None


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

    def signing_secret(self, name: str) -> str | None:
        """The `whsec_…` secret by which a webhook site's callbacks are verified; None for other sites."""
        site = self.site(name)
        return self._secret(site.name, site.secret_env) if site.kind is SiteKind.WEBHOOK else None

    async def probe(self, name: str) -> Probe:
        """Whether the channel is reachable and takes the key, by `GET {base_url}/models`; buys nothing."""
        spec = self.channel(name)
        policy = CallPolicy(connect=_PROBE, first_byte=_PROBE, between_chunks=_PROBE, total=_PROBE)
        try:
            key = self._secret(spec.name, spec.key_env)
            headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
            request = HttpRequest("GET", f"{spec.base_url}/models", headers)
            call = Call(purchase_id=f"probe/{spec.name}", policy=policy)
            await self._wire(spec, key).exchange(request, call, _accept_models)
        except ChannelError as error:
            return Probe(ok=False, problem=_explained(error, spec), fault=error.fault)
        return Probe(ok=True)

    async def close(self) -> None:
        if self._own:
            await self._http.aclose()

    def _new_publisher(self, site: SiteSpec) -> Publisher:
        secret = self._secret(site.name, site.secret_env)
        if site.kind is SiteKind.WEBHOOK:
            wire = Wire(self._http, site.name, secrets=(secret,), checked=True)
            return WebhookSite(site, secret, wire)
        user = self._variable(site.name, site.user_env)
        login = base64.b64encode(f"{user}:{secret}".encode()).decode()
        wire = Wire(self._http, site.name, secrets=(secret, login), checked=True)
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
    connections = _SPARE_CONNECTIONS + sum(one.concurrency for one in catalog.channels)
    connections += sum(one.concurrency for one in catalog.sites)
    doors = Doors(connections, allow_private_addresses=catalog.allow_private_addresses)
    return httpx.AsyncClient(transport=doors, trust_env=False, follow_redirects=False, timeout=None)  # noqa: S113 - wire.py keeps the clocks


def _dialect(table: Mapping[str, Callable[..., T]], spec: ChannelSpec) -> Callable[..., T]:
    if spec.dialect not in table:
        raise ChannelGone(f"channel {spec.name}: dialect {spec.dialect} is not known here")
    return table[spec.dialect]


def _accept_models(reply: HttpReply) -> None:
    if reply.status in _NOT_OFFERED:
        return
    if error := judge(reply, read_body(reply)):
        raise error


def _explained(error: ChannelError, spec: ChannelSpec) -> str:
    if error.fault is Fault.UNAUTHORIZED and error.status is not None:
        where = f"check {spec.key_env}" if spec.key_env else "name its key's variable in key_env"
        return f"{spec.name}: {spec.base_url} refuses the key (HTTP {error.status}); {where}"
    if error.status is None and error.fault in {Fault.UNAVAILABLE, Fault.TIMED_OUT}:
        return (
            f"{spec.name}: cannot reach {spec.base_url} ({error.message.removeprefix('cannot reach ')}); check base_url"
        )
    return error.message if error.message.startswith(spec.name) else f"{spec.name}: {error.message}"
