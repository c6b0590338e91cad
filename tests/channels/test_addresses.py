"""A user-given address never leads into our own network, however it is written."""

import httpx
import pytest

from citeloop.channels.addresses import Doors, is_public
from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.judging import judged_json
from citeloop.channels.wire import HttpRequest, Wire
from tests.channels.servers import Peer, raw_server
from tests.channels.settings import call


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.100.100.200", "0.0.0.0",
        "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1%eth0", "fc00::1", "::ffff:127.0.0.1",
        "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "::7f00:1", "ff02::1", "not an address",
        "168.63.129.16", "192.0.0.192", "fec0::1", "64:ff9b:1::a00:1", "::ffff:0:10.0.0.1",
    ],
)  # fmt: skip
def test_an_inner_address_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["1.1.1.1", "8.8.8.8", "2606:4700:4700::1111", "64:ff9b::808:808"])
def test_an_outer_address_is_public(address: str) -> None:
    assert is_public(address)


async def _answer(peer: Peer) -> None:
    await peer.reply(200, b'{"ok":true}')


async def _get(url: str, *, checked: bool, allowed: bool = False) -> object:
    async with httpx.AsyncClient(transport=Doors(4, allow_private_addresses=allowed)) as http:
        return await Wire(http, "blog", checked=checked).exchange(HttpRequest("GET", url), call(), judged_json)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "2130706433", "0x7f000001", "127.1", "[::ffff:127.0.0.1]", "0.0.0.0"]
)
async def test_a_user_given_address_that_leads_to_loopback_is_refused(host: str) -> None:
    async with raw_server(_answer) as server:
        with pytest.raises(ChannelError) as raised:
            await _get(f"http://{host}:{server.port}/", checked=True)
        assert not server.peers
    assert raised.value.fault is Fault.INVALID
    assert "allow_private_addresses" in raised.value.message
    assert not raised.value.sent


async def test_private_addresses_can_be_allowed() -> None:
    async with raw_server(_answer) as server:
        assert await _get(f"{server.url}/", checked=True, allowed=True) == {"ok": True}


async def test_the_operators_own_addresses_are_not_checked() -> None:
    async with raw_server(_answer) as server:
        assert await _get(f"{server.url}/", checked=False) == {"ok": True}


async def test_a_name_that_does_not_exist_is_unavailable() -> None:
    with pytest.raises(ChannelError) as raised:
        await _get("http://no-such-host.invalid/", checked=True)
    assert raised.value.fault is Fault.UNAVAILABLE
