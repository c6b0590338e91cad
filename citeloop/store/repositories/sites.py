"""The registry of a tenant's own sites: put in batches, read by pages, and one by one with the sealed secret."""

# ruff: noqa: S608 - statements are put together from constants only

import json
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import Field

from citeloop.models.record import Record
from citeloop.models.site import SiteEntry, SiteState, SiteView
from citeloop.store.database import Scope
from citeloop.store.statements import Row, text

BATCH = 5_000
_COLUMNS = (
    "s.name, s.kind, s.base_url, s.username, s.rate, s.concurrency, s.labels, s.settings, s.state, s.revision, "
    "s.created_at, s.updated_at"
)
_PUT = text("""
INSERT INTO registered_sites AS s (tenant_id, name, kind, base_url, username, sealed, sealed_print, rate, concurrency,
  labels, settings)
SELECT :tenant, g.name, g.kind, g.base_url, g.username, g.sealed, g.sealed_print, g.rate, g.concurrency,
  string_to_array(g.labels, ','), CAST(g.settings AS json)
FROM unnest(CAST(:name AS varchar[]), CAST(:kind AS varchar[]), CAST(:base_url AS varchar[]),
  CAST(:username AS varchar[]), CAST(:sealed AS bytea[]), CAST(:sealed_print AS varchar[]), CAST(:rate AS varchar[]),
  CAST(:concurrency AS integer[]), CAST(:labels AS varchar[]), CAST(:settings AS varchar[]))
  AS g (name, kind, base_url, username, sealed, sealed_print, rate, concurrency, labels, settings)
ON CONFLICT (tenant_id, name) DO UPDATE SET kind = excluded.kind, base_url = excluded.base_url,
  username = excluded.username, sealed = excluded.sealed, sealed_print = excluded.sealed_print, rate = excluded.rate,
  concurrency = excluded.concurrency, labels = excluded.labels, settings = excluded.settings,
  revision = s.revision + 1, updated_at = clock_timestamp()
WHERE (s.kind, s.base_url, s.username, s.sealed_print, s.rate, s.concurrency, s.labels, s.settings::text)
  IS DISTINCT FROM (excluded.kind, excluded.base_url, excluded.username, excluded.sealed_print, excluded.rate,
    excluded.concurrency, excluded.labels, excluded.settings::text)
RETURNING s.name, s.revision = 1 AS made
""")
_DROP_LABELS = text("DELETE FROM site_labels WHERE tenant_id = :tenant AND name = ANY(CAST(:names AS varchar[]))")
_ADD_LABELS = text("""
INSERT INTO site_labels (tenant_id, label, name)
SELECT :tenant, g.label, g.name FROM unnest(CAST(:labels AS varchar[]), CAST(:names AS varchar[])) AS g (label, name)
""")
_KEPT = text("""
SELECT name, kind, base_url, username, sealed, sealed_print FROM registered_sites
WHERE tenant_id = :tenant AND name = ANY(CAST(:names AS varchar[]))
""")
_NAMED = text(
    f"SELECT {_COLUMNS}, s.sealed FROM registered_sites s "
    "WHERE s.tenant_id = :tenant AND s.name = ANY(CAST(:names AS varchar[])) ORDER BY s.name"
)
_SELECT = f"SELECT {_COLUMNS} FROM registered_sites s"
_PAGE = text(f"{_SELECT} WHERE s.tenant_id = :tenant AND s.name > :after ORDER BY s.name LIMIT :limit")
_OF_KIND = text(
    f"{_SELECT} WHERE s.tenant_id = :tenant AND s.kind = :kind AND s.name > :after ORDER BY s.name LIMIT :limit"
)
_OF_LABEL = text(f"""
SELECT {_COLUMNS} FROM site_labels l JOIN registered_sites s ON s.tenant_id = l.tenant_id AND s.name = l.name
WHERE l.tenant_id = :tenant AND l.label = :label AND l.name > :after
  AND (CAST(:kind AS varchar) IS NULL OR s.kind = :kind)
ORDER BY l.name LIMIT :limit
""")
_SET_STATE = text("""
UPDATE registered_sites SET state = :state, revision = revision + 1, updated_at = clock_timestamp()
WHERE tenant_id = :tenant AND name = :name AND state <> :state
""")
_REMOVE = text("DELETE FROM registered_sites WHERE tenant_id = :tenant AND name = :name RETURNING name")
_COUNT = text("SELECT count(*) FROM registered_sites WHERE tenant_id = :tenant")


class SealedEntry(Record):
    """An entry, ready to be kept."""

    entry: SiteEntry
    sealed: bytes = Field(repr=False)
    sealed_print: str


class Kept(Record):
    """What stands of a site whose entry comes again without its secret."""

    kind: str
    base_url: str
    username: str
    sealed: bytes = Field(repr=False)
    sealed_print: str


class Put(Record):
    new: int
    changed: int
    same: int


async def put(scope: Scope, entries: Sequence[SealedEntry]) -> Put:
    """Each name once. What is the same already is left as it is, and its revision with it."""
    new = changed = 0
    for start in range(0, len(entries), BATCH):
        batch = entries[start : start + BATCH]
        rows = (await scope.sql.execute(_PUT, {"tenant": scope.tenant_id, **_arrays(batch)})).all()
        made = sum(row.made for row in rows)
        new, changed = new + made, changed + len(rows) - made
        await _relabel(scope, batch, {row.name for row in rows}, changed=len(rows) > made)
    return Put(new=new, changed=changed, same=len(entries) - new - changed)


async def kept(scope: Scope, names: Iterable[str]) -> dict[str, Kept]:
    """By name. Names that are not there are left out."""
    rows = await scope.sql.execute(_KEPT, {"tenant": scope.tenant_id, "names": list(names)})
    return {row.name: Kept(**{key: value for key, value in row._asdict().items() if key != "name"}) for row in rows}


async def sealed(scope: Scope, names: Iterable[str]) -> list[tuple[SiteView, bytes]]:
    """With their sealed secrets. Names that are not there are left out."""
    rows = await scope.sql.execute(_NAMED, {"tenant": scope.tenant_id, "names": list(names)})
    return [(_view(row), bytes(row.sealed)) for row in rows]


async def find(scope: Scope, name: str) -> SiteView | None:
    found = await sealed(scope, [name])
    return found[0][0] if found else None


async def page(
    scope: Scope, *, after: str = "", limit: int, kind: str | None = None, label: str | None = None
) -> list[SiteView]:
    """In order of name, after `after`."""
    values: dict[str, Any] = {"tenant": scope.tenant_id, "after": after, "limit": limit}
    if label is not None:
        rows = await scope.sql.execute(_OF_LABEL, {**values, "label": label, "kind": kind})
    elif kind is not None:
        rows = await scope.sql.execute(_OF_KIND, {**values, "kind": kind})
    else:
        rows = await scope.sql.execute(_PAGE, values)
    return [_view(row) for row in rows]


async def set_state(scope: Scope, name: str, state: SiteState) -> None:
    await scope.sql.execute(_SET_STATE, {"tenant": scope.tenant_id, "name": name, "state": str(state)})


async def remove(scope: Scope, name: str) -> bool:
    """False when it was not there. Publications keep the name."""
    return bool(await scope.sql.execute(_REMOVE, {"tenant": scope.tenant_id, "name": name}))


async def count(scope: Scope) -> int:
    return int((await scope.sql.execute(_COUNT, {"tenant": scope.tenant_id})).scalar_one())


async def _relabel(scope: Scope, batch: Sequence[SealedEntry], touched: set[str], *, changed: bool) -> None:
    if changed:
        await scope.sql.execute(_DROP_LABELS, {"tenant": scope.tenant_id, "names": sorted(touched)})
    pairs = [
        (label, one.entry.name)
        for one in batch
        if one.entry.name in touched
        for label in dict.fromkeys(one.entry.labels)
    ]
    if pairs:
        labels, names = zip(*pairs, strict=True)
        await scope.sql.execute(_ADD_LABELS, {"tenant": scope.tenant_id, "labels": list(labels), "names": list(names)})


def _arrays(batch: Sequence[SealedEntry]) -> dict[str, list[Any]]:
    return {
        "name": [one.entry.name for one in batch],
        "kind": [str(one.entry.kind) for one in batch],
        "base_url": [one.entry.base_url for one in batch],
        "username": [one.entry.user for one in batch],
        "sealed": [one.sealed for one in batch],
        "sealed_print": [one.sealed_print for one in batch],
        "rate": [one.entry.rate for one in batch],
        "concurrency": [one.entry.concurrency for one in batch],
        "labels": [",".join(dict.fromkeys(one.entry.labels)) for one in batch],
        "settings": [json.dumps(one.entry.settings, sort_keys=True) for one in batch],
    }


def _view(row: Row) -> SiteView:
    values = row._asdict()
    settings = values["settings"]
    return SiteView(
        user=values["username"],
        settings=json.loads(settings) if isinstance(settings, str) else settings,
        labels=tuple(values["labels"]),
        **{
            key: values[key]
            for key in (
                "name",
                "kind",
                "base_url",
                "rate",
                "concurrency",
                "state",
                "revision",
                "created_at",
                "updated_at",
            )
        },
    )
