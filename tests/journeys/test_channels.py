"""Channels that give out under a real worker: what waits there moves on, and what cannot move waits without loss."""

from pathlib import Path

import pytest

from citeloop.models.plan import ReviewMode, Stage, State
from citeloop.models.work import Progress
from citeloop.store.repositories import channels
from citeloop.store.repositories.channels import ChannelRow
from tests.installation import Installation, eventually
from tests.journeys.conftest import CHANNELS, Installing, Tell

pytestmark = [pytest.mark.journey, pytest.mark.timeout(240)]

WRITING = (Stage.GENERATE,)


@pytest.fixture
def chained(tmp_path: Path) -> Path:
    """deepseek and doubao fall back to qwen; all of them slow, so that work waits in their queues."""
    told = CHANNELS.read_text()
    for name in ("deepseek", "doubao"):
        told = told.replace(f"[channels.{name}]\n", f'[channels.{name}]\nfallback = "qwen"\n')
    file = tmp_path / "chained.toml"
    file.write_text(told)
    return file


async def row(journey: Installation, name: str) -> ChannelRow:
    async with journey.database.operator() as op:
        return next(each for each in await channels.rows(op) if each.name == name)


async def submitted(journey: Installation, count: int, writer: str, about: str) -> list[str]:
    return [
        await journey.submit(f"{about} {n}", mode=ReviewMode.AUTO, stages=WRITING, writers=(writer,))
        for n in range(count)
    ]


async def moves(journey: Installation, article_id: str) -> str:
    progress = await journey.workflow(article_id).query("progress", result_type=Progress)
    return "; ".join(progress.moves)


async def test_waiting_work_moves_on_from_a_channel_without_money_and_from_a_broken_one(
    installing: Installing, tell: Tell, chained: Path
) -> None:
    async with installing(api=False, channels=chained) as journey:
        await journey.sandbox.configure(
            deepseek={"exhausted": True, "http_500": 0.0},
            doubao={"http_503": 1.0},
            qwen={"reset": 0.0},
        )
        poor = await submitted(journey, 8, "deepseek", "poor")
        broken = await submitted(journey, 8, "doubao", "broken")
        for one in (*poor, *broken):
            article = await journey.until(one, State.DONE, State.PARKED, within=90)
            assert (article.state, article.writer) == (State.DONE, "qwen"), article.reason
        asked = {name: await journey.calls(name) for name in ("deepseek", "doubao", "qwen")}
        why_poor = [await moves(journey, one) for one in poor]
        why_broken = [await moves(journey, one) for one in broken]
        standing = {name: (await row(journey, name)).why for name in ("deepseek", "doubao")}
    assert all(why.startswith("deepseek: ") for why in why_poor), why_poor
    assert any("it is paused" in why for why in why_poor), why_poor
    assert all(why.startswith("doubao: ") for why in why_broken), why_broken
    assert any("its breaker is open: 5 faults in a row" in why for why in why_broken), why_broken
    assert asked["deepseek"] <= 4
    assert asked["qwen"] == 16
    assert standing["deepseek"].startswith("paused: ")
    tell(calls=asked, **{name: why[:60] for name, why in standing.items()})


async def test_work_on_the_last_channel_of_its_plan_waits_for_its_operator_and_goes_on(
    installing: Installing, tell: Tell
) -> None:
    async with installing(api=False) as journey:
        await journey.sandbox.configure(qwen={"exhausted": True, "reset": 0.0})
        waiting = await submitted(journey, 3, "qwen", "waiting")

        async def paused() -> bool:
            return (await row(journey, "qwen")).paused

        await eventually(paused, within=30)
        before = await journey.calls("qwen")
        await journey.sandbox.configure(qwen={"exhausted": False})
        async with journey.database.operator() as op:
            await channels.resume(op, "qwen")
        done = [await journey.until(one, State.DONE, State.PARKED, within=120) for one in waiting]
    assert [one.state for one in done] == [State.DONE] * 3
    assert all(one.faults == 0 for one in done)
    tell(calls_before_the_pause=before)
