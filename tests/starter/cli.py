"""Running the real `citeloop` command as a process."""

import asyncio
import json
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parents[2]
BRAND = str(ROOT / "examples" / "milvus" / "brand.toml")
KEYWORDS = str(ROOT / "examples" / "milvus" / "keywords.csv")


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["starter.cli", __name__])


async def citeloop(*arguments: str, home: Path, environ: Mapping[str, str] | None = None) -> Ran:
    """The command in a process of its own, forked from one that has imported it already: the tests run hundreds."""
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder) / "out", Path(folder) / "err"
        process = _FORKS.Process(target=_command, args=(arguments, _environment(home, environ), str(out), str(err)))
        await asyncio.to_thread(process.start)
        try:
            await asyncio.to_thread(process.join)
        except asyncio.CancelledError:
            process.kill()
            raise
        assert process.exitcode is not None
        return Ran(process.exitcode, out.read_text(), err.read_text())


async def installed_citeloop(*arguments: str, home: Path) -> Ran:
    """The installed script from its first import to its last breath, as a user's shell runs it."""
    process = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).parent / "citeloop"),
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=_environment(home, None),
        cwd=ROOT,
    )
    out, err = await process.communicate()
    assert process.returncode is not None
    return Ran(process.returncode, out.decode(), err.decode())


def _environment(home: Path, environ: Mapping[str, str] | None) -> dict[str, str]:
    """Nothing of ours but the home folder and `environ`."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("CITELOOP_", "TEMPORAL_"))}
    return {**clean, "CITELOOP_HOME": str(home), **(environ or {})}


def _command(arguments: Sequence[str], environ: Mapping[str, str], out: str, err: str) -> NoReturn:
    from starter.cli import main

    for number, file in ((1, out), (2, err)):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600), number)
    sys.stdout, sys.stderr = (open(number, "w", closefd=False) for number in (1, 2))  # noqa: SIM115
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(ROOT)
    sys.argv = ["citeloop", *arguments]
    main()
