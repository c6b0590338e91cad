"""A real WordPress on loopback: Debian's packages, a database and a copy of the tree of its own, gone at the end.

`python -m tests.wordpress.serve` starts one, prints its address and logins, and serves until it is interrupted. As
root on Debian or Ubuntu it installs what is missing; otherwise PHP, WordPress and MariaDB must be there already.
"""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PACKAGES = ("wordpress", "php-cli", "php-mysql", "php-gd", "php-curl", "php-xml", "php-mbstring", "mariadb-server")
SOURCE = Path("/usr/share/wordpress")
HERE = Path(__file__).parent
WORKERS = 4
_POLICY = Path("/usr/sbin/policy-rc.d")
_PATIENCE = 60.0
_INSTALL_PATIENCE = 600.0
_INIT = """\
CREATE DATABASE IF NOT EXISTS wordpress CHARACTER SET utf8mb4;
CREATE USER IF NOT EXISTS 'wordpress'@'127.0.0.1' IDENTIFIED BY 'wordpress';
GRANT ALL ON wordpress.* TO 'wordpress'@'127.0.0.1';
"""
_CONFIG = """\
<?php
define( 'DB_NAME', 'wordpress' );
define( 'DB_USER', 'wordpress' );
define( 'DB_PASSWORD', 'wordpress' );
define( 'DB_HOST', '127.0.0.1:{database}' );
define( 'DB_CHARSET', 'utf8mb4' );
define( 'WP_HOME', '{url}' );
define( 'WP_SITEURL', '{url}' );
define( 'WP_ENVIRONMENT_TYPE', 'local' ); // application passwords over http
define( 'DISABLE_WP_CRON', true );
define( 'WP_HTTP_BLOCK_EXTERNAL', true );
define( 'WP_DEFAULT_THEME', 'plain' );
define( 'AUTOMATIC_UPDATER_DISABLED', true );
foreach ( array( 'AUTH_KEY', 'SECURE_AUTH_KEY', 'LOGGED_IN_KEY', 'NONCE_KEY' ) as $name ) {{
	define( $name, 'only on this machine, only for this test ' . $name );
}}
$table_prefix = 'wp_';
if ( ! defined( 'ABSPATH' ) ) {{
	define( 'ABSPATH', __DIR__ . '/' );
}}
require_once ABSPATH . 'wp-settings.php';
"""


class CannotServe(RuntimeError):  # noqa: N818 - a fact about the machine, not a fault
    """What is missing on this machine, and what would bring it."""


@dataclass(frozen=True)
class Login:
    user: str
    password: str


@dataclass(frozen=True)
class Site:
    url: str
    content: Path
    """Its wp-content folder; slugs in `slow.txt` there are inserted twenty seconds late."""
    logins: Mapping[str, Login]
    """By role: administrator, editor, author."""


def missing() -> list[str]:
    """What of PHP, WordPress and MariaDB is not on this machine."""
    lacking = [name for name in ("php", "mariadbd", "mariadb-install-db") if shutil.which(name) is None]
    if not (SOURCE / "wp-load.php").exists():
        lacking.append("wordpress")
    if not lacking:
        known = subprocess.run(["php", "-m"], capture_output=True, text=True, check=True).stdout.lower().split()
        lacking += [f"php-{name}" for name in ("mysqli", "gd", "curl", "xml", "mbstring") if name not in known]
    return lacking


def install() -> None:
    """Raises CannotServe where it may not."""
    lacking = missing()
    if not lacking:
        return
    command = f"apt-get install --no-install-recommends {' '.join(PACKAGES)}"
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise CannotServe(f"a real WordPress needs {', '.join(lacking)}; as root: {command}")
    environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    with _alone(), _no_services():
        for arguments in (("update", "-qq"), ("install", "-y", "-qq", "--no-install-recommends", *PACKAGES)):
            done = subprocess.run(
                ["apt-get", *arguments], env=environ, capture_output=True, text=True, timeout=_INSTALL_PATIENCE,
                check=False,
            )  # fmt: skip
            if done.returncode:
                raise CannotServe(f"apt-get {arguments[0]} failed: {done.stderr.strip()[-500:]}")


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Tests that run side by side install one after the other."""
    with (Path(tempfile.gettempdir()) / "citeloop-wordpress.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _no_services() -> Iterator[None]:
    """Packages start their services unless this file says no."""
    if _POLICY.exists():
        yield
        return
    _POLICY.write_text("#!/bin/sh\nexit 101\n")
    _POLICY.chmod(0o755)
    try:
        yield
    finally:
        _POLICY.unlink()


@contextlib.contextmanager
def serve() -> Iterator[Site]:
    """Raises CannotServe. Everything it starts has ended and is gone from disk when the block is left."""
    install()
    folder = Path(tempfile.mkdtemp(prefix="citeloop-wordpress-"))
    folder.chmod(0o755)
    web, database = _free_ports(2)
    try:
        with contextlib.ExitStack() as running:
            _start_database(folder, database, running)
            root = folder / "site"
            shutil.copytree(SOURCE, root, ignore_dangling_symlinks=True)
            url = f"http://127.0.0.1:{web}"
            (root / "wp-config.php").write_text(_CONFIG.format(url=url, database=database))
            (root / ".htaccess").unlink(missing_ok=True)
            content = root / "wp-content"
            (content / "mu-plugins").mkdir()
            shutil.copy(HERE / "slow-insert.php", content / "mu-plugins")
            shutil.copytree(HERE / "theme", content / "themes" / "plain")
            logins = _install_site(root, web)
            _start_php(folder, root, web, running)
            yield Site(url, content, logins)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _start_database(folder: Path, port: int, running: contextlib.ExitStack) -> None:
    data = folder / "database"
    data.mkdir()
    (folder / "init.sql").write_text(_INIT)
    user = ["--user=mysql"] if os.geteuid() == 0 else []
    if user:
        shutil.chown(data, "mysql", "mysql")
    _run(
        ["mariadb-install-db", "--no-defaults", *user, f"--datadir={data}", "--skip-test-db",
         "--auth-root-authentication-method=normal"],
    )  # fmt: skip
    _start(
        ["mariadbd", "--no-defaults", *user, f"--datadir={data}", f"--socket={data}/s", f"--port={port}",
         "--bind-address=127.0.0.1", f"--pid-file={data}/pid", f"--init-file={folder}/init.sql",
         "--skip-name-resolve", "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=64M"],
        folder / "mariadbd.log",
        running,
    )  # fmt: skip
    _until(lambda: _listens(port), "mariadbd", folder / "mariadbd.log")


def _install_site(root: Path, port: int) -> dict[str, Login]:
    environ = {"CITELOOP_SITE": str(root), "CITELOOP_HOST": f"127.0.0.1:{port}"}
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            told = _run(["php", str(HERE / "install.php")], environ)
            break
        except CannotServe:
            # It listens a moment before its first user exists.
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)
    found: dict[str, dict[str, str]] = json.loads(told.strip().splitlines()[-1])
    return {role: Login(**login) for role, login in found.items()}


def _start_php(folder: Path, root: Path, port: int, running: contextlib.ExitStack) -> None:
    _start(
        ["php", "-d", "upload_max_filesize=16M", "-d", "post_max_size=20M", "-d", "max_execution_time=0",
         "-S", f"127.0.0.1:{port}", "-t", str(root)],
        folder / "php.log",
        running,
        {"PHP_CLI_SERVER_WORKERS": str(WORKERS)},
    )  # fmt: skip
    _until(lambda: _answers(f"http://127.0.0.1:{port}/wp-json/"), "php", folder / "php.log")


def _run(command: Sequence[str], environ: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(
        command, env={**os.environ, **(environ or {})}, capture_output=True, text=True, timeout=_PATIENCE, check=False
    )
    if done.returncode:
        raise CannotServe(f"{command[0]} failed: {(done.stderr or done.stdout).strip()[-500:]}")
    return done.stdout


def _start(
    command: Sequence[str], log: Path, running: contextlib.ExitStack, environ: Mapping[str, str] | None = None
) -> None:
    with log.open("wb") as output:
        child = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True,
            env={**os.environ, **(environ or {})},
        )  # fmt: skip
    running.callback(_end, child)


def _end(child: "subprocess.Popen[bytes]") -> None:
    """The child and what it forked: PHP's workers are processes of their own."""
    for told, patience in ((signal.SIGTERM, 10), (signal.SIGKILL, 10)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, told)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(patience)
            return


def _until(ready: Callable[[], bool], name: str, log: Path) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not ready():
        if time.monotonic() > deadline:
            raise CannotServe(f"{name} did not answer: {log.read_text(errors='replace')[-500:]}")
        time.sleep(0.1)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _answers(url: str) -> bool:
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=10) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def main() -> None:
    begun = time.monotonic()
    try:
        with serve() as site:
            told = [f"WordPress at {site.url} after {time.monotonic() - begun:.0f} s"]
            told += [f"{role}: {login.user} / {login.password}" for role, login in site.logins.items()]
            sys.stdout.write("\n".join([*told, ""]))
            sys.stdout.flush()
            with contextlib.suppress(KeyboardInterrupt):
                signal.pause()
    except CannotServe as reason:
        sys.exit(f"error: {reason}")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    main()
