"""Entries of the site registry, judged by the rules of channels.toml and by those for what a user may name."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from urllib.parse import urlsplit

from citeloop.channels import signing
from citeloop.channels.addresses import is_public
from citeloop.channels.catalog import NEEDED_BY_KIND, CatalogError, site_in
from citeloop.channels.signing import SignatureError
from citeloop.channels.toml_spots import Spot
from citeloop.models.channel import SiteKind, SiteSpec
from citeloop.models.site import SECRET, USER, RegisteredSite, SiteEntry, SiteView

SETTINGS = (
    "max_server_time", "callback_deadline", "owned", "tags", "categories", "author", "indexnow_key", "timeouts",
    "retry",
)  # fmt: skip
MOST_AT_ONCE = 10
"""Of a registered site: the workers' slots belong to all tenants, and a site that hangs holds as many of them, for as
long as LONGEST_CALL."""
LONGEST_CALL = timedelta(minutes=10)
_LABEL = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_MOST_LABELS = 20
_LOCAL = ("localhost", ".localhost", ".local", ".internal", ".localdomain")


class SiteError(CatalogError):
    """A mistake in one entry: `blog.rate: …`. field: without the site's name."""

    def __init__(self, site: str, field: str, problem: str) -> None:
        super().__init__(f"{site}.{field}: {problem}" if field else f"{site}: {problem}")
        self.field = field
        self.problem, _, self.remedy = problem.partition("; ")


class _Entry(Spot):
    """A value of an entry: what is wrong with it is told by field, not by line."""

    def __init__(self, path: tuple[str, ...], value: object) -> None:
        super().__init__("", {}, path, value)
        self._names = path
        self._held = value

    def wrong(self, problem: str) -> SiteError:
        return SiteError(self._names[0], ".".join(self._names[1:]), problem)

    def _below(self, key: str, value: object) -> Spot:
        return _Entry((*self._names, key), value)


def spec_of(entry: SiteEntry) -> SiteSpec:
    """The entry as a site of channels.toml. Raises SiteError."""
    fields: dict[str, object] = {"kind": str(entry.kind), "base_url": entry.base_url, "concurrency": entry.concurrency}
    if entry.rate is not None:
        fields["rate"] = entry.rate
    if entry.user:
        fields["user_env"] = USER
    if "secret_env" in NEEDED_BY_KIND[entry.kind]:
        fields["secret_env"] = SECRET
    for key, value in entry.settings.items():
        if key not in SETTINGS:
            raise SiteError(entry.name, key, f"is no known setting; known are {', '.join(SETTINGS)}")
        fields[key] = value
    return site_in(_Entry((entry.name,), fields), {})


def checked(entry: SiteEntry, *, allow_private_addresses: bool) -> SiteSpec:
    """`spec_of`, and what is asked of a user's entry besides. Raises SiteError."""
    if entry.kind is SiteKind.FOLDER:
        raise SiteError(
            entry.name, "kind", "a folder stands on the worker's machine; its operator names it in channels.toml"
        )
    if "user_env" in NEEDED_BY_KIND[entry.kind] and not entry.user:
        raise SiteError(entry.name, "user", f"is missing; a {entry.kind} site needs one")
    if len(entry.user) > 200 or not entry.user.isprintable():  # noqa: PLR2004 - longer than any login
        raise SiteError(entry.name, "user", "is no login; write up to 200 printable characters")
    if not 1 <= entry.concurrency <= MOST_AT_ONCE:
        raise SiteError(entry.name, "concurrency", f"is {entry.concurrency}; write 1 to {MOST_AT_ONCE}")
    _check_labels(entry.name, entry.labels)
    if not entry.base_url.isprintable():
        raise SiteError(entry.name, "base_url", "holds characters that no address has; type it again")
    spec = spec_of(entry)
    if spec.policy.total > LONGEST_CALL:
        raise SiteError(entry.name, "timeouts.total", "keeps others waiting for too long; write up to 10m")
    if not allow_private_addresses and (host := urlsplit(spec.base_url).hostname) and _is_private(host):
        raise SiteError(
            entry.name,
            "base_url",
            f"{host} is a private address; the operator allows those with allow_private_addresses in channels.toml",
        )
    return spec


def registered(tenant_id: str, entry: SiteView, sealed: bytes) -> RegisteredSite:
    """As a worker needs it; the secret stays sealed. Raises SiteError where the rules have changed since."""
    return RegisteredSite(
        tenant_id=tenant_id,
        spec=spec_of(entry),
        user=entry.user,
        sealed=sealed,
        state=entry.state,
        revision=entry.revision,
        updated_at=entry.updated_at,
    )


def check_secret(entry: SiteEntry, secret: str) -> None:
    """Raises SiteError for what no site of this kind has as its secret; the secret is never quoted."""
    if not secret:
        raise SiteError(entry.name, SECRET, f"is missing; a {entry.kind} site needs one")
    if len(secret) > 1000 or not secret.isascii() or not secret.isprintable():  # noqa: PLR2004 - longer than any
        raise SiteError(entry.name, SECRET, "holds characters that no key has; copy it again")
    if entry.kind is SiteKind.WEBHOOK:
        try:
            signing.signed_headers(secret, "m", datetime.now(UTC), b"")
        except SignatureError as error:
            raise SiteError(entry.name, SECRET, str(error)) from None


def origin_of(base_url: str) -> str:
    """Scheme, host and port: what a secret is bound to, so that nobody sends it elsewhere by a new address."""
    parts = urlsplit(base_url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return f"{parts.scheme}://{(parts.hostname or '').lower()}:{port}"


def environ_of(user: str, secret: str) -> Mapping[str, str]:
    return {USER: user, SECRET: secret}


def _check_labels(site: str, labels: Sequence[str]) -> None:
    if len(labels) > _MOST_LABELS:
        raise SiteError(site, "labels", f"are {len(labels)}; up to {_MOST_LABELS} are kept")
    for label in labels:
        if not _LABEL.fullmatch(label):
            raise SiteError(site, "labels", f"{label[:40]!r} is no label; use small letters, digits, - and _")


def _is_private(host: str) -> bool:
    """By its spelling; what a name leads to is checked when a connection is made."""
    try:
        ip_address(host.partition("%")[0])
    except ValueError:
        return host.rstrip(".").endswith(_LOCAL) or not re.search(r"[a-z]", host.lower())
    return not is_public(host)
