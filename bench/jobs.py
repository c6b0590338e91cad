"""The jobs of a run: the same keywords for every contender, and for rivals the same prompts, written out."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.terms import ENGINES, KEY, TIMEOUT, WRITERS, Terms
from citeloop.models.brand import Brand
from citeloop.models.plan import Kind, Stage
from citeloop.rules import prompting
from starter import files, simulated

GENERATE = (Stage.GENERATE,)
SIX = tuple(Stage)
DRAFT = "@@DRAFT@@"
"""Where a rival puts its draft into the prompt of the rewriting."""

_SUBJECTS = ("hybrid search", "recommendations", "image retrieval", "agent memory", "log analysis", "deduplication")
_LOCALE = "en"


@dataclass(frozen=True)
class Batch:
    """Keywords of one tenant that are submitted together."""

    keywords: tuple[str, ...]
    tenant: str = "default"
    weight: float = 1.0
    priority: int = 3


def batch(number: int, label: str, **more: Any) -> Batch:
    return Batch(tuple(f"{label} {n:04d} vector database for {_SUBJECTS[n % 6]}" for n in range(number)), **more)


def brand() -> Brand:
    """The demo's brand without control questions: every call belongs to an article."""
    return files.read_brand(simulated.BRAND).model_copy(update={"control_prompts": ()})


def for_rivals(batches: Sequence[Batch], terms: Terms, stages: tuple[Stage, ...], url: str) -> dict[str, Any]:
    """One JSON object: the providers' terms, and each job with its prompts and its channel."""
    own = brand()
    channels = _channels(sum(len(one.keywords) for one in batches), terms)
    jobs: list[dict[str, Any]] = []
    for one in batches:
        for keyword in one.keywords:
            first = prompting.generate(keyword, _LOCALE, Kind.ARTICLE, own)
            second = prompting.rewrite(keyword, _LOCALE, Kind.ARTICLE, own, draft=DRAFT)
            jobs.append(
                {
                    "id": f"{one.tenant}/{keyword.replace(' ', '-')}",
                    "tenant": one.tenant,
                    "priority": one.priority,
                    "channel": channels[len(jobs)],
                    "keyword": keyword,
                    "system": [first.system, second.system],
                    "user": [first.user, second.user],
                    "max_tokens": first.max_tokens,
                    "question": prompting.question_for(keyword, _LOCALE).text,
                    "banned": list(own.banned_words),
                    "six": len(stages) > 1,
                }
            )
    return {
        "url": url,
        "key": KEY,
        "timeout": TIMEOUT,
        "rates": dict(terms.rates),
        "channels": list(terms.writers),
        "engines": list(ENGINES),
        "site": {"user": "citeloop", "password": simulated.ENVIRONMENT["SANDBOX_BLOG_PASSWORD"]},
        "jobs": jobs,
    }


def write_for_rivals(file: Path, told: dict[str, Any]) -> None:
    file.write_text(json.dumps(told, ensure_ascii=False))


def _channels(number: int, terms: Terms) -> list[str]:
    """In the proportion of the rates, well mixed: what the planner does for our articles."""
    weights = {name: terms.rates.get(name, 1.0) for name in terms.rates or WRITERS}
    owed = dict.fromkeys(weights, 0.0)
    chosen = []
    for _ in range(number):
        for name, weight in weights.items():
            owed[name] += weight
        name = max(owed, key=lambda one: owed[one])
        owed[name] -= sum(weights.values())
        chosen.append(name)
    return chosen
