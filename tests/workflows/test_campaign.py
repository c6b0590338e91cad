import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any

import pytest
from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError, WorkflowHandle
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import WorkflowEnvironment

from citeloop.models.plan import MonitorPolicy, Stage
from citeloop.models.work import Held, SampleStep, Waiting
from tests.workflows.conftest import SCRIPTS, Theatre, _theatre
from tests.workflows.test_article import until
from tests.workflows.world import QUEUES, World, broken, plan, soon
from workflows.campaign import CampaignWorkflow
from workflows.orders import CampaignOrder, Rank, Word
from workflows.stages import CampaignBrief, CampaignChange, Census, Page, SamplePage, SampleQuery

ENGINES = plan().routes[Stage.MONITOR]
UNIQUE = itertools.count(1)
Campaign = WorkflowHandle[CampaignWorkflow, Census]


class Book:
    """A campaign's articles in memory; they are produced and end when the test says so."""

    def __init__(self, world: World, size: int, *, prompts: int = 2, monitor: MonitorPolicy | None = None) -> None:
        self.world = world
        self.waiting, self.active, self.open, self.review = size, 0, size, 0
        self.prompts = prompts
        self.admitted: list[int] = []
        self.brief = CampaignBrief(
            engines=ENGINES,
            monitor=monitor or MonitorPolicy(offsets=(), day=timedelta(days=1)),
            weight=2.0,
            priority=3,
        )
        world.script |= {
            "brief": lambda _: self.brief,
            "census": lambda _: self.census(),
            "admit": self._admit,
            "change": self._change,
            "questions": self._questions,
        }

    def census(self) -> Census:
        return Census(waiting=self.waiting, active=self.active, open=self.open, review=self.review)

    def produce(self, number: int) -> None:
        self.active -= number

    def end(self, number: int) -> None:
        self.open -= number

    def end_all(self) -> None:
        self.waiting = self.active = self.open = 0

    def asked(self, window: str) -> list[SampleStep]:
        return [step for step in self.world.steps["sample"] if step.window == window]

    def changes(self) -> list[str]:
        return [change.change for change in self.world.changes]

    def _admit(self, page: Page) -> Census:
        number = min(self.waiting, page.window - self.active)
        self.waiting -= number
        self.active += number
        self.admitted.append(number)
        return self.census()

    def _change(self, change: CampaignChange) -> None:
        if change.change == "cancel":
            self.end_all()

    def _questions(self, query: SampleQuery) -> SamplePage:
        """Pages of one prompt; one control after."""
        last = self.prompts - 1 if query.window == "baseline" else 0
        number = query.first // query.limit
        return SamplePage(prompt_ids=(f"{query.window}-{number}",), more=number < last, manifest_id="m1")


async def start(theatre: Theatre, **order: Any) -> Campaign:
    return await theatre.client.start_workflow(
        CampaignWorkflow.run,
        CampaignOrder(tenant_id="t1", campaign_id="c1", **order),
        id=f"campaign/t1/c1/{id(theatre.world)}/{next(UNIQUE)}",
        task_queue=QUEUES[0],
    )


@contextlib.contextmanager
def stuck(world: World) -> Iterator[asyncio.Event]:
    """Every sample waits for an engine that does not answer, until the event is set."""
    answer = asyncio.Event()

    async def wait(_: SampleStep) -> None:
        await answer.wait()

    world.script["sample"] = wait
    yield answer
    answer.set()


async def test_the_whole_baseline_is_asked_before_the_gate_opens(theatre: Theatre) -> None:
    book = Book(theatre.world, 1, prompts=3)
    asked_before: list[int] = []
    theatre.world.script["change"] = lambda change: asked_before.append(theatre.world.calls["sample"])
    campaign = await start(theatre)
    await until(lambda: book.changes() == ["baseline"])
    assert asked_before == [3 * len(ENGINES)]
    assert {(step.prompt_id, step.engine) for step in book.asked("baseline")} == {
        (f"baseline-{number}", engine.name) for number in range(3) for engine in ENGINES
    }
    assert {step.article_id for step in book.asked("baseline")} == {None}
    assert len({step.window_start for step in book.asked("baseline")}) == 1
    book.end_all()
    await campaign.result()


async def test_articles_are_admitted_as_the_window_has_room(theatre: Theatre) -> None:
    book = Book(theatre.world, 8)
    campaign = await start(theatre, window=3)
    await until(lambda: book.admitted == [3])
    book.produce(2)
    await until(lambda: book.admitted == [3, 2])
    assert book.census() == Census(waiting=3, active=3, open=8)
    assert await campaign.query(CampaignWorkflow.census) == book.census()
    book.end_all()
    await campaign.result()


async def test_admission_does_not_wait_for_the_engines(theatre: Theatre) -> None:
    book = Book(theatre.world, 4)
    with stuck(theatre.world):
        campaign = await start(theatre, window=2)
        await until(lambda: book.admitted == [2])
        book.produce(2)
        await until(lambda: book.admitted == [2, 2])
    book.end_all()
    await campaign.result()


async def test_a_campaign_that_is_measured_and_has_no_open_article_is_done(theatre: Theatre) -> None:
    book = Book(theatre.world, 2, monitor=MonitorPolicy(offsets=(1,), day=timedelta(milliseconds=100)))
    campaign = await start(theatre)
    await until(lambda: book.admitted == [2])
    book.produce(2)
    await until(lambda: len(book.asked("after")) == len(ENGINES))
    assert "done" not in book.changes()
    book.end(2)
    assert await campaign.result() == Census(waiting=0, active=0, open=0)
    assert book.changes() == ["baseline", "done"]


async def test_the_controls_offsets_count_from_when_nothing_waits_for_a_person_any_more(theatre: Theatre) -> None:
    book = Book(theatre.world, 1, monitor=MonitorPolicy(offsets=(1,), day=timedelta(milliseconds=100)))
    campaign = await start(theatre)
    await until(lambda: book.changes() == ["baseline"] and book.admitted == [1])
    book.active, book.review = 0, 1
    looks = theatre.world.calls["census"]
    await until(lambda: theatre.world.calls["census"] >= looks + 2)
    asked_meanwhile = len(book.asked("after"))
    book.review = 0
    await until(lambda: len(book.asked("after")) == len(ENGINES))
    assert asked_meanwhile == 0
    book.end(1)
    await campaign.result()


async def test_a_campaign_that_is_not_to_be_measured_asks_nobody(theatre: Theatre) -> None:
    book = Book(theatre.world, 2)
    book.brief = book.brief.model_copy(update={"engines": ()})
    campaign = await start(theatre)
    await until(lambda: book.admitted == [2])
    book.end_all()
    await campaign.result()
    assert (book.changes(), theatre.world.calls["sample"]) == (["done"], 0)


async def test_the_control_prompts_are_asked_again_at_the_offsets(years: Theatre) -> None:
    book = Book(years.world, 0, monitor=MonitorPolicy(offsets=(1, 3)))
    await (await start(years)).result()
    [before] = {step.window_start for step in book.asked("baseline")}
    after = sorted({step.window_start for step in book.asked("after")})
    assert [(when - before).days for when in after] == [1, 3]
    assert {step.prompt_id for step in book.asked("after")} == {"after-0"}
    assert len(book.asked("after")) == 2 * len(ENGINES)


async def test_a_pause_admits_nothing_more_and_is_told_to_the_articles(theatre: Theatre) -> None:
    book = Book(theatre.world, 4)
    campaign = await start(theatre, window=2)
    await until(lambda: book.admitted == [2])
    await campaign.signal(CampaignWorkflow.pause, Word(by="ann", reason="budget"))
    await until(lambda: "pause" in book.changes())
    assert [change.reason for change in theatre.world.changes if change.change == "pause"] == ["budget"]
    looks = theatre.world.calls["census"]
    book.produce(2)
    await until(lambda: theatre.world.calls["census"] >= looks + 2)
    assert book.admitted == [2]
    await campaign.signal("resume")
    await until(lambda: book.admitted == [2, 2])
    assert [change for change in book.changes() if change != "baseline"] == ["pause", "resume"]
    book.end_all()
    await campaign.result()


async def test_a_priority_is_told_to_the_articles_within_its_range(theatre: Theatre) -> None:
    book = Book(theatre.world, 1)
    campaign = await start(theatre)
    await campaign.signal(CampaignWorkflow.prioritise, Rank(priority=9))
    await until(lambda: "prioritise" in book.changes())
    [change] = [change for change in theatre.world.changes if change.change == "prioritise"]
    assert change.priority == 5
    book.end_all()
    await campaign.result()


async def test_a_word_is_heard_while_an_engine_keeps_everybody_waiting(theatre: Theatre) -> None:
    book = Book(theatre.world, 1)
    with stuck(theatre.world):
        campaign = await start(theatre)
        await until(lambda: theatre.world.calls["sample"] > 0)
        await campaign.signal("pause", {"reason": "budget"})
        await until(lambda: book.changes() == ["pause"])
        await campaign.signal("resume", {})
        await until(lambda: book.changes() == ["pause", "resume"])
    await until(lambda: book.changes()[-1] == "baseline")
    book.end_all()
    await campaign.result()


async def test_a_resume_is_heard_although_the_samples_are_held_and_they_go_on_at_once(theatre: Theatre) -> None:
    book = Book(theatre.world, 1)
    theatre.world.script["sample"] = lambda _: (
        None if "resume" in book.changes() else Held(by="campaign", reason="paused in the store")
    )
    campaign = await start(theatre)
    await until(lambda: theatre.world.calls["sample"] == len(ENGINES))
    await campaign.signal("resume")
    await until(lambda: book.changes() == ["resume", "baseline"])
    book.end_all()
    await campaign.result()


@pytest.mark.parametrize("trouble", ["silent", "held", "limited"])
async def test_a_cancelled_campaign_does_not_wait_for_its_baseline(theatre: Theatre, trouble: str) -> None:
    book = Book(theatre.world, 2)
    world = theatre.world
    if trouble == "held":
        world.script["sample"] = lambda _: Held(by="tenant", reason="budget")
    elif trouble == "limited":
        world.script["sample"] = lambda _: Waiting(until=soon(3600), reason="quota")
    with stuck(world) if trouble == "silent" else contextlib.nullcontext():
        campaign = await start(theatre)
        await until(lambda: world.calls["sample"] > 0)
        await campaign.signal(CampaignWorkflow.cancel, Word(by="ann", reason="wrong brand"))
        async with asyncio.timeout(15):
            await campaign.result()
    assert book.changes() == ["cancel"]
    assert world.changes[-1].reason == "wrong brand"


async def test_a_native_cancel_is_told_to_the_articles_too(theatre: Theatre) -> None:
    book = Book(theatre.world, 2)
    campaign = await start(theatre)
    await until(lambda: book.admitted == [2])
    await campaign.cancel()
    with pytest.raises(WorkflowFailureError):
        await campaign.result()
    assert book.changes()[-1] == "cancel"
    assert (await campaign.describe()).status is WorkflowExecutionStatus.CANCELED


async def test_a_dead_engine_lowers_the_coverage_and_opens_the_gate_all_the_same(theatre: Theatre) -> None:
    book = Book(theatre.world, 1)
    theatre.world.script["sample"] = lambda step: broken(step) if step.engine == "engine-b" else None
    campaign = await start(theatre)
    await until(lambda: book.changes() == ["baseline"])
    book.end_all()
    await campaign.result()


@pytest.fixture(scope="module")
async def short_of_memory() -> AsyncIterator[WorkflowEnvironment]:
    """The real server, which asks for a new run after 50 events already."""
    values = ("limit.historyCount.suggestContinueAsNew=50", 'history.timerProcessorMaxTimeShift="10ms"')
    async with await WorkflowEnvironment.start_local(
        data_converter=pydantic_data_converter,
        dev_server_existing_path=str(SCRIPTS / "temporal"),
        dev_server_extra_args=[part for value in values for part in ("--dynamic-config-value", value)],
        dev_server_log_level="error",
    ) as env:
        yield env


async def test_a_new_run_goes_on_where_the_old_one_stopped(short_of_memory: WorkflowEnvironment) -> None:
    async with _theatre(short_of_memory) as theatre:
        book = Book(theatre.world, 6, prompts=8, monitor=MonitorPolicy(offsets=(1, 2), day=timedelta(milliseconds=300)))
        campaign = await start(theatre, window=2)
        await until(lambda: "baseline" in book.changes(), 30)
        for _ in range(3):
            await until(lambda: book.active == 2, 30)
            book.produce(2)
        await until(lambda: len(book.asked("after")) == 2 * len(ENGINES), 30)
        book.end(6)
        await campaign.result()
        runs = await _runs(campaign)
    assert runs >= 3
    assert book.admitted == [2, 2, 2]
    assert book.changes() == ["baseline", "done"]
    baseline = [(step.prompt_id, step.engine) for step in book.asked("baseline")]
    assert len(baseline) == len(set(baseline)) == 8 * len(ENGINES)
    assert len({step.window_start for step in book.asked("baseline")}) == 1


async def _runs(campaign: Campaign) -> int:
    """How many runs there were, by following the chain."""
    client, run_id, runs = campaign._client, campaign.first_execution_run_id, 0
    while run_id:
        handle = client.get_workflow_handle(campaign.id, run_id=run_id)
        last = [event async for event in handle.fetch_history_events()][-1]
        run_id = last.workflow_execution_continued_as_new_event_attributes.new_execution_run_id
        runs += 1
    return runs


async def test_a_paused_campaign_rests_though_articles_wait_and_goes_on_at_once(years: Theatre) -> None:
    book = Book(years.world, 8)
    campaign = await start(years, window=3)
    await until(lambda: book.admitted == [3])
    await campaign.signal("pause")
    await years.env.sleep(timedelta(days=1))
    assert years.world.calls["census"] < 250
    await campaign.signal("resume")
    book.produce(3)
    await until(lambda: book.admitted == [3, 3])
    book.end_all()
    await campaign.result()


async def test_a_campaign_that_is_paused_in_mid_baseline_does_not_ask_on(years: Theatre) -> None:
    """Hundreds of held samples that ask twice a minute would end it: the server allows 51,200 events."""
    book = Book(years.world, 1)
    years.world.script["sample"] = lambda _: (
        None if "resume" in book.changes() else Held(by="campaign", reason="paused in the store")
    )
    campaign = await start(years)
    await campaign.signal("pause", {"reason": "holidays"})
    await years.env.sleep(timedelta(days=3))
    assert years.world.calls["sample"] <= 5 * len(ENGINES)
    await campaign.signal("resume")
    await until(lambda: book.changes() == ["pause", "resume", "baseline"])
    book.end_all()
    await campaign.result()
