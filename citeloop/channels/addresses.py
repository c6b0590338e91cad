"""No request by way of a user-given address into our own network.

The address is checked where the connection is made, after the name was resolved, and the checked address is the one
connected to: a name that resolves differently the second time gains nothing.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Iterable

import httpcore
import httpx

from citeloop.channels.connections import KeptBackend, PooledTransport
from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.wire import CHECKED, POOL

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_COMPATIBLE = ipaddress.IPv6Network("::/96")
_INNER = tuple(
    ipaddress.ip_network(block)
    for block in ("168.63.129.16/32", "192.0.0.0/24", "fec0::/10", "64:ff9b:1::/48", "::ffff:0:0:0/96")
)
"""What Python calls global and is not: Azure's host, Oracle's metadata, site-local, local and stateless translation."""


def is_public(address: str) -> bool:
    """Whether `address` and every IPv4 address wrapped in it are reachable by anyone. Metadata services are not."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    return all(_is_outer(one) for one in (parsed, *_wrapped(parsed)))


def _is_outer(address: _Address) -> bool:
    return address.is_global and not address.is_multicast and not any(address in block for block in _INNER)


def _wrapped(address: _Address) -> Iterable[ipaddress.IPv4Address]:
    if isinstance(address, ipaddress.IPv4Address):
        return
    for inner in (address.ipv4_mapped, address.sixtofour, *(address.teredo or ())):
        if inner is not None:
            yield inner
    if address in _NAT64 or address in _COMPATIBLE:
        yield ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)


class CheckedBackend(httpcore.AsyncNetworkBackend):
    """Resolves, checks, and connects to what it checked. Raises ChannelError INVALID for a private address."""

    def __init__(self, inner: httpcore.AsyncNetworkBackend | None = None) -> None:
        self._inner = inner or KeptBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's signature
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        addresses = await self._resolve(host, port)
        for address in addresses:
            if not is_public(address):
                raise ChannelError(
                    Fault.INVALID,
                    f"{host} leads to the private address {address}; set allow_private_addresses = true "
                    "in channels.toml if that is meant",
                )
        failure: httpcore.ConnectError | httpcore.ConnectTimeout | None = None
        for address in addresses:
            try:
                return await self._inner.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure or httpcore.ConnectError(f"{host} has no address")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def _resolve(self, host: str, port: int) -> list[str]:
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(f"{host} cannot be resolved: {error}") from None
        return list(dict.fromkeys(str(address[0]) for *_, address in found))


class Doors(httpx.AsyncBaseTransport):
    """The operator's own addresses leave by one door, user-given ones by the checked door.

    Each channel has connections of its own: a pool looks through all that it holds for every request.
    """

    def __init__(self, connections: int, *, allow_private_addresses: bool) -> None:
        self._connections = connections
        self._guards = not allow_private_addresses
        self._context = httpx.create_ssl_context(trust_env=False)
        self._pools: dict[tuple[bool, str], PooledTransport] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        checked = self._guards and bool(request.extensions.get(CHECKED))
        key = (checked, str(request.extensions.get(POOL, "")))
        if key not in self._pools:
            backend = CheckedBackend() if checked else KeptBackend()
            self._pools[key] = PooledTransport(self._connections, backend, self._context)
        return await self._pools[key].handle_async_request(request)

    async def aclose(self) -> None:
        for pool in self._pools.values():
            await pool.aclose()
