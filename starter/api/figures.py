"""A campaign's figures, each with its definition, n and interval."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from citeloop.models.measure import Manifest, Sample
from citeloop.models.record import Record
from citeloop.rules import metrics
from citeloop.rules.definitions import DEFINITIONS, figures
from citeloop.rules.metrics import Figure
from citeloop.store.repositories import campaign_views, manifests, samples
from starter.api import examples
from starter.api.answers import KEY_NEEDED, answers
from starter.api.campaigns import no_campaign
from starter.api.paging import CampaignId
from starter.api.samples import Window
from starter.api.wiring import CallerDep

router = APIRouter(prefix="/v1/campaigns", tags=["metrics"], dependencies=[KEY_NEEDED])


class Prompts(StrEnum):
    KEYWORDS = "keywords"
    CONTROLS = "controls"


class StatedFigure(Record):
    """A number with what it means. `value` is null where nothing could be counted; that is never 0."""

    name: str
    definition: str
    value: float | None
    numerator: float
    n: float = Field(description="The denominator.")
    prompts: int
    low: float | None = Field(description="Of the 95 % cluster-Wilson interval.")
    high: float | None
    label: str = Field(description="`exploratory` under ten prompts: the interval is too short.")


class WindowFigures(Record):
    window: Window
    engine: str | None
    """None: all engines together."""
    samples: int
    figures: tuple[StatedFigure, ...]


class Metrics(Record):
    campaign_id: str
    manifest_id: str
    matcher_version: str
    prompts: Prompts
    branded: bool
    windows: tuple[WindowFigures, ...]


@router.get("/{campaign_id}/metrics", summary="Show a campaign's metrics", responses=answers(examples.METRICS, 404))
async def show_metrics(
    campaign_id: CampaignId,
    caller: CallerDep,
    prompts: Annotated[
        Prompts, Query(description="Those of the keywords, or the control prompts beside them.")
    ] = Prompts.KEYWORDS,
    branded: Annotated[bool, Query(description="Prompts that name the brand; never pooled with the others.")] = False,
) -> Metrics:
    """Before and after publishing, all engines together and each by itself; docs/metrics.md has the definitions."""
    async with caller.database.tenant(caller.tenant.id) as scope:
        campaign = await campaign_views.get(scope, campaign_id)
        if campaign is None:
            raise no_campaign(campaign_id)
        manifest = await manifests.head(scope, campaign.manifest_id)
        taken = await samples.of_campaign(scope, campaign_id)
    chosen = [sample for sample in taken if (sample.keyword is None) is (prompts is Prompts.CONTROLS)]
    return Metrics(
        campaign_id=campaign_id,
        manifest_id=manifest.id,
        matcher_version=manifest.matcher_version,
        prompts=prompts,
        branded=branded,
        windows=await asyncio.to_thread(_windows, chosen, manifest, branded=branded),
    )


def _windows(taken: Sequence[Sample], manifest: Manifest, *, branded: bool) -> tuple[WindowFigures, ...]:
    made = []
    for window in Window:
        for engine in (None, *manifest.engines):
            cell = [s for s in taken if s.window == window and engine in (None, s.engine) and s.branded == branded]
            if cell:
                made.append(
                    WindowFigures(
                        window=window,
                        engine=engine,
                        samples=len(cell),
                        figures=_stated(cell, manifest, branded=branded),
                    )
                )
    return tuple(made)


def _stated(cell: Sequence[Sample], manifest: Manifest, *, branded: bool) -> tuple[StatedFigure, ...]:
    rivals = [rival.name for rival in manifest.rivals]
    counted = figures(cell, rivals=rivals, domains=manifest.brand.domains, branded=branded)
    return tuple(_figure(figure) for figure in (*counted, *_coverage(metrics.coverage(cell))))


def _coverage(per_engine: Mapping[str, Figure]) -> Iterable[Figure]:
    """Of one engine: its own; all together have none, since an engine that is down has no rate."""
    return per_engine.values() if len(per_engine) == 1 else ()


def _figure(figure: Figure) -> StatedFigure:
    return StatedFigure(
        name=figure.name,
        definition=DEFINITIONS[figure.name],
        value=figure.value,
        numerator=figure.numerator,
        n=figure.denominator,
        prompts=figure.prompts,
        low=figure.low,
        high=figure.high,
        label=figure.label,
    )
