"""Dialects that publish. One kind of site, one file; a new one is named here, in SiteKind and in outside.py."""

from collections.abc import Mapping
from typing import Literal

from citeloop.channels.ports import Ability
from citeloop.channels.publishers.folder import Folder
from citeloop.channels.publishers.ghost import Ghost
from citeloop.channels.publishers.halo import Halo
from citeloop.channels.publishers.webhook import WebhookSite
from citeloop.channels.publishers.wechat import WeChat
from citeloop.channels.publishers.wordpress import WordPress
from citeloop.models.channel import SiteKind

ABILITIES: Mapping[SiteKind, frozenset[Ability]] = {
    SiteKind.WORDPRESS: WordPress.abilities,
    SiteKind.WEBHOOK: WebhookSite.abilities,
    SiteKind.FOLDER: Folder.abilities,
    SiteKind.GHOST: Ghost.abilities,
    SiteKind.HALO: Halo.abilities,
    SiteKind.WECHAT: WeChat.abilities,
}

TESTED_AGAINST: Mapping[SiteKind, Literal["real service", "documented shape"]] = {
    SiteKind.WORDPRESS: "real service",
    SiteKind.WEBHOOK: "documented shape",
    SiteKind.FOLDER: "real service",
    SiteKind.GHOST: "documented shape",
    SiteKind.HALO: "documented shape",
    SiteKind.WECHAT: "documented shape",
}
"""How far our knowledge of each kind goes."""
