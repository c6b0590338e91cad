"""A folder that Hugo, Jekyll or Astro builds, committed where it is a git checkout. Tested against: real git.

Idempotent by nature: the same article is the same file, so a repeat after any fault changes nothing. A file that does
not bear our marker is never touched. In a git checkout a page counts only once it is committed, and with `push` only
once the upstream has it.
"""

import asyncio
import hashlib
import os
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.patience import Patience
from citeloop.channels.ports import Ability, Call, Placed, Post, SiteReport
from citeloop.channels.publishers import folder_layout as layout
from citeloop.channels.publishers import markup
from citeloop.channels.publishers.folder_files import Listing, keep_lists, locked, remove, write
from citeloop.channels.publishers.folder_layout import Origin, Places
from citeloop.channels.publishers.git import Git
from citeloop.channels.publishers.refusing import foreign, gone, refuse_more
from citeloop.models.channel import SiteSpec

_SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_MARKER = re.compile(r"[\w.:-]+")


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Folder:
    abilities = frozenset(Ability) - {Ability.CALLBACK}

    def __init__(self, site: SiteSpec, environ: Mapping[str, str], now: Callable[[], datetime] = _utc_now) -> None:
        assert site.generator is not None
        self._site = site
        self._generator = site.generator
        self._root = Path(site.folder)
        self._git = Git(self._root, environ)
        self._now = now

    async def publish(self, post: Post, call: Call) -> Placed:
        refuse_more(post, self.abilities, self._site.name)
        if not _SLUG.fullmatch(post.slug) or not _MARKER.fullmatch(post.marker):
            raise ChannelError(Fault.INVALID, f"{self._site.name}: slug or marker holds characters that no path may")
        return await self._change(post, Patience(call), lambda: self._write_new(post), f"Publish {post.slug}")

    async def look_up(self, post: Post, call: Call) -> Placed | None:
        patience = Patience(call)
        path = await asyncio.to_thread(self._find, post)
        if path is None or not await self._recorded(path, patience):
            return None
        return await asyncio.to_thread(self._placed, path)

    async def update(self, post: Post, remote_id: str, call: Call) -> Placed:
        """The same file and address, with its first date; a moved file is found by its marker."""
        refuse_more(post, self.abilities, self._site.name)
        return await self._change(
            post, Patience(call), lambda: self._write_again(post, remote_id), f"Correct {post.slug}"
        )

    async def withdraw(self, post: Post, remote_id: str, call: Call) -> None:
        """Page and picture are removed; git keeps them in its history."""
        await self._change(post, Patience(call), lambda: self._remove(post, remote_id), f"Withdraw {post.slug}")

    async def check(self, call: Call) -> SiteReport:
        problems, notes = await asyncio.to_thread(self._look_around)
        if not problems:
            try:
                await self._look_at_git(Patience(call), problems, notes)
            except ChannelError as error:
                problems.append(error.message)
        return SiteReport(problems=tuple(problems), notes=tuple(notes))

    async def _change(
        self, post: Post, patience: Patience, work: Callable[[], tuple[Placed, list[str]]], message: str
    ) -> Placed:
        self._exists()
        async with locked(self._root, _left(patience)):
            keeps = await self._git.keeps(_left(patience))
            if keeps and self._site.push:
                await self._git.pull(_left(patience))
            try:
                placed, paths = await asyncio.to_thread(work)
            except PermissionError as error:
                name = Path(str(error.filename)).name
                raise ChannelError(
                    Fault.UNAUTHORIZED, f"{self._site.name}: may not write {name} in its folder"
                ) from None
            except OSError as error:
                raise ChannelError(Fault.UNAVAILABLE, f"{self._site.name}: {error.strerror}") from None
            if keeps:
                await self._git.commit(paths, f"{message}\n\nCiteLoop: {post.marker}", _left(patience))
                if self._site.push:
                    await self._git.push(_left(patience))
        return placed

    async def _recorded(self, path: Path, patience: Patience) -> bool:
        if not await self._git.keeps(_left(patience)):
            return True
        return await self._git.has(self._relative(path), _left(patience), upstream=self._site.push)

    def _exists(self) -> None:
        if not self._root.is_dir():
            raise ChannelError(Fault.INVALID, f"{self._site.name}: its folder does not exist on this machine")

    def _find(self, post: Post) -> Path | None:
        """Where this article stands: by its slug, else by its marker in all pages of the section."""
        self._exists()
        for slug in dict.fromkeys((post.slug if _SLUG.fullmatch(post.slug) else "*", "*")):
            for path in self._root.glob(layout.pattern(self._generator, self._site.section, slug)):
                origin = self._origin(path)
                if origin is not None and origin.marker == post.marker:
                    return path
        return None

    def _origin(self, path: Path) -> Origin | None:
        with path.open("rb") as file:
            return layout.read_origin(file.read(layout.HEAD_BYTES).decode("utf-8", "replace"))

    def _places(self, origin: Origin) -> Places:
        return layout.places(self._generator, self._site.section, self._site.base_url, origin)

    def _relative(self, path: Path) -> str:
        return path.relative_to(self._root).as_posix()

    def _placed(self, path: Path) -> Placed:
        origin = self._origin(path)
        assert origin is not None
        return Placed(remote_id=self._relative(path), url=self._places(origin).url)

    def _write_new(self, post: Post) -> tuple[Placed, list[str]]:
        path = self._find(post)
        if path is None:
            origin = Origin(post.marker, post.slug, post.published_at or self._now())
            path = self._root / self._places(origin).page
            if path.exists():
                raise foreign(self._site.name, self._relative(path))
        return self._write(post, path)

    def _write_again(self, post: Post, remote_id: str) -> tuple[Placed, list[str]]:
        path = self._named(post, remote_id)
        if path is None:
            raise gone(self._site.name, remote_id)
        return self._write(post, path)

    def _named(self, post: Post, remote_id: str) -> Path | None:
        path = self._root / remote_id
        inside = path.resolve().is_relative_to(self._root.resolve())
        if not inside or not path.is_file():
            return self._find(post)
        origin = self._origin(path)
        if origin is None or origin.marker != post.marker:
            raise foreign(self._site.name, remote_id)
        return path

    def _write(self, post: Post, path: Path) -> tuple[Placed, list[str]]:
        """The picture first: a page never names one that is not there."""
        known = self._origin(path) if path.exists() else None
        origin = known or Origin(post.marker, post.slug, post.published_at or self._now())
        place = self._places(origin)
        kept = self._pictures(place)
        image, name = "", ""
        if post.picture is not None:
            digest = hashlib.sha256(post.picture.data).hexdigest()[:16]
            name = f"citeloop-{digest}.{markup.extension(post.picture.media_type)}"
            write(self._root / place.picture(name), post.picture.data)
            image = f"{place.url}{name}"
        text = layout.page_text(self._generator, post, origin, place, image, self._now())
        write(path, text.encode("utf-8", "replace"))
        for old in kept:
            if old.name != name:
                remove(old)
        lists = keep_lists(self._root, self._generator, Listing(place.url, post, self._now()))
        pictures = [place.picture(name)] if name else []
        paths = [self._relative(path), *pictures, *(self._relative(old) for old in kept), *lists]
        return Placed(remote_id=self._relative(path), url=place.url), list(dict.fromkeys(paths))

    def _pictures(self, place: Places) -> list[Path]:
        return sorted((self._root / place.picture_folder).glob("citeloop-*.*"))

    def _remove(self, post: Post, remote_id: str) -> tuple[Placed, list[str]]:
        path = self._named(post, remote_id)
        if path is None:
            return Placed(remote_id=remote_id), []
        placed, origin = self._placed(path), self._origin(path)
        assert origin is not None
        files = [path, *self._pictures(self._places(origin))]
        for file in files:
            remove(file)
        lists = keep_lists(self._root, self._generator, Listing(placed.url, None, self._now()))
        return placed, [*(self._relative(file) for file in files), *lists]

    def _look_around(self) -> tuple[list[str], list[str]]:
        if not self._root.is_dir():
            return ["its folder does not exist on this machine"], []
        problems, notes = [], []
        if not os.access(self._root, os.W_OK | os.X_OK):
            problems.append("the worker may not write into its folder")
        if not any((self._root / name).exists() for name in layout.CONFIGURATIONS[self._generator]):
            notes.append(f"the folder holds no configuration of {self._generator}: is it the project's root?")
        return problems, notes

    async def _look_at_git(self, patience: Patience, problems: list[str], notes: list[str]) -> None:
        if not await self._git.keeps(_left(patience)):
            notes.append("a plain folder: nothing is committed")
            if self._site.push:
                problems.append("push is set and the folder is no git checkout")
            return
        if await self._git.ask("symbolic-ref", "--quiet", "HEAD", patience=_left(patience)) is None:
            problems.append("the checkout stands on no branch: check one out")
        if await self._git.ask("config", "user.email", patience=_left(patience)) is None:
            notes.append("git knows no user here: commits are made by CiteLoop <citeloop@localhost>")
        if not self._site.push:
            notes.append("commits are not pushed (push = true would)")
        elif await self._git.ask("rev-parse", "@{upstream}", patience=_left(patience)) is None:
            problems.append("the branch has no upstream to push to: git push --set-upstream origin BRANCH")
        else:
            await self._git.push(_left(patience))


def _left(patience: Patience) -> timedelta:
    return patience.call().policy.total
