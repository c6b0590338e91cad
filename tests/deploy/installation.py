"""What docker-compose.yml describes, without containers: its scripts, commands and variables on this machine."""

import asyncio
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from starter.embedded import ports
from tests.deploy.composition import ROOT, Composition

ENTRYPOINT = ROOT / "deploy" / "entrypoint.sh"


class Collector:
    """Takes OTLP over HTTP and remembers which services sent spans."""

    def __init__(self) -> None:
        seen: set[str] = set()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.path == "/v1/traces":
                    request = ExportTraceServiceRequest.FromString(body)
                    for sent in request.resource_spans:
                        seen.update(
                            one.value.string_value for one in sent.resource.attributes if one.key == "service.name"
                        )
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
                pass

        self.services = seen
        self._server = ThreadingHTTPServer((ports.LOOPBACK, 0), Handler)
        self.address = f"{ports.LOOPBACK}:{self._server.server_port}"
        Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@dataclass(frozen=True)
class Installation:
    """addresses: where each host of the composition really is, such as `postgres:5432` → `127.0.0.1:40123`."""

    compose: Composition
    addresses: Mapping[str, str]
    home: Path
    channels: Path
    keys: Mapping[str, str] = field(default_factory=dict)

    def environment(self, service: str) -> dict[str, str]:
        """A service's variables as they stand in the file, each host replaced by its real address."""
        given = dict(self.compose.services[service].environment)
        for name, value in given.items():
            for host, address in self.addresses.items():
                given[name] = given[name].replace(host, address)
            if value == "/etc/citeloop/channels.toml":
                given[name] = str(self.channels)
            elif value == "/var/lib/citeloop":
                given[name] = str(self.home)
        keys = self.keys if self.compose.services[service].env_file else {}
        return {"PATH": _path(), "PYTHONPATH": str(ROOT), "HOME": str(self.home), **keys, **given}

    async def run(self, service: str, *words: str) -> tuple[int, str]:
        """One command of a service's container, from its beginning to its end."""
        return await call("sh", str(ENTRYPOINT), *words, environ=self.environment(service))

    async def health(self, service: str, *words: str) -> tuple[int, str]:
        """The service's health check, as the file has it."""
        _, _, _, *check = self.compose.services[service].healthcheck.test
        script = str(ROOT / "deploy" / "health.py")
        return await call(sys.executable, script, *check, *words, environ=self.environment(service))


async def call(*argv: str, environ: Mapping[str, str]) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        *argv,
        env=environ,
        cwd=ROOT,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        said, _ = await asyncio.wait_for(process.communicate(), 60)
    except TimeoutError:
        process.kill()
        raise
    return process.returncode or 0, said.decode()


def _path() -> str:
    return os.pathsep.join((str(Path(sys.executable).parent), os.defpath))
