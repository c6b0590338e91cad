"""Frozen measuring plans, their questions in rows of their own."""

from pydantic import TypeAdapter

from citeloop.models.brand import Entity
from citeloop.models.measure import Manifest, Prompt
from citeloop.store.database import Scope
from citeloop.store.errors import NotFound
from citeloop.store.remembered import Remembered
from citeloop.store.statements import text

_PUT = text("""
INSERT INTO manifests (tenant_id, id, version, brand, rivals, engines, replicates, matcher_version)
VALUES (:tenant, :id, :version, CAST(:brand AS json), CAST(:rivals AS json), CAST(:engines AS varchar[]),
        :replicates, :matcher_version)
ON CONFLICT DO NOTHING RETURNING true
""")
_PUT_PROMPTS = text("""
INSERT INTO prompts (tenant_id, manifest_id, id, position, text, locale, keyword, branded)
SELECT :tenant, :manifest, p->>'id', ordinality, p->>'text', p->>'locale', p->>'keyword', (p->>'branded')::boolean
FROM jsonb_array_elements(CAST(:prompts AS jsonb)) WITH ORDINALITY AS listed (p, ordinality)
ON CONFLICT DO NOTHING
""")
_GET = text("""
SELECT id, version, brand::text AS brand, rivals::text AS rivals, engines, replicates, matcher_version
FROM manifests WHERE tenant_id = :tenant AND id = :id
""")
_PROMPTS = text("""
SELECT id, text, locale, keyword, branded FROM prompts WHERE tenant_id = :tenant AND manifest_id = :manifest
ORDER BY position
""")
_PROMPT = text("""
SELECT id, text, locale, keyword, branded FROM prompts
WHERE tenant_id = :tenant AND manifest_id = :manifest AND id = :prompt
""")
_PAGE = text("""
SELECT c.manifest_id, p.id FROM campaigns c LEFT JOIN LATERAL (
  SELECT id, position FROM prompts
  WHERE tenant_id = c.tenant_id AND manifest_id = c.manifest_id AND (NOT :controls OR keyword IS NULL)
  ORDER BY position LIMIT :limit OFFSET :first) p ON true
WHERE c.tenant_id = :tenant AND c.id = :campaign ORDER BY p.position
""")
_RIVALS = TypeAdapter(tuple[Entity, ...])
_LISTED = TypeAdapter(tuple[Prompt, ...])
_KNOWN: Remembered[Manifest] = Remembered(200)


async def put(scope: Scope, manifest: Manifest) -> None:
    """Kept once by its id: a manifest never changes."""
    values = {
        "tenant": scope.tenant_id,
        **manifest.model_dump(include={"id", "version", "replicates", "matcher_version"}),
        "brand": manifest.brand.model_dump_json(),
        "rivals": _RIVALS.dump_json(manifest.rivals).decode(),
        "engines": list(manifest.engines),
    }
    new = (await scope.sql.execute(_PUT, values)).scalar_one_or_none()
    if new is None:
        return
    listed = _LISTED.dump_json(manifest.prompts).decode()
    await scope.sql.execute(_PUT_PROMPTS, {"tenant": scope.tenant_id, "manifest": manifest.id, "prompts": listed})


async def get(scope: Scope, manifest_id: str) -> Manifest:
    """With every question. One answer needs only one: `with_prompt`."""
    rows = await scope.sql.execute(_PROMPTS, {"tenant": scope.tenant_id, "manifest": manifest_id})
    prompts = tuple(Prompt(**row._asdict()) for row in rows)
    return (await head(scope, manifest_id)).model_copy(update={"prompts": prompts})


async def page(
    scope: Scope, campaign_id: str, *, controls: bool, first: int, limit: int
) -> tuple[str, tuple[str, ...]]:
    """A campaign's manifest, and the ids of some of its questions: of all, or of its controls. NotFound."""
    values = {
        "tenant": scope.tenant_id,
        "campaign": campaign_id,
        "controls": controls,
        "first": first,
        "limit": limit,
    }
    rows = (await scope.sql.execute(_PAGE, values)).all()
    if not rows:
        raise NotFound(f"no campaign {campaign_id}")
    return rows[0].manifest_id, tuple(row.id for row in rows if row.id is not None)


async def head(scope: Scope, manifest_id: str) -> Manifest:
    """Without its questions. NotFound."""
    return await _KNOWN.get(scope.tenant_id, manifest_id, lambda: _head(scope, manifest_id))


async def with_prompt(scope: Scope, manifest_id: str, prompt_id: str) -> Manifest:
    """The manifest with this question alone. NotFound when it has none of that id."""
    prompt = await find_prompt(scope, manifest_id, prompt_id)
    if prompt is None:
        raise NotFound(f"manifest {manifest_id} has no prompt {prompt_id}")
    return (await head(scope, manifest_id)).model_copy(update={"prompts": (prompt,)})


async def find_prompt(scope: Scope, manifest_id: str, prompt_id: str) -> Prompt | None:
    values = {"tenant": scope.tenant_id, "manifest": manifest_id, "prompt": prompt_id}
    row = (await scope.sql.execute(_PROMPT, values)).one_or_none()
    return Prompt(**row._asdict()) if row is not None else None


async def _head(scope: Scope, manifest_id: str) -> Manifest:
    row = (await scope.sql.execute(_GET, {"tenant": scope.tenant_id, "id": manifest_id})).one_or_none()
    if row is None:
        raise NotFound(f"no manifest {manifest_id}")
    return Manifest(
        id=row.id,
        version=row.version,
        brand=Entity.model_validate_json(row.brand),
        rivals=_RIVALS.validate_json(row.rivals),
        prompts=(),
        engines=tuple(row.engines),
        replicates=row.replicates,
        matcher_version=row.matcher_version,
    )
