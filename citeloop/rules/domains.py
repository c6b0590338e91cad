"""Whose page an address is: registrable domains by the Public Suffix List, and the same page by host and path."""

import ipaddress
from collections.abc import Iterable
from functools import cache, lru_cache
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from publicsuffixlist import PublicSuffixList

_TRACKING = frozenset({"gclid", "fbclid", "msclkid", "spm", "from", "ref", "source"})
_SCRIPTS = (".php", ".asp", ".aspx", ".jsp", ".cgi")
_DEFAULT_PORTS = {"http": 80, "https": 443}


@cache
def _suffixes() -> PublicSuffixList:
    return PublicSuffixList(accept_unknown=False)


def _split(url: str) -> SplitResult | None:
    candidate = url.strip()
    if "://" not in candidate:
        candidate = "https://" + candidate.removeprefix("//")
    try:
        parts = urlsplit(candidate)
        _ = parts.port
    except ValueError:
        return None
    return parts if parts.hostname else None


@lru_cache(maxsize=1024)
def host_of(url: str) -> str | None:
    """The host in lower case and Punycode, without port and final dot; None where there is none."""
    parts = _split(url)
    if parts is None or parts.hostname is None:
        return None
    host = parts.hostname.rstrip(".").lower()
    try:
        return host.encode("idna").decode() or None
    except UnicodeError:
        return host or None


@lru_cache(maxsize=1024)
def registrable_domain(url: str) -> str | None:
    """`https://docs.example.co.uk/x` → `example.co.uk`; `a.github.io` is one of its own, `github.io` is nobody's.

    An IP address or a name outside the list (`localhost`) is its own domain.
    """
    host = host_of(url)
    if host is None:
        return None
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        pass
    registrable: str | None = _suffixes().privatesuffix(host)
    if registrable:
        return registrable
    return None if _suffixes().is_public(host) and "." in host else host


def has_public_suffix(host: str) -> bool:
    """Whether a dotted name ends in a suffix of the list and has a label before it."""
    return _suffixes().privatesuffix(host.lower()) is not None


def owns(domains: Iterable[str], url: str) -> bool:
    """Whether `url` lies on one of the owned domains.

    An owned `example.com` owns every host under it. An owned host that is longer than its registrable
    domain (`brand.substack.com`) owns only itself and what lies under it, never its neighbours.
    """
    host = host_of(url)
    if host is None:
        return False
    hosts = [owned.removeprefix("www.") for owned in map(host_of, domains) if owned is not None]
    return any(_owns(owned, host) for owned in hosts)


def _owns(owned: str, host: str) -> bool:
    if host == owned:
        return True
    registrable = registrable_domain(owned)
    if registrable == owned:
        return registrable_domain(host) == owned
    return registrable is not None and host.endswith("." + owned)


def page_key(url: str) -> tuple[str, str] | None:
    """Host (with an unusual port) and path, as compared: no scheme, `www.`, query, fragment or final slash."""
    parts = _split(url)
    host = host_of(url)
    if parts is None or host is None:
        return None
    host = host.removeprefix("www.")
    if parts.port and parts.port != _DEFAULT_PORTS.get(parts.scheme):
        host = f"{host}:{parts.port}"
    return host, unquote(parts.path).rstrip("/")


def _query(url: str) -> set[tuple[str, str]]:
    parts = _split(url)
    pairs = parse_qsl(parts.query) if parts else []
    return {
        (name, value) for name, value in pairs if name.lower() not in _TRACKING and not name.lower().startswith("utm_")
    }


def cites_page(answer_urls: Iterable[str], page_url: str) -> bool:
    """Whether one of the cited addresses is this page, by host and path.

    Where the path names no page (`/?p=12`, `show.php?id=3`) the page's own query must be there too.
    """
    key = page_key(page_url)
    if key is None:
        return False
    wanted = _query(page_url) if not key[1] or key[1].endswith(_SCRIPTS) else set()
    return any(page_key(url) == key and wanted <= _query(url) for url in answer_urls)


def distinct(urls: Iterable[str]) -> tuple[str, ...]:
    """The addresses in order, each page once."""
    seen: dict[tuple[object, ...], str] = {}
    for url in urls:
        key = page_key(url)
        if key is not None:
            seen.setdefault((*key, *sorted(_query(url))), url)
    return tuple(seen.values())
