"""Secrets at rest: sealed under a key of the environment, bound to what they belong to, opened in memory only."""

import hashlib
import hmac
import json
from collections.abc import Sequence

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

VARIABLE = "CITELOOP_SECRET_KEY"
_REMEDY = f"make one with `citeloop sites new-key` and export {VARIABLE} where workers, API and CLI run"


class SealError(ValueError):
    """A missing or wrong key, in one line with the remedy; it never holds a secret."""


class Seal:
    """keys: one, or several separated by commas: the first one seals, all of them open (rotation)."""

    def __init__(self, keys: str | None) -> None:
        given = [one.strip() for one in (keys or "").split(",") if one.strip()]
        if not given:
            raise SealError(f"{VARIABLE} is not set: secrets of sites cannot be kept without it; {_REMEDY}")
        try:
            self._box = MultiFernet([Fernet(one) for one in given])
        except ValueError:
            raise SealError(f"{VARIABLE} holds no Fernet key (44 characters of url-safe base64); {_REMEDY}") from None
        self._print_key = hashlib.sha256(b"citeloop.print\n" + given[0].encode()).digest()

    def close(self, secret: str, belongs_to: Sequence[str]) -> bytes:
        """belongs_to: tenant, name and origin; opened for anything else, it fails."""
        return self._box.encrypt(json.dumps([*belongs_to, secret]).encode())

    def open(self, sealed: bytes, belongs_to: Sequence[str]) -> str:
        """Raises SealError."""
        try:
            *owner, secret = json.loads(self._box.decrypt(sealed))
        except InvalidToken:
            raise SealError(
                f"the secret was sealed under another key; bring that key back behind a comma in {VARIABLE}, "
                "or give the secret again"
            ) from None
        if owner != list(belongs_to):
            raise SealError("the secret belongs to another site or address; give it again")
        return str(secret)

    def print_of(self, secret: str, belongs_to: Sequence[str]) -> str:
        """By which the same secret is known again, and by which nothing can be guessed without the key."""
        return hmac.new(self._print_key, json.dumps([*belongs_to, secret]).encode(), hashlib.sha256).hexdigest()[:32]


def new_key() -> str:
    return Fernet.generate_key().decode()
