"""`python -m sandbox`: the outside world on loopback, until SIGTERM or Ctrl-C."""

import argparse
import asyncio
import contextlib
import gc
import os
import signal
import socket
import sys
import tomllib
from collections.abc import Generator
from pathlib import Path

import uvicorn
from pydantic import ValidationError

from sandbox.app import build
from sandbox.config import Config, load
from sandbox.wire import WireProtocol

_KEEP_ALIVE_SECONDS = 75
_DRAIN_SECONDS = 1


class Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """uvicorn would raise the signal again after a clean stop; here a clean stop is exit code 0."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        yield

    def _stop(self) -> None:
        self.should_exit = True


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m sandbox", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--config", type=Path, help="a TOML file such as sandbox/demo.toml")
    parser.add_argument("--port-file", type=Path, help="where to write the port once connections are accepted")
    parser.add_argument("--seed", type=int, help="overrides the file's seed")
    return parser.parse_args()


def _configured(path: Path | None, seed: int | None) -> Config:
    try:
        config = load(path) if path else Config()
    except (OSError, tomllib.TOMLDecodeError) as error:
        sys.exit(f"{path}: {error}")
    except ValidationError as error:
        first = error.errors()[0]
        sys.exit(f"{path}: {'.'.join(str(part) for part in first['loc'])}: {first['msg']}")
    return config if seed is None else config.model_copy(update={"seed": seed})


def main() -> None:
    arguments = _arguments()
    config = _configured(arguments.config, arguments.seed)
    listening = socket.socket(proto=socket.IPPROTO_TCP)  # named, so that asyncio sets TCP_NODELAY
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind((arguments.host, arguments.port))
    listening.listen(1024)
    port = listening.getsockname()[1]
    server = Server(
        uvicorn.Config(
            build(config),
            http=WireProtocol,
            ws="none",
            log_level="warning",
            access_log=False,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=_DRAIN_SECONDS,
        )
    )
    if arguments.port_file:
        written = arguments.port_file.with_suffix(".new")
        written.write_text(f"{port}\n")
        os.replace(written, arguments.port_file)  # noqa: PTH105 - atomic, so that a reader never sees half
    print(port, flush=True)  # noqa: T201
    gc.freeze()  # what is loaded stays: the collector need not look at it again
    server.run(sockets=[listening])


if __name__ == "__main__":
    main()
