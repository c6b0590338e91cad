"""Which request an idempotency key stands for: the first one."""

from citeloop.models.record import Record
from citeloop.store.database import Scope
from citeloop.store.statements import text

_CLAIM = text("""
INSERT INTO idempotency_keys (tenant_id, key, fingerprint, campaign_id, article_id)
VALUES (:tenant, :key, :fingerprint, :campaign_id, :article_id) ON CONFLICT DO NOTHING RETURNING true
""")
_FIND = text(
    "SELECT fingerprint, campaign_id, article_id FROM idempotency_keys WHERE tenant_id = :tenant AND key = :key"
)


class Claim(Record):
    """`fingerprint`: the digest of the request. One of the ids is what it makes."""

    fingerprint: str
    campaign_id: str | None = None
    article_id: str | None = None


async def claim(scope: Scope, key: str, mine: Claim) -> Claim | None:
    """None: the key is ours now. Otherwise what stands under it, once its transaction has ended."""
    place = {"tenant": scope.tenant_id, "key": key}
    if (await scope.sql.execute(_CLAIM, {**place, **mine.model_dump()})).scalar_one_or_none():
        return None
    row = (await scope.sql.execute(_FIND, place)).one()
    return Claim(**row._asdict())
