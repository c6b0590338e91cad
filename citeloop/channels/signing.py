"""Standard Webhooks 1.0.0 signatures, made and checked: https://github.com/standard-webhooks/standard-webhooks."""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

TOLERANCE = timedelta(minutes=5)
_PREFIX = "whsec_"
_SHORTEST, _LONGEST = 24, 64


class SignatureError(ValueError):
    """A delivery that must not be believed; the message says why in one line."""


def signed_headers(secret: str, message_id: str, now: datetime, body: bytes) -> dict[str, str]:
    """The three headers of one delivery. A repeat keeps the id and gets a new timestamp and signature."""
    timestamp = str(int(now.timestamp()))
    signature = base64.b64encode(_digest(secret, message_id, timestamp, body)).decode()
    return {
        "webhook-id": message_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": f"v1,{signature}",
    }


def verify(secrets: Iterable[str], headers: Mapping[str, str], body: bytes, now: datetime) -> str:
    """The message id of a genuine delivery; by it repeats are recognised.

    secrets: the current one and, while keys are rotated, the one before. headers: names in any case.
    Any one matching signature suffices. Raises SignatureError.
    """
    known = {name.lower(): value for name, value in headers.items()}
    message_id, timestamp = known.get("webhook-id", ""), known.get("webhook-timestamp", "")
    if not message_id or not timestamp or "webhook-signature" not in known:
        raise SignatureError("webhook-id, webhook-timestamp or webhook-signature is missing")
    if not timestamp.isascii() or not timestamp.isdigit() or len(timestamp) > 12:  # noqa: PLR2004 - year 33658
        raise SignatureError("webhook-timestamp is no number of seconds")
    if abs(int(timestamp) - now.timestamp()) > TOLERANCE.total_seconds():
        raise SignatureError("webhook-timestamp is more than 5 minutes away from this clock")
    expected = [_digest(secret, message_id, timestamp, body) for secret in secrets]
    genuine = False
    for given in _given(known["webhook-signature"]):
        for digest in expected:
            genuine |= hmac.compare_digest(given, digest)
    if not genuine:
        raise SignatureError("no signature matches")
    return message_id


def _given(header: str) -> Iterable[bytes]:
    for one in header.split():
        version, _, encoded = one.partition(",")
        if version == "v1":
            try:
                yield base64.b64decode(encoded, validate=True)
            except (binascii.Error, ValueError):
                continue


def _digest(secret: str, message_id: str, timestamp: str, body: bytes) -> bytes:
    signed = f"{message_id}.{timestamp}.".encode() + body
    return hmac.new(_key(secret), signed, hashlib.sha256).digest()


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.strip().removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise SignatureError("the signing secret is no base64; it looks like whsec_MfKQ9r8G…") from None
    if not _SHORTEST <= len(key) <= _LONGEST:
        raise SignatureError(f"the signing secret must be {_SHORTEST} to {_LONGEST} bytes of base64")
    return key
