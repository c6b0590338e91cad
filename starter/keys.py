"""Keys of the HTTP API: made once, shown once, kept as a hash."""

import hashlib
import hmac
import secrets

from citeloop.models import ids
from citeloop.models.record import Record
from citeloop.store.database import Database
from citeloop.store.repositories import api_keys
from citeloop.store.repositories.api_keys import Holder, KeyRole, KeyView, NewKey
from citeloop.store.repositories.tenants import TenantRow
from starter.errors import CommandError

PREFIX = "ck_"
_BYTES = 32
_SHOWN = 11
"""Characters that tell keys apart in a list; the other 35 are the secret."""
_LENGTH = len(PREFIX) + 43
_MAX_NAME = 100


class MadeKey(Record):
    id: str
    name: str
    role: KeyRole
    key: str
    """Never shown again."""


async def create(database: Database, tenant: TenantRow, name: str, role: KeyRole) -> MadeKey:
    """CommandError for a name that is blank, too long or unprintable."""
    if not name.strip() or len(name) > _MAX_NAME or not name.isprintable():
        raise CommandError(f"{name[:40]!r} is no name", "name", f"1 to {_MAX_NAME} printable characters")
    key = PREFIX + secrets.token_urlsafe(_BYTES)
    new = NewKey(id=ids.new_id(), name=name, role=role, prefix=key[:_SHOWN], hash=_hash(key))
    async with database.tenant(tenant.id) as scope:
        await api_keys.add(scope, new)
    return MadeKey(id=new.id, name=name, role=role, key=key)


async def listed(database: Database, tenant: TenantRow) -> list[KeyView]:
    async with database.tenant(tenant.id) as scope:
        return await api_keys.list_(scope)


async def revoke(database: Database, tenant: TenantRow, ref: str) -> KeyView:
    """`ref`: an id, or the beginning of the key as the list shows it. CommandError when none or several match."""
    known = await listed(database, tenant)
    found = [key for key in known if key.id == ref.upper() or (len(ref) > len(PREFIX) and key.prefix.startswith(ref))]
    if len(found) != 1:
        problem = f"{ref[:_SHOWN]!r} is {'no key' if not found else 'the beginning of several keys'}"
        raise CommandError(problem, "key", "`citeloop key list` shows their ids")
    async with database.tenant(tenant.id) as scope:
        await api_keys.revoke(scope, found[0].id)
    return found[0]


async def holder(database: Database, key: str) -> Holder | None:
    """Whose key it is; None when it is none of ours or revoked."""
    if not (key.startswith(PREFIX) and len(key) == _LENGTH and key.isascii()):
        return None
    wanted = _hash(key)
    found = await api_keys.holder(database, wanted)
    return found if found is not None and hmac.compare_digest(found.hash, wanted) else None


def _hash(key: str) -> str:
    """A fast hash will do: the key is 32 random bytes, not a password."""
    return hashlib.sha256(key.encode()).hexdigest()
