"""Where Hugo, Jekyll and Astro keep a post, and how the file looks that each of them builds.

The body is the sanitised HTML that was approved, not Markdown: generators differ in the Markdown they read and let raw
HTML through. Template marks (`{{`, `{%`) would be run by Hugo and Jekyll even inside code, so they are written as
entities. Hugo and Jekyll read content as .html; Astro reads .md, in which one HTML block without a blank line passes
as it is.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from citeloop.channels.ports import Post
from citeloop.channels.publishers import markup
from citeloop.models.channel import Generator

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]+")
_TEMPLATE = re.compile(r"\{(?=[{%#])")
_BLANK_LINE = re.compile(r"\n(?=[ \t]*\n)")
_FIELD = re.compile(r'^(citeloop|slug|date): "?([^"\n]*)"?$', re.MULTILINE)
HEAD_BYTES = 8192
"""In which the front matter of a page of ours ends."""
_DESCRIPTION = 500

CONFIGURATIONS: Mapping[Generator, tuple[str, ...]] = {
    Generator.HUGO: ("hugo.toml", "hugo.yaml", "hugo.json", "config.toml", "config.yaml", "config.json", "config"),
    Generator.JEKYLL: ("_config.yml", "_config.yaml", "_config.toml"),
    Generator.ASTRO: ("astro.config.mjs", "astro.config.ts", "astro.config.js", "astro.config.cjs"),
}
STATIC: Mapping[Generator, str] = {Generator.HUGO: "static", Generator.JEKYLL: ".", Generator.ASTRO: "public"}
"""The folder whose files appear at the root of the site."""


@dataclass(frozen=True, slots=True)
class Places:
    """Paths from the project's root, addresses in full."""

    page: str
    picture_folder: str
    url: str

    def picture(self, name: str) -> str:
        return f"{self.picture_folder}/{name}"


@dataclass(frozen=True, slots=True)
class Origin:
    """What a page of ours says of itself in its front matter."""

    marker: str
    slug: str
    date: datetime


def places(generator: Generator, section: str, base_url: str, origin: Origin) -> Places:
    url = f"{base_url}/{section}/{origin.slug}/"
    match generator:
        case Generator.HUGO:
            bundle = f"content/{section}/{origin.slug}"
            return Places(f"{bundle}/index.html", bundle, url)
        case Generator.JEKYLL:
            page = f"_posts/{origin.date:%Y-%m-%d}-{origin.slug}.html"
            return Places(page, f"{section}/{origin.slug}", url)
        case Generator.ASTRO:
            return Places(f"src/content/{section}/{origin.slug}.md", f"public/{section}/{origin.slug}", url)


def pattern(generator: Generator, section: str, slug: str = "*") -> str:
    """The glob of pages: of one slug, or of all."""
    return {
        Generator.HUGO: f"content/{section}/{slug}/index.html",
        Generator.JEKYLL: f"_posts/*-{slug}.html",
        Generator.ASTRO: f"src/content/{section}/{slug}.md",
    }[generator]


def read_origin(head: str) -> Origin | None:
    """From the first part of a file; None for a page that is not ours."""
    matter = head.split("\n---\n", 1)[0]
    fields: dict[str, str] = dict(_FIELD.findall(matter))
    if not matter.startswith("---\n") or not fields.get("citeloop"):
        return None
    try:
        date = datetime.fromisoformat(fields.get("date", ""))
    except ValueError:
        date = datetime(1970, 1, 1, tzinfo=UTC)
    return Origin(fields["citeloop"], fields.get("slug", ""), date if date.tzinfo else date.replace(tzinfo=UTC))


def page_text(generator: Generator, post: Post, origin: Origin, place: Places, image: str, now: datetime) -> str:
    """The whole file. `image` is the picture's address, empty without one."""
    fields = {
        **_common(post, origin),
        **_own(generator, post, origin, place, image, now),
        "citeloop": json.dumps(post.marker),
    }
    matter = "\n".join(f"{name}: {value}" for name, value in fields.items() if value)
    body = f"{markup.figure(image, post)}{post.html}".replace("\r", "")
    body = _BLANK_LINE.sub("&#10;", _TEMPLATE.sub("&#123;", body))
    script = _TEMPLATE.sub(r"\\u007b", markup.json_ld(post, url=place.url, image=image))
    return f'---\n{matter}\n---\n<div data-citeloop="{post.marker}">\n{body}\n{script}\n</div>\n'


def _common(post: Post, origin: Origin) -> dict[str, str]:
    return {
        "title": _text(post.title),
        "description": _text(post.excerpt[:_DESCRIPTION]),
        "slug": _text(origin.slug),
        "date": _moment(origin.date),
        "tags": _texts(post.tags),
        "categories": _texts(post.categories),
        "author": _text(post.author),
        "lang": _text(post.locale),
    }


def _own(generator: Generator, post: Post, origin: Origin, place: Places, image: str, now: datetime) -> dict[str, str]:
    """The fields that themes of this generator know by other names."""
    path = "/" + place.url.split("://", 1)[-1].partition("/")[2]
    match generator:
        case Generator.HUGO:
            return {
                "url": _text(path),
                "lastmod": _moment(now),
                "images": _texts((image,) if image else ()),
                "canonicalURL": _text(post.canonical_url),
                "draft": "false",
            }
        case Generator.JEKYLL:
            return {
                "layout": "post",
                "permalink": _text(path),
                "last_modified_at": _moment(now),
                "image": _text(image),
                "canonical_url": _text(post.canonical_url),
            }
        case Generator.ASTRO:
            return {
                "pubDate": _moment(origin.date),
                "updatedDate": _moment(now),
                "canonicalURL": _text(post.canonical_url),
                "draft": "false",
            }


def _text(value: str) -> str:
    """A JSON string is a YAML string, once the characters that YAML forbids are gone."""
    cleaned = " ".join(_CONTROL.sub(" ", value).split()).encode("utf-8", "replace").decode()
    return json.dumps(cleaned, ensure_ascii=False) if cleaned else ""


def _texts(values: tuple[str, ...]) -> str:
    written = [text for text in map(_text, values) if text]
    return f"[{', '.join(written)}]" if written else ""


def _moment(value: datetime) -> str:
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
