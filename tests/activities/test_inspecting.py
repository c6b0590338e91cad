from collections.abc import Callable
from datetime import UTC, datetime

import httpx
import pytest

from citeloop.models.channel import Generator, SiteKind
from citeloop.models.work import CorrectionKind, Reading, Step
from citeloop.store.repositories import articles, publication_views
from tests.activities.test_callbacks import call_back, inbox
from tests.activities.test_correcting import published as page_on
from tests.activities.test_publishing import publish
from tests.activities.workshop import Workshop
from workflows.stages import PageQuery

PAGE = "<html><head><title>t</title></head><body><h1>{title}</h1><p>{text}</p></body></html>"


async def look(workshop: Workshop, step: Step, http: httpx.AsyncClient | None = None, *, late: bool = False) -> Reading:
    hands = workshop.inspecting(http)
    reading: Reading = await workshop.run(hands.page, PageQuery(step=step, late=late))
    return reading


def world(answer: Callable[[httpx.Request], httpx.Response]) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.MockTransport(answer))


async def published(workshop: Workshop, part: str = "blog") -> Step:
    step = await workshop.approved(await workshop.article(), part)
    await publish(workshop, step)
    return step


async def warnings(workshop: Workshop, step: Step) -> tuple[str, ...]:
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        found = await articles.find(scope, step.article_id)
    assert found is not None
    return found.warnings


async def test_a_page_of_the_sandbox_passes_and_what_was_found_is_kept(workshop: Workshop) -> None:
    step = await published(workshop)
    reading = await look(workshop, step)
    assert (reading.readable, reading.problems) == (True, ())
    assert reading.notes == ("the page has no JSON-LD",)
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        (row,) = await publication_views.list_(scope, article_id=step.article_id)
    assert row.reading == reading
    assert await warnings(workshop, step) == ()


async def test_a_confirmed_page_of_a_webhook_site_passes(workshop: Workshop) -> None:
    step = await published(workshop, "hook")
    await call_back(workshop, step, "msg_1", url=f"{workshop.sandbox.url}/hook/pages/1")
    await inbox(workshop, step)
    assert (await look(workshop, step)).readable is True


async def test_a_page_that_bars_engines_is_told_with_the_article(workshop: Workshop) -> None:
    def barred(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/robots.txt":
            return httpx.Response(200, text="User-agent: GPTBot\nDisallow: /\n")
        return httpx.Response(404, html="<h1>nothing</h1>")

    step = await published(workshop)
    reading = await look(workshop, step, world(barred))
    assert reading.readable is False
    assert reading.problems == ("the page answers HTTP 404", "robots.txt bars GPTBot")
    name = workshop.name("blog")
    assert await warnings(workshop, step) == (f"{name}: the page answers HTTP 404",)


async def test_a_site_that_does_not_answer_is_a_finding_and_no_failure(workshop: Workshop) -> None:
    def away(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    step = await published(workshop)
    reading = await look(workshop, step, world(away))
    assert reading.readable is False
    assert reading.problems[0].startswith("the page cannot be reached: ")


async def test_a_folder_is_looked_at_when_its_page_can_have_been_built(workshop: Workshop) -> None:
    step = await published(workshop)
    await workshop.change_site("blog", kind=SiteKind.FOLDER, folder="/nowhere", generator=Generator.HUGO)
    early = await look(workshop, step)
    assert (early.readable, "builds the page" in early.notes[0]) == (None, True)
    assert (await look(workshop, step, late=True)).readable is True


async def test_a_page_without_an_address_is_left_alone(workshop: Workshop) -> None:
    step = await published(workshop, "hook")
    reading = await look(workshop, step)
    assert (reading.readable, reading.notes) == (None, ("the site has told no address",))


@pytest.mark.parametrize(("status", "told"), [(200, "IndexNow was told"), (429, "IndexNow was not told: ")])
async def test_the_ping_is_told_and_fails_nothing(workshop: Workshop, status: int, told: str) -> None:
    pings: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.host == "api.indexnow.org":
            pings.append(request)
            return httpx.Response(status)
        return httpx.Response(404)

    step = await published(workshop)
    await workshop.change_site("blog", indexnow_key="0123456789abcdef")
    before = datetime.now(UTC)
    reading = await look(workshop, step, world(answer))
    assert reading.notes[-1].startswith(told)
    assert reading.checked_at >= before
    assert len(pings) == 1
    assert b"/blog/" in pings[0].content


async def test_a_corrected_page_is_compared_with_the_text_that_stands_there(workshop: Workshop) -> None:
    """The article's workflow knows the draft it published, and not the correction."""
    desk = await page_on(workshop, "blog")
    await desk.ask(CorrectionKind.CORRECT, await desk.new_draft())
    await desk.carry_out()
    assert (await look(workshop, desk.step, late=True)).readable is True
