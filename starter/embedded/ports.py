"""Loopback ports, chosen once and kept, so that a restart comes back where its clients look for it."""

import json
import socket
from contextlib import ExitStack, suppress
from pathlib import Path

LOOPBACK = "127.0.0.1"


def keep(file: Path, *names: str) -> tuple[int, ...]:
    """The ports of `names`; those the file does not know yet are chosen now and written to it."""
    known: dict[str, int] = {}
    with suppress(OSError, ValueError):
        known = {str(name): int(port) for name, port in json.loads(file.read_text()).items()}
    missing = [name for name in names if name not in known]
    known.update(zip(missing, free(len(missing)), strict=True))
    if missing:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(known, indent=1))
    return tuple(known[name] for name in names)


def forget(file: Path, *names: str) -> None:
    """Let the next `keep` choose anew: somebody else listens there."""
    with suppress(OSError, ValueError):
        known = {name: port for name, port in json.loads(file.read_text()).items() if name not in names}
        file.write_text(json.dumps(known, indent=1))


def free(count: int) -> list[int]:
    """Distinct free ports: all are held open until the last is found."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind((LOOPBACK, 0))
        return [int(one.getsockname()[1]) for one in sockets]


def taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex((LOOPBACK, port)) == 0
