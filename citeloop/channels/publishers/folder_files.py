"""Files of a site's project: written whole or not at all, one writer at a time, listed in llms.txt and sitemap.xml."""

import asyncio
import contextlib
import fcntl
import hashlib
import os
import re
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit
from xml.sax.saxutils import escape

from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.ports import Post
from citeloop.channels.publishers.folder_layout import STATIC
from citeloop.models.channel import Generator

_POLL = 0.02
_ARTICLES = "## Articles"
_SITEMAP = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n</urlset>\n'
)
_END = "</urlset>"


@dataclass(frozen=True, slots=True)
class Listing:
    """How an article stands in the site's own lists; `post` None: not at all."""

    url: str
    post: Post | None
    now: datetime


@contextlib.asynccontextmanager
async def locked(root: Path, patience: timedelta) -> AsyncIterator[None]:
    """One writer per project on this machine, whichever process it lives in. Raises OVERLOADED after `patience`."""
    deadline = asyncio.get_running_loop().time() + patience.total_seconds()
    name = hashlib.sha256(str(root).encode()).hexdigest()[:24]
    handle = os.open(Path(tempfile.gettempdir()) / f"citeloop-{name}.lock", os.O_RDWR | os.O_CREAT, 0o666)
    try:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if asyncio.get_running_loop().time() > deadline:
                    raise ChannelError(Fault.OVERLOADED, "other articles are being written to this folder") from None
                await asyncio.sleep(_POLL)
        yield
    finally:
        os.close(handle)


def write(path: Path, data: bytes) -> None:
    """Readers see the old file or the new one, never half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)  # noqa: PTH101 - what a web server must be able to read
        os.replace(temporary, path)  # noqa: PTH105
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)  # noqa: PTH108
        raise


def remove(path: Path) -> None:
    """The file, and its folder if nothing else is in it."""
    path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        path.parent.rmdir()


def keep_lists(root: Path, generator: Generator, listing: Listing) -> list[str]:
    """Add, renew or remove the article in llms.txt and, unless the generator writes it, sitemap.xml.

    Lines of others stay as they are. Returns the paths of the files, from the root.
    """
    static = root / STATIC[generator]
    kept = []
    files = {"llms.txt": _listed_for_models}
    if (static / "sitemap.xml").exists() or not _writes_its_own_sitemap(root, generator):
        files["sitemap.xml"] = _mapped
    for name, change in files.items():
        file = static / name
        before = file.read_text(encoding="utf-8") if file.exists() else ""
        after = change(before, listing)
        if after != before:
            write(file, after.encode())
        if file.exists():
            kept.append(file.relative_to(root).as_posix())
    return kept


def _writes_its_own_sitemap(root: Path, generator: Generator) -> bool:
    """Hugo always does; Jekyll and Astro by a plugin. A second one would hide it (jekyll-sitemap gives way to ours)."""
    named = {
        Generator.HUGO: ("", ()),
        Generator.JEKYLL: ("jekyll-sitemap", ("_config.yml", "Gemfile")),
        Generator.ASTRO: ("@astrojs/sitemap", ("package.json",)),
    }
    plugin, files = named[generator]
    if not plugin:
        return True
    return any(plugin in (root / name).read_text("utf-8", "replace") for name in files if (root / name).is_file())


def _listed_for_models(text: str, listing: Listing) -> str:
    """The llms.txt form: `- [title](url): notes` under `## Articles`."""
    lines = text.splitlines() or [f"# {urlsplit(listing.url).netloc}"]
    lines = [line for line in lines if f"]({listing.url})" not in line]
    if listing.post is not None:
        if _ARTICLES not in lines:
            lines += ["", _ARTICLES, ""]
        place = lines.index(_ARTICLES) + 1
        if place < len(lines) and not lines[place].strip():
            place += 1
        lines.insert(place, _line(listing.url, listing.post))
    return "\n".join(lines) + "\n" if text or listing.post is not None else ""


def _line(url: str, post: Post) -> str:
    title = " ".join(post.title.translate({ord("["): "(", ord("]"): ")"}).split())
    notes = " ".join(post.excerpt.split())
    return f"- [{title}]({url})" + (f": {notes}" if notes else "")


def _mapped(text: str, listing: Listing) -> str:
    """A sitemap of the known form keeps its other entries; any other file is left alone."""
    if listing.post is None and not text:
        return text
    text = text or _SITEMAP
    place = re.escape(escape(listing.url))
    text = re.sub(rf"[ \t]*<url>\s*<loc>\s*{place}\s*</loc>(?:(?!</url>).)*</url>\n?", "", text, flags=re.DOTALL)
    if listing.post is None or _END not in text:
        return text
    entry = f"  <url><loc>{escape(listing.url)}</loc><lastmod>{listing.now:%Y-%m-%dT%H:%M:%SZ}</lastmod></url>\n"
    at = text.rindex(_END)
    return f"{text[:at]}{entry}{text[at:]}"
