"""The git binary, without a shell: just enough to commit named files and to push them."""

import asyncio
import contextlib
import os
import re
import signal
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path

from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.scrubbing import scrub

_KEPT = ("PATH", "HOME", "SSH_AUTH_SOCK", "GIT_SSH_COMMAND", "GIT_CONFIG_GLOBAL", "XDG_CONFIG_HOME", "TMPDIR")
"""Of our environment, which holds keys that git and its hooks have no business with."""
_REFUSED = re.compile(
    r"authentication failed|permission denied|could not read (username|password)|error: ?40[13]\b", re.IGNORECASE
)
_DIVERGED = re.compile(r"not possible to fast-forward|diverg|rejected", re.IGNORECASE)
_OURSELVES = ("-c", "user.name=CiteLoop", "-c", "user.email=citeloop@localhost")


class Git:
    """A checkout at `root`, which may be a folder inside a larger repository."""

    def __init__(self, root: Path, environ: Mapping[str, str]) -> None:
        self._root = root
        self._environ = {name: environ[name] for name in _KEPT if name in environ}
        self._environ |= {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", "GIT_LITERAL_PATHSPECS": "1"}

    async def keeps(self, patience: timedelta) -> bool:
        """Whether the folder lies in a work tree at all."""
        code, out, _ = await self._try(("rev-parse", "--is-inside-work-tree"), patience)
        return code == 0 and out.strip() == "true"

    async def has(self, path: str, patience: timedelta, *, upstream: bool) -> bool:
        """Whether the file is in the last commit: ours, or the upstream's as it is now."""
        if upstream:
            await self._run(("fetch", "--quiet"), patience)
        revision = "@{upstream}" if upstream else "HEAD"
        code, _, _ = await self._try(("cat-file", "-e", f"{revision}:./{path}"), patience)
        return code == 0

    async def commit(self, paths: Sequence[str], message: str, patience: timedelta) -> None:
        """Only these files, changed or removed; what others have staged stays staged. Nothing changed: no commit."""
        _, known, _ = await self._try(("ls-files", "--", *paths), patience)
        tracked = set(known.splitlines())
        present = [path for path in paths if path in tracked or (self._root / path).exists()]
        if not present:
            return
        await self._run(("add", "--all", "--", *present), patience)
        changed = await self._run(("status", "--porcelain", "--", *present), patience)
        if not changed.strip():
            return
        code, _, _ = await self._try(("config", "user.email"), patience)
        named = _OURSELVES if code else ()
        await self._run((*named, "commit", "--quiet", "--only", "-m", message, "--", *present), patience)

    async def pull(self, patience: timedelta) -> None:
        await self._run(("pull", "--quiet", "--ff-only"), patience)

    async def push(self, patience: timedelta) -> None:
        await self._run(("push", "--quiet"), patience)

    async def ask(self, *arguments: str, patience: timedelta) -> str | None:
        """The first line of the output, None where git says no."""
        code, out, _ = await self._try(arguments, patience)
        return (out.splitlines() or [""])[0].strip() if code == 0 else None

    async def _run(self, arguments: Sequence[str], patience: timedelta) -> str:
        code, out, complaint = await self._try(arguments, patience)
        if code == 0:
            return out
        lines = [line for line in complaint.splitlines() if line.strip() and not line.startswith("hint:")]
        fatal = next((line for line in lines if line.startswith(("fatal:", "error:"))), lines[-1] if lines else "")
        message = scrub(f"git {_verb(arguments)}: {fatal or f'exit code {code}'}")
        if _DIVERGED.search(complaint):
            raise ChannelError(
                Fault.UNAVAILABLE, f"{message}; the remote has other commits: merge them in the checkout"
            )
        raise ChannelError(Fault.UNAUTHORIZED if _REFUSED.search(complaint) else Fault.UNAVAILABLE, message)

    async def _try(self, arguments: Sequence[str], patience: timedelta) -> tuple[int, str, str]:
        try:
            process = await asyncio.create_subprocess_exec(
                "git",
                *arguments,
                cwd=self._root,
                env=self._environ,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except FileNotFoundError:
            raise ChannelError(Fault.INVALID, "git is not installed where the worker runs") from None
        try:
            async with asyncio.timeout(patience.total_seconds()):
                out, complaint = await process.communicate()
        except TimeoutError:
            seconds = patience.total_seconds()
            raise ChannelError(Fault.TIMED_OUT, f"git {_verb(arguments)}: not finished after {seconds:.0f} s") from None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        return process.returncode or 0, out.decode("utf-8", "replace"), complaint.decode("utf-8", "replace")


def _verb(arguments: Sequence[str]) -> str:
    return next((one for one in arguments if one in {"fetch", "add", "status", "commit", "pull", "push"}), arguments[0])
