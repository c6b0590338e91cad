"""What the doors show of samples: page by page, each with its whole place in the measurement."""

from datetime import datetime
from typing import Any

from pydantic import AwareDatetime

from citeloop.models.measure import Reading
from citeloop.models.record import Record
from citeloop.store.database import Scope
from citeloop.store.statements import Row, text

_COLUMNS = """
SELECT s.manifest_id, s.window_start, s.prompt_id, s.engine, s.surface, s.market, s.replicate, s."window", s.keyword,
       s.branded, s.reading::text AS reading, s.asked_at
FROM samples s WHERE s.tenant_id = :tenant AND s.manifest_id = :manifest
  AND (CAST(:window AS varchar) IS NULL OR s."window" = :window)
  AND (CAST(:engine AS varchar) IS NULL OR s.engine = :engine)
"""
_AFTER = """
  AND (s.window_start, s.prompt_id, s.engine, s.surface, s.market, s.replicate) >
      (:after_window_start, :after_prompt_id, :after_engine, :after_surface, :after_market, :after_replicate)
"""
_PROMPT = "  AND s.prompt_id = :prompt\n"
_ORDER = "ORDER BY s.window_start, s.prompt_id, s.engine, s.surface, s.market, s.replicate LIMIT :limit"
_STATEMENTS = {
    (of_prompt, after): text(_COLUMNS + (_PROMPT if of_prompt else "") + (_AFTER if after else "") + _ORDER)
    for of_prompt in (False, True)
    for after in (False, True)
}


class Place(Record):
    """One sample's place under its manifest, in the order of the primary key."""

    window_start: AwareDatetime
    prompt_id: str
    engine: str
    surface: str
    market: str
    replicate: int


class SampleView(Place):
    manifest_id: str
    window: str
    keyword: str | None
    """None: a control prompt."""
    branded: bool
    asked_at: datetime
    reading: Reading


async def page(
    scope: Scope,
    manifest_id: str,
    *,
    prompt_id: str | None = None,
    window: str | None = None,
    engine: str | None = None,
    after: Place | None = None,
    limit: int = 100,
) -> list[SampleView]:
    """The samples under a manifest, of one prompt if it is given, whoever asked for them."""
    values: dict[str, Any] = {
        "tenant": scope.tenant_id,
        "manifest": manifest_id,
        "prompt": prompt_id,
        "window": window,
        "engine": engine,
        "limit": limit,
    }
    if prompt_id is None:
        del values["prompt"]
    if after is not None:
        values.update({f"after_{name}": getattr(after, name) for name in Place.model_fields})
    rows = await scope.sql.execute(_STATEMENTS[prompt_id is not None, after is not None], values)
    return [_view(row) for row in rows]


def _view(row: Row) -> SampleView:
    values = row._asdict()
    return SampleView(**{**values, "reading": Reading.model_validate_json(values["reading"])})
