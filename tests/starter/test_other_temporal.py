"""`citeloop up` beside a Temporal that is not its own: with TLS and a key, dead, managed, or too slow to come up."""

import asyncio
import ipaddress
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from temporalio.api.workflowservice.v1 import RegisterNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode, ServiceClient

from citeloop.models import ids
from starter import lock, running
from starter.embedded import ports
from starter.embedded.process import StartError
from starter.embedded.temporal import SEARCH_ATTRIBUTES, EmbeddedTemporal, prepare_namespace
from starter.errors import Conflict
from tests.starter.cli import BRAND, citeloop
from tests.starter.conftest import fast_channels


def certified(folder: Path) -> tuple[Path, Path]:
    """A certificate of this machine's, which signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address(ports.LOOPBACK))]
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    certificate, secret = folder / "server.pem", folder / "server.key"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    pkcs8 = serialization.PrivateFormat.PKCS8
    secret.write_bytes(key.private_bytes(serialization.Encoding.PEM, pkcs8, plain))
    return certificate, secret


@asynccontextmanager
async def behind_tls(address: str, folder: Path) -> AsyncIterator[dict[str, str]]:
    """The variables that lead through TLS to the server at `address`."""
    host, _, port = address.partition(":")
    certificate, secret = certified(folder)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, secret)
    context.set_alpn_protocols(["h2"])

    async def passed_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
        writer.close()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection(host, int(port))
        ways = passed_on(reader, inner_writer), passed_on(inner_reader, writer)
        await asyncio.gather(*ways, return_exceptions=True)

    (front,) = ports.free(1)
    server = await asyncio.start_server(connected, ports.LOOPBACK, front, ssl=context)
    yield {
        "TEMPORAL_ADDRESS": f"{ports.LOOPBACK}:{front}",
        "TEMPORAL_TLS": "true",
        "TEMPORAL_TLS_SERVER_CA_CERT_PATH": str(certificate),
        "TEMPORAL_TLS_SERVER_NAME": "localhost",
        "TEMPORAL_API_KEY": "a key",
    }
    server.close()


@pytest.mark.timeout(180)
async def test_up_works_through_the_tls_and_the_key_of_the_profile(tmp_path: Path) -> None:
    home = tmp_path / "home"
    own = EmbeddedTemporal(tmp_path / "temporal", tmp_path / "ports.json")
    await own.start()
    up = ("--channels", str(fast_channels(tmp_path)), "up", "--detach", "--no-api", "--sandbox", "--json")
    try:
        async with behind_tls(own.address, tmp_path) as environ:
            ran = await citeloop(*up, home=home, environ=environ)
            assert ran.code == 0, ran.err
            assert (ran.json["temporal"], "temporal" in ran.json["pids"]) == (environ["TEMPORAL_ADDRESS"], False)
            submit = ("submit", "a keyword behind TLS", "--brand", BRAND, "--stages", "generate", "--wait")
            done = await citeloop(*submit, home=home, environ=environ)
            assert (done.code, "generate done" in done.out) == (0, True), done.err
            plain = {"TEMPORAL_ADDRESS": environ["TEMPORAL_ADDRESS"]}
            assert (await citeloop("pause", "x", home=home, environ=plain)).code == 3
    finally:
        await citeloop("down", home=home)
        await own.stop()


@pytest.mark.parametrize("how", [(), ("--detach",)])
async def test_a_dead_server_ends_up_in_one_line_with_the_remedy_and_3(tmp_path: Path, how: tuple[str, ...]) -> None:
    (port,) = ports.free(1)
    environ = {"TEMPORAL_ADDRESS": f"{ports.LOOPBACK}:{port}"}
    ran = await citeloop("up", "--sandbox", *how, home=tmp_path, environ=environ)
    assert (ran.code, ran.err.count("\n")) == (3, 1), ran.err
    problem = f"temporal: no Temporal server at {ports.LOOPBACK}:{port}; start it, or correct TEMPORAL_ADDRESS"
    assert problem in ran.err
    assert ran.err.startswith("error: up: the stack did not come up: temporal: " if how else "error: temporal: ")
    assert lock.holder(tmp_path) is None


@pytest.mark.parametrize("command", [("up", "--sandbox"), ("pause", "x")])
async def test_a_profile_that_cannot_be_read_is_told_in_one_line(tmp_path: Path, command: tuple[str, ...]) -> None:
    for environ in (
        {"TEMPORAL_PROFILE": "nobody's"},
        {"TEMPORAL_ADDRESS": "127.0.0.1:9", "TEMPORAL_TLS_CLIENT_CERT_PATH": "/gone.pem"},
    ):
        ran = await citeloop(*command, home=tmp_path, environ=environ)
        told = r"error: temporal: the client profile cannot be read \(.*(nobody's|gone).*\); correct the TEMPORAL_.*\n"
        assert (ran.code, bool(re.fullmatch(told, ran.err))) == (2, True), ran.err


async def test_a_detached_start_that_takes_too_long_is_ended_with_all_it_has_started(tmp_path: Path) -> None:
    arguments = ["--home", str(tmp_path), "--channels", str(fast_channels(tmp_path)), "up", "--no-worker", "--no-api"]
    with pytest.raises(Conflict, match=r"the stack did not come up within 1\.5 s and was stopped: .*; see .*up\.log"):
        await asyncio.to_thread(running.detach, tmp_path, arguments, patience=timedelta(seconds=1.5))
    assert lock.holder(tmp_path) is None
    assert pid_files(tmp_path) == []


def pid_files(home: Path) -> list[Path]:
    """Each process of the stack has one while it runs."""
    return list(home.rglob("*.pid"))


class Managed:
    """A server that lets nobody register search attributes."""

    def __init__(self, service: ServiceClient) -> None:
        self.workflow_service = service.workflow_service
        self.operator_service = SimpleNamespace(add_search_attributes=self._refuse)

    async def _refuse(self, _: Any) -> None:
        raise RPCError("Request unauthorized.", RPCStatusCode.PERMISSION_DENIED, b"")


async def test_a_managed_server_is_used_if_the_attributes_stand_there_already(client: Client) -> None:
    managed = cast("ServiceClient", Managed(client.service_client))
    await prepare_namespace(managed, "default", retention=None)
    name = f"bare-{ids.new_id().lower()}"
    request = RegisterNamespaceRequest(namespace=name)
    request.workflow_execution_retention_period.FromTimedelta(timedelta(days=1))
    await client.workflow_service.register_namespace(request)
    missing = rf"temporal: namespace {name} lacks search attributes .*{next(iter(SEARCH_ATTRIBUTES))}.*; add them"
    with pytest.raises(StartError, match=missing):
        async with asyncio.timeout(30):
            await until_known(managed, name)


async def until_known(service: ServiceClient, name: str) -> None:
    """A namespace is there some seconds after its registration."""
    while True:
        try:
            return await prepare_namespace(service, name, retention=None)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            await asyncio.sleep(0.2)
