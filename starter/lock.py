"""One stack per home folder: an advisory lock that dies with its holder."""

import fcntl
import os
from pathlib import Path
from typing import IO

from starter.errors import Conflict


class HomeLock:
    """Conflict when another process holds the folder; its pid stands in the file."""

    def __init__(self, home: Path) -> None:
        self._file = home / "lock"
        self._held: IO[str] | None = None

    def acquire(self) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        held = self._file.open("a+")
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held.seek(0)
            holder = held.read().strip() or "unknown"
            held.close()
            raise Conflict(
                f"{self._file.parent} is already run by process {holder}",
                "home",
                "use it as it is, stop it with `citeloop down`, or set CITELOOP_HOME to another folder",
            ) from None
        held.truncate(0)
        held.write(str(os.getpid()))
        held.flush()
        self._held = held

    def release(self) -> None:
        if self._held is not None:
            self._held.close()
            self._held = None


def holder(home: Path) -> int | None:
    """The process that runs a stack on this home now."""
    file = home / "lock"
    try:
        with file.open("r+") as probe:
            fcntl.flock(probe, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        text = file.read_text().strip()
        return int(text) if text.isdecimal() else None
    except OSError:
        return None
    return None
