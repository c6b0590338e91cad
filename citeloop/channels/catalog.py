"""channels.toml: what channels and sites this installation knows, checked before anything starts."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypedDict

from citeloop.channels import publishers
from citeloop.channels.channel_entries import channel_in
from citeloop.channels.entry_fields import base_url_in, name_in, policy_in, variable_in
from citeloop.channels.fallbacks import check_fallbacks
from citeloop.channels.ports import Ability
from citeloop.channels.prices import read_prices
from citeloop.channels.publishers import indexnow
from citeloop.channels.toml_spots import CatalogError, Spot, read_toml
from citeloop.models.channel import Catalog, Generator, SiteKind, SiteSpec
from citeloop.models.record import Record

__all__ = ["NEEDED_BY_KIND", "CatalogError", "MissingKey", "load", "missing_keys", "site_in"]

_SITE_KEYS = (
    "kind", "base_url", "user_env", "secret_env", "rate", "concurrency", "max_server_time", "callback_deadline",
    "owned", "tags", "categories", "author", "indexnow_key", "folder", "generator", "section", "push",
    "timeouts", "retry",
)  # fmt: skip
NEEDED_BY_KIND = {
    SiteKind.WORDPRESS: {"user_env": "naming the variable with the user", "secret_env": "naming that of its password"},
    SiteKind.WEBHOOK: {"secret_env": "naming the variable with the `whsec_…` secret"},
    SiteKind.GHOST: {"secret_env": "naming the variable with the Admin API key"},
    SiteKind.HALO: {"secret_env": "naming the variable with the `pat_…` token"},
    SiteKind.WECHAT: {"user_env": "naming the variable with the AppID", "secret_env": "naming that of the AppSecret"},
    SiteKind.FOLDER: {"folder": "with the root of the project", "generator": "with hugo, jekyll or astro"},
}
_OF_FOLDERS = ("folder", "generator", "section", "push")
_SECTION = re.compile(r"[a-z0-9]+(?:[-/][a-z0-9]+)*")


class MissingKey(Record):
    """A credential that the environment does not hold."""

    name: str
    """The channel or site."""
    variable: str
    place: str = ""
    """Where channels.toml names it, with its line."""

    @property
    def message(self) -> str:
        where = self.place or self.name
        return f"{where}: {self.variable} is not set; export it, or remove {self.name} from channels.toml"


def load(path: Path, environ: Mapping[str, str]) -> Catalog:
    """Read and check channels.toml. Every mistake is a CatalogError naming file, line, field and remedy.

    `{env:NAME}` inside a base_url is replaced from `environ`. Keys are not read here: see `missing_keys`.
    """
    root = read_toml(path).table(("allow_private_addresses", "channels", "sites"))
    channels = root["channels"].table() if "channels" in root else {}
    sites = root["sites"].table() if "sites" in root else {}
    private = root.get("allow_private_addresses")
    prices = read_prices()
    known = {name: channel_in(spot, environ, prices) for name, spot in channels.items()}
    check_fallbacks(channels, known)
    return Catalog(
        channels=tuple(known.values()),
        sites=tuple(site_in(spot, environ) for spot in sites.values()),
        allow_private_addresses=private.flag() if private else False,
    )


def missing_keys(catalog: Catalog, environ: Mapping[str, str], names: Iterable[str]) -> list[MissingKey]:
    """The variables that the named channels and sites need and `environ` lacks. Unknown names are passed over."""
    missing = []
    for name in names:
        channel, site = catalog.channel(name), catalog.site(name)
        variables = [channel.key_env] if channel else []
        variables += [site.user_env, site.secret_env] if site else []
        missing += [
            MissingKey(name=name, variable=one, place=channel.key_place if channel else "")
            for one in variables
            if one and not environ.get(one, "").strip()
        ]
    return missing


def site_in(spot: Spot, environ: Mapping[str, str]) -> SiteSpec:
    """A table of channels.toml, or an entry of the registry: the same rules for both. Raises CatalogError."""
    name = name_in(spot)
    fields = spot.table(_SITE_KEYS, required=("kind", "base_url"))
    kind = fields["kind"].choice(SiteKind)
    for key, told in NEEDED_BY_KIND[kind].items():
        if key not in fields:
            raise spot.wrong(f'{key} is missing; add a line `{key} = "…"` {told}')
    default = SiteSpec(name=name, kind=kind, base_url="")
    deadline, server_time = fields.get("callback_deadline"), fields.get("max_server_time")
    return SiteSpec(
        name=name,
        kind=kind,
        base_url=base_url_in(fields["base_url"], environ),
        user_env=variable_in(fields.get("user_env")),
        secret_env=variable_in(fields.get("secret_env")),
        rate=fields["rate"].rate() if "rate" in fields else None,
        concurrency=fields["concurrency"].whole(1, 1000) if "concurrency" in fields else default.concurrency,
        max_server_time=server_time.duration() if server_time else default.max_server_time,
        owned=fields["owned"].flag() if "owned" in fields else default.owned,
        callback_deadline=deadline.duration() if deadline else default.callback_deadline,
        policy=policy_in(fields, default.policy),
        indexnow_key=_indexnow_key(fields.get("indexnow_key")),
        **_given(fields, kind),
        **_project(fields, kind),
    )


class _Given(TypedDict):
    tags: tuple[str, ...]
    categories: tuple[str, ...]
    author: str


def _given(fields: Mapping[str, Spot], kind: SiteKind) -> _Given:
    """What every post of the site gets, if sites of this kind can show it."""
    for key in ("tags", "categories", "author"):
        ability = Ability.AUTHOR if key == "author" else Ability(key)
        if key in fields and ability not in publishers.ABILITIES[kind]:
            raise fields[key].wrong(f"a {kind} site takes no {key}; remove the line")
    return {
        "tags": _texts(fields["tags"]) if "tags" in fields else (),
        "categories": _texts(fields["categories"]) if "categories" in fields else (),
        "author": fields["author"].text() if "author" in fields else "",
    }


class _Project(TypedDict, total=False):
    folder: str
    generator: Generator
    section: str
    push: bool


def _project(fields: Mapping[str, Spot], kind: SiteKind) -> _Project:
    if kind is not SiteKind.FOLDER:
        for key in _OF_FOLDERS:
            if key in fields:
                raise fields[key].wrong(f"belongs to folder sites; a {kind} site has none")
        return {}
    section = fields["section"].text() if "section" in fields else "posts"
    if not _SECTION.fullmatch(section):
        raise fields["section"].wrong('must be a part of an address, such as "posts" or "blog/guides"')
    return {
        "folder": fields["folder"].text(),
        "generator": fields["generator"].choice(Generator),
        "section": section,
        "push": fields["push"].flag() if "push" in fields else False,
    }


def _texts(spot: Spot) -> tuple[str, ...]:
    values = spot.value
    if not isinstance(values, list) or not all(isinstance(one, str) and one.strip() for one in values):
        raise spot.wrong('must be a list of texts, such as ["Guides"]')
    return tuple(one.strip() for one in values)


def _indexnow_key(spot: Spot | None) -> str:
    if spot is None:
        return ""
    if not indexnow.KEY.fullmatch(spot.text()):
        raise spot.wrong("must be 8 to 128 letters, digits and hyphens; it is no secret, so write it out")
    return spot.text()
