"""Sites in channels.toml: what each kind needs and takes, and the publisher that comes of it."""

from pathlib import Path

import pytest

from citeloop.channels.catalog import CatalogError, load
from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.outside import Outside
from citeloop.channels.ports import Ability
from citeloop.channels.publishers.folder import Folder
from citeloop.channels.publishers.ghost import Ghost
from citeloop.channels.publishers.halo import Halo
from citeloop.channels.publishers.webhook import WebhookSite
from citeloop.channels.publishers.wechat import WeChat
from citeloop.channels.publishers.wordpress import WordPress
from citeloop.models.channel import Catalog, Generator

SITES = """\
allow_private_addresses = true

[sites.blog]
kind = "wordpress"
base_url = "https://blog.example"
user_env = "U"
secret_env = "S"
tags = ["Tea", " R&D "]
categories = ["Guides"]
indexnow_key = "a1b2c3d4e5f6"

[sites.hook]
kind = "webhook"
base_url = "https://hook.example"
secret_env = "S"
author = "A. Writer"

[sites.docs]
kind = "folder"
base_url = "https://docs.example"
folder = "/srv/docs"
generator = "astro"
section = "blog/guides"
push = true

[sites.ghost]
kind = "ghost"
base_url = "https://ghost.example"
secret_env = "S"

[sites.halo]
kind = "halo"
base_url = "https://halo.example"
secret_env = "S"

[sites.wx]
kind = "wechat"
base_url = "https://api.weixin.qq.com"
user_env = "U"
secret_env = "S"
"""
ENVIRON = {"U": "user", "S": "whsec_Y2l0ZWxvb3Agc2FuZGJveCwgMzIgYnl0ZXMgbG9uZyE="}


def loaded(tmp_path: Path, text: str) -> Catalog:
    path = tmp_path / "channels.toml"
    path.write_text(text, encoding="utf-8")
    return load(path, ENVIRON)


async def test_every_kind_of_site_becomes_its_publisher(tmp_path: Path) -> None:
    outside = Outside(loaded(tmp_path, SITES), ENVIRON)
    kinds = {"blog": WordPress, "hook": WebhookSite, "docs": Folder, "ghost": Ghost, "halo": Halo, "wx": WeChat}
    for name, kind in kinds.items():
        publisher = outside.publisher(name)
        assert type(publisher) is kind
        assert outside.abilities(name) == publisher.abilities
    await outside.close()


def test_what_every_post_of_a_site_gets_and_where_a_folder_lies(tmp_path: Path) -> None:
    catalog = loaded(tmp_path, SITES)
    blog, docs = catalog.site("blog"), catalog.site("docs")
    assert blog is not None
    assert docs is not None
    assert (blog.tags, blog.categories, blog.indexnow_key) == (("Tea", "R&D"), ("Guides",), "a1b2c3d4e5f6")
    assert (docs.folder, docs.generator, docs.section, docs.push) == ("/srv/docs", Generator.ASTRO, "blog/guides", True)
    assert docs.secret_env is None


HALO = '[sites.halo]\nkind = "halo"\nbase_url = "https://h.example"\nsecret_env = "S"\n'
DOCS = '[sites.docs]\nkind = "folder"\nbase_url = "https://d.example"\nfolder = "/srv"\ngenerator = "hugo"\n'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (HALO.replace('secret_env = "S"\n', ""), "secret_env is missing"),
        (HALO + 'tags = ["x"]\n', "a halo site takes no tags"),
        (HALO + 'author = "x"\n', "a halo site takes no author"),
        (HALO + 'folder = "/srv"\n', "belongs to folder sites"),
        (HALO + 'indexnow_key = "no key!"\n', "8 to 128"),
        (DOCS.replace('folder = "/srv"\n', ""), "folder is missing"),
        (DOCS.replace('generator = "hugo"\n', ""), "generator is missing"),
        (DOCS.replace("hugo", "hogo"), "did you mean hugo"),
        (DOCS + 'section = "../up"\n', "part of an address"),
        (DOCS + 'tags = "Tea"\n', "a list of texts"),
        (DOCS + 'push = "yes"\n', "true or false"),
        (HALO.replace("halo", "wechat"), "user_env is missing"),
    ],
)
def test_a_mistake_is_told_with_its_line_and_remedy(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(CatalogError, match=r"channels\.toml:\d+: ") as raised:
        loaded(tmp_path, text)
    assert told in str(raised.value)


async def test_a_check_of_a_site_without_its_key_names_the_variable(tmp_path: Path) -> None:
    outside = Outside(loaded(tmp_path, SITES), {})
    report = await outside.check_site("ghost")
    assert report.problems == ("ghost: S is not set; export it and start again",)
    with pytest.raises(ChannelError) as raised:
        outside.publisher("ghost")
    assert raised.value.fault is Fault.UNAUTHORIZED
    assert Ability.JSON_LD in outside.abilities("ghost")
    await outside.close()


async def test_only_a_site_with_a_key_is_pinged_for(tmp_path: Path) -> None:
    outside = Outside(loaded(tmp_path, SITES), ENVIRON)
    indexnow = outside.indexnow("blog")
    assert indexnow is not None
    assert indexnow.key_file == "https://blog.example/a1b2c3d4e5f6.txt"
    assert outside.indexnow("hook") is None
    await outside.close()
