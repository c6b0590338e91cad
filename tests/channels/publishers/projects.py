"""A site's project on disk, with real git where it is asked for."""

import contextlib
import html
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from citeloop.channels.publishers import folder_layout
from citeloop.channels.publishers.folder import Folder
from citeloop.models.channel import Generator, SiteKind, SiteSpec

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
BASE = "https://docs.example"
_PUSHED_BUT_NOT_TOLD = """\
#!/bin/sh
"{git}" "$@"
code=$?
case " $* " in *" push "*|*" commit "*) echo 'fatal: the remote end hung up unexpectedly' >&2; exit 128;; esac
exit $code
"""


class Project:
    """`git`: a repository of its own with one commit. `push`: with a bare upstream that counts as the site."""

    def __init__(self, folder: Path, generator: Generator, *, git: bool, push: bool = False) -> None:
        self.root = folder / "site"
        self.generator = generator
        self.upstream = folder / "upstream.git" if push else None
        self._git = git
        self._wrapped = folder / "bin"
        path = f"{self._wrapped}:{os.environ['PATH']}"
        self.environ: dict[str, str] = {"PATH": path, "HOME": str(folder), "KEY": "not for git"}
        self.root.mkdir()
        (self.root / folder_layout.CONFIGURATIONS[generator][0]).write_text("title: x\n")
        if git:
            self.git("init", "--quiet", "--initial-branch=main")
            self.git("config", "user.email", "editor@example.org")
            self.git("config", "user.name", "An Editor")
            self.git("add", ".")
            self.git("commit", "--quiet", "-m", "The site")
        if self.upstream is not None:
            self.git("init", "--quiet", "--bare", "--initial-branch=main", str(self.upstream))
            self.git("remote", "add", "origin", str(self.upstream))
            self.git("push", "--quiet", "--set-upstream", "origin", "main")

    def publisher(self, **changes: object) -> Folder:
        fields: dict[str, object] = {
            "name": "docs",
            "kind": SiteKind.FOLDER,
            "base_url": BASE,
            "folder": str(self.root),
            "generator": self.generator,
            "push": self.upstream is not None,
        }
        return Folder(SiteSpec.model_validate(fields | changes), self.environ, lambda: NOW)

    def git(self, *arguments: str, cwd: Path | None = None) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=cwd or self.root, env=self.environ, capture_output=True,
            text=True, check=True,
        )  # fmt: skip
        return done.stdout

    def build(self, *command: str) -> None:
        """By the real generator."""
        subprocess.run(command, cwd=self.root, env={**self.environ, "LANG": "C.UTF-8"}, check=True)

    async def shown(self) -> list[str]:
        """The pages as whoever builds the site finds them: in the upstream, the last commit, or the folder."""
        pattern = folder_layout.pattern(self.generator, "posts")
        if not self._git:
            return [html.unescape(path.read_text()) for path in sorted(self.root.glob(pattern))]
        place = self.upstream or self.root
        names = self.git("ls-tree", "-r", "--name-only", "main", cwd=place).splitlines()
        ours = [name for name in names if Path(name).match(pattern)]
        return [html.unescape(self.git("show", f"main:{name}", cwd=place)) for name in ours]

    def log(self) -> list[str]:
        return self.git("log", "--format=%s", "main").splitlines()

    @contextlib.contextmanager
    def lossy(self) -> Iterator[None]:
        """git does its work and then says that it failed. A plain folder loses its disk in the last step instead."""
        if not self._git:
            pages = self.root / "static"
            pages.write_text("in the way of llms.txt")
            yield
            pages.unlink()
            return
        real = shutil.which("git", path=self.environ["PATH"])
        self._wrapped.mkdir()
        script = self._wrapped / "git"
        script.write_text(_PUSHED_BUT_NOT_TOLD.format(git=real))
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        yield
        script.unlink()
