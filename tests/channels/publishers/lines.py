"""Lines of the fault file as replies."""

import httpx

from tests.channels.test_wire_faults import BY_ID


def lines_reply(line_id: str) -> httpx.Response:
    line = BY_ID[line_id]
    return httpx.Response(line["status"], headers=line["headers"], content=line["body"].encode())


def raw_reply(line_id: str) -> httpx.Response:
    """With the bytes as they are, whatever packing the headers declare."""
    line = BY_ID[line_id]
    return httpx.Response(line["status"], headers=line["headers"], stream=httpx.ByteStream(line["body"].encode()))
