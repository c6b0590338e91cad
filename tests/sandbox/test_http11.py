"""The sandbox's own HTTP/1.1, told byte by byte."""

import io
import json
import socket
import time
from urllib.parse import urlsplit

from PIL import Image

from sandbox.images import draw_picture
from sandbox.luck import Luck
from sandbox.png import encoded
from tests.sandbox.running import Sandbox, chat

ASK = json.dumps(chat("hi")).encode()
CHAT = b"POST /qwen/v1/chat/completions HTTP/1.1\r\nhost: sandbox\r\nauthorization: Bearer sandbox-key\r\n"
ROBOTS = b"GET /robots.txt HTTP/1.1\r\nhost: sandbox\r\n"


def connected(sandbox: Sandbox) -> socket.socket:
    place = urlsplit(sandbox.url)
    return socket.create_connection((place.hostname, place.port), timeout=5)


def told(sandbox: Sandbox, *parts: bytes) -> bytes:
    """All that comes back until the sandbox hangs up; between two parts there is a pause."""
    with connected(sandbox) as wire:
        for part in parts:
            wire.sendall(part)
            time.sleep(0.05)
        return b"".join(iter(lambda: wire.recv(65536), b""))


def test_a_body_may_come_in_pieces(sandbox: Sandbox) -> None:
    head = CHAT + b"connection: close\r\ncontent-length: %d\r\n\r\n" % len(ASK)
    reply = told(sandbox, head[:20], head[20:] + ASK[:10], ASK[10:])
    assert reply.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"connection: close" in reply
    assert sandbox.ledger()["totals"]["ok"] == 1


def test_a_body_may_come_chunked(sandbox: Sandbox) -> None:
    head = CHAT + b"connection: close\r\ntransfer-encoding: chunked\r\n\r\n"
    chunks = b"%x\r\n%b\r\n" % (9, ASK[:9]), b"%x;note=1\r\n%b\r\n0\r\n\r\n" % (len(ASK) - 9, ASK[9:])
    assert told(sandbox, head, *chunks).startswith(b"HTTP/1.1 200 OK\r\n")


def test_requests_sent_ahead_are_answered_in_order(sandbox: Sandbox) -> None:
    ledger = b"GET /_ledger HTTP/1.1\r\nhost: sandbox\r\nconnection: close\r\n\r\n"
    reply = told(sandbox, ROBOTS + b"\r\n" + ledger)
    assert reply.count(b"HTTP/1.1 200 OK") == 2
    assert reply.index(b"User-agent") < reply.index(b'"totals"')


def test_head_brings_no_body(sandbox: Sandbox) -> None:
    reply = told(sandbox, ROBOTS.replace(b"GET", b"HEAD") + b"connection: close\r\n\r\n")
    assert b"content-length: 23" in reply
    assert reply.endswith(b"\r\n\r\n")


def test_a_caller_who_waits_for_continue_is_told_to(sandbox: Sandbox) -> None:
    head = CHAT + b"connection: close\r\nexpect: 100-continue\r\ncontent-length: %d\r\n\r\n" % len(ASK)
    with connected(sandbox) as wire:
        wire.sendall(head)
        assert wire.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        wire.sendall(ASK)
        assert wire.recv(15) == b"HTTP/1.1 200 OK"


def test_what_is_no_request_gets_400(sandbox: Sandbox) -> None:
    for nonsense in (b"hello\r\n\r\n", ROBOTS + b"no colon\r\n\r\n", ROBOTS + b"content-length: -1\r\n\r\n"):
        assert told(sandbox, nonsense).startswith(b"HTTP/1.1 400 Bad Request\r\n")


def test_a_request_that_never_came_whole_is_no_call(sandbox: Sandbox) -> None:
    with connected(sandbox) as wire:
        wire.sendall(CHAT + b"content-length: %d\r\n\r\n" % len(ASK) + ASK[:5])
    assert "qwen" not in sandbox.ledger()["providers"]


def test_a_picture_is_read_back_as_it_was_drawn() -> None:
    gradient = Image.linear_gradient("L").resize((70, 45))
    image = Image.merge("RGB", (gradient, gradient.rotate(180), gradient))
    assert Image.open(io.BytesIO(encoded(image))).convert("RGB").tobytes() == image.tobytes()


def test_the_same_seed_draws_the_same_picture() -> None:
    pictures = [draw_picture(Luck(seed).constant("picture", "a fox"), (120, 80)) for seed in (7, 7, 8)]
    assert pictures[0] == pictures[1] != pictures[2]
