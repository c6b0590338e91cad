"""The inbox: what sites said about publications, each event kept once."""

from pydantic import AwareDatetime

from citeloop.models.record import Record
from citeloop.models.work import PublicationState
from citeloop.store.database import OperatorScope, Scope
from citeloop.store.repositories import publications
from citeloop.store.repositories.publications import Fields
from citeloop.store.statements import text

_RESERVATION = text("SELECT tenant_id, publication_id, article_id, site FROM citeloop_reservation(:token)")
_ENTER = text("SELECT set_config('citeloop.tenant', :tenant, true)")
_RECEIVE = text("""
INSERT INTO callbacks (tenant_id, publication_id, event_id, type, remote_id, url, received_at)
VALUES (:tenant, :publication, :event_id, :type, :remote_id, :url, :received_at)
ON CONFLICT DO NOTHING RETURNING true
""")
_DELIVERED = text(
    "SELECT delivered_at IS NOT NULL FROM callbacks "
    "WHERE tenant_id = :tenant AND publication_id = :publication AND event_id = :event_id"
)
_LOCK = text("SELECT 1 FROM publications WHERE tenant_id = :tenant AND id = :publication FOR UPDATE")
_PENDING = text("""
SELECT event_id, type, remote_id, url, received_at FROM callbacks
WHERE tenant_id = :tenant AND publication_id = :publication AND delivered_at IS NULL
ORDER BY received_at, event_id
""")
_DELIVER = text(
    "UPDATE callbacks SET delivered_at = now() "
    "WHERE tenant_id = :tenant AND publication_id = :publication AND delivered_at IS NULL"
)


PUBLISHED = "article.published"
"""The one event that moves a publication; others are kept and change nothing."""
_MAY_STAND = frozenset(PublicationState) - {PublicationState.PUBLISHED, PublicationState.WITHDRAWN}


class Inbound(Record):
    event_id: str
    type: str
    remote_id: str
    url: str
    received_at: AwareDatetime


class Delivery(Record):
    """`fresh`: seen for the first time. `delivered`: the article has already taken it."""

    tenant_id: str
    article_id: str
    site: str
    publication_id: str
    fresh: bool
    delivered: bool


async def receive(op: OperatorScope, token: str, event: Inbound) -> Delivery | None:
    """None: no such token. Call it in a transaction of its own: it enters the token's tenant."""
    found = (await op.sql.execute(_RESERVATION, {"token": token})).one_or_none()
    if found is None:
        return None
    place = {"tenant": found.tenant_id, "publication": found.publication_id}
    await op.sql.execute(_ENTER, {"tenant": found.tenant_id})
    fresh = (await op.sql.execute(_RECEIVE, {**place, **event.model_dump()})).scalar_one_or_none()
    delivered = (await op.sql.execute(_DELIVERED, {**place, "event_id": event.event_id})).scalar_one()
    return Delivery(**found._asdict(), fresh=fresh is not None, delivered=delivered)


async def reservation(op: OperatorScope, token: str) -> tuple[str, str, str] | None:
    """(tenant id, article id, site) of a callback's token."""
    found = (await op.sql.execute(_RESERVATION, {"token": token})).one_or_none()
    return (found.tenant_id, found.article_id, found.site) if found is not None else None


async def pending(scope: Scope, publication_id: str) -> list[Inbound]:
    """Events that no workflow has taken yet, oldest first; a newer one waits until this transaction ends."""
    values = {"tenant": scope.tenant_id, "publication": publication_id}
    await scope.sql.execute(_LOCK, values)
    rows = await scope.sql.execute(_PENDING, values)
    return [Inbound.model_validate(row._asdict()) for row in rows]


async def apply(scope: Scope, publication_id: str) -> bool:
    """What the site has said, on the publication's row; whether it has become published by that.

    A genuine word counts in every state and however late it comes: early ones arrive before the send has
    returned, late ones after the article was parked, or found absent. It never moves a page that stands or was
    withdrawn, and takes nothing back that the site has told before. Whether a workflow has taken it is not told here:
    see `delivered`.
    """
    moved = False
    for event in await pending(scope, publication_id):
        if event.type == PUBLISHED:
            said: Fields = {"reason": ""}
            if event.remote_id:
                said["remote_id"] = event.remote_id
            if event.url:
                said["url"] = event.url
            published = await publications.advance(
                scope, publication_id, expected=_MAY_STAND, to=PublicationState.PUBLISHED, **said
            )
            moved = moved or published is not None
    return moved


async def delivered(scope: Scope, publication_id: str) -> None:
    """What `pending` returned in this transaction is taken."""
    await scope.sql.execute(_DELIVER, {"tenant": scope.tenant_id, "publication": publication_id})
