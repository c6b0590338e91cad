"""Answers of engines, scored; no answer is kept twice for one place in the measurement."""

# ruff: noqa: S608 - statements are put together from constants only

from citeloop.models.measure import Answer, Reading, Sample
from citeloop.models.work import SampleStep
from citeloop.store.database import OperatorScope, Scope
from citeloop.store.errors import NotFound
from citeloop.store.statements import Row, text

SURFACE = "api"
"""What the dialects ask; an app's answer is another thing and never mixed in."""

_PLACE = (
    "tenant_id = :tenant AND manifest_id = :manifest_id AND window_start = :window_start "
    "AND prompt_id = :prompt_id AND engine = :engine AND surface = 'api' AND replicate = :replicate"
)
_FIND = text(f"SELECT reading::text FROM samples WHERE {_PLACE} LIMIT 1")
_PUT = text("""
INSERT INTO samples (tenant_id, manifest_id, window_start, prompt_id, engine, surface, market, replicate, "window",
                     campaign_id, article_id, keyword, branded, status, reading, answer)
SELECT p.tenant_id, p.manifest_id, :window_start, p.id, :engine, 'api', p.locale, :replicate, :window, :campaign_id,
       :article_id, p.keyword, p.branded, :status, CAST(:reading AS json), CAST(:answer AS json)
FROM prompts p WHERE p.tenant_id = :tenant AND p.manifest_id = :manifest_id AND p.id = :prompt_id
ON CONFLICT DO NOTHING RETURNING prompt_id
""")
_COLUMNS = """
SELECT s.prompt_id, s.keyword, s.branded, s.engine, s."window", s.window_start, s.replicate,
       s.reading::text AS reading
FROM samples s """
_ORDER = " ORDER BY s.window_start, s.prompt_id, s.engine, s.replicate"
_OF_ARTICLE = text(_COLUMNS + "WHERE s.tenant_id = :tenant AND s.article_id = :article" + _ORDER)
_OF_CAMPAIGN = text(
    _COLUMNS + "JOIN campaigns c ON c.tenant_id = s.tenant_id AND c.manifest_id = s.manifest_id "
    "WHERE s.tenant_id = :tenant AND c.id = :campaign" + _ORDER
)
_OF_KEYWORD = text(
    _COLUMNS + "WHERE s.tenant_id = :tenant AND s.manifest_id = :manifest AND s.prompt_id IN "
    "(SELECT p.id FROM prompts p WHERE p.tenant_id = :tenant AND p.manifest_id = :manifest "
    "AND (p.id = :asked OR p.keyword = :asked))" + _ORDER
)
_ANSWER = text(f"SELECT answer::text FROM samples WHERE {_PLACE} LIMIT 1")
_AHEAD = text("SELECT citeloop_samples_ahead(:months)")


async def find(scope: Scope, step: SampleStep) -> Reading | None:
    found = (await scope.sql.execute(_FIND, _place(scope, step))).scalar_one_or_none()
    return Reading.model_validate_json(found) if found is not None else None


async def put(scope: Scope, step: SampleStep, reading: Reading, answer: Answer | None) -> None:
    """The first answer of a place stays. NotFound when the manifest has no such prompt."""
    values = {
        **_place(scope, step),
        "window": step.window,
        "campaign_id": step.campaign_id,
        "article_id": step.article_id,
        "status": str(reading.status),
        "reading": reading.model_dump_json(),
        "answer": answer.model_dump_json() if answer is not None else None,
    }
    if not await scope.sql.execute(_PUT, values) and await find(scope, step) is None:
        raise NotFound(f"manifest {step.manifest_id} has no prompt {step.prompt_id}")


async def find_answer(scope: Scope, step: SampleStep) -> Answer | None:
    """The answer as bought, with its raw body."""
    found = (await scope.sql.execute(_ANSWER, _place(scope, step))).scalar_one_or_none()
    return Answer.model_validate_json(found) if found is not None else None


async def of_article(scope: Scope, article_id: str) -> list[Sample]:
    """The samples that this article asked for."""
    rows = await scope.sql.execute(_OF_ARTICLE, {"tenant": scope.tenant_id, "article": article_id})
    return [_sample(row) for row in rows]


async def of_campaign(scope: Scope, campaign_id: str) -> list[Sample]:
    """Every sample under the campaign's manifest, whoever asked for it."""
    rows = await scope.sql.execute(_OF_CAMPAIGN, {"tenant": scope.tenant_id, "campaign": campaign_id})
    return [_sample(row) for row in rows]


async def of_keyword(scope: Scope, manifest_id: str, keyword: str) -> list[Sample]:
    """The samples of one question, named by its keyword or, where locales differ, by its prompt id."""
    values = {"tenant": scope.tenant_id, "manifest": manifest_id, "asked": keyword}
    return [_sample(row) for row in await scope.sql.execute(_OF_KEYWORD, values)]


async def prepare_months(op: OperatorScope, months: int = 3) -> int:
    """Make this month's partition and the next ones; how many were new."""
    return int((await op.sql.execute(_AHEAD, {"months": months})).scalar_one())


def _place(scope: Scope, step: SampleStep) -> dict[str, object]:
    return {
        "tenant": scope.tenant_id,
        **step.model_dump(include={"manifest_id", "window_start", "prompt_id", "engine", "replicate"}),
    }


def _sample(row: Row) -> Sample:
    values = row._asdict()
    return Sample(**{**values, "reading": Reading.model_validate_json(row.reading)})
