import asyncio
import gc
import statistics
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import Worker

from citeloop import sealing, telemetry
from citeloop.channels.outside import ChannelGone
from citeloop.channels.site_entries import MOST_AT_ONCE
from citeloop.models import ids
from citeloop.models.channel import SiteKind, publisher_queue
from citeloop.models.plan import MonitorPolicy, Plan, Stage
from citeloop.models.site import SiteEntry, SiteState
from citeloop.models.work import Action, Draft, Progress, PublicationState, Receipt, Step, Waiting
from citeloop.store.repositories import sites
from citeloop.store.statements import text
from starter.site_commands import Changes, SiteCommands, with_registered
from tests.activities.workshop import Workshop
from tests.channels.servers import Peer, RawServer, raw_server
from tests.payloads import history_text
from worker import Hands, _workflow_worker, posts
from workflows.article import ArticleWorkflow
from workflows.options import WORKFLOWS
from workflows.orders import ArticleOrder

KEY = sealing.new_key()
SIGNING = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
STAGES = (Stage.GENERATE, Stage.REVIEW, Stage.PUBLISH)


def commands(workshop: Workshop) -> SiteCommands:
    workshop.environ[sealing.VARIABLE] = KEY
    return SiteCommands(workshop.database, workshop.catalog, workshop.tenant, KEY)


def entry(name: str, url: str, kind: SiteKind = SiteKind.WORDPRESS, **changes: Any) -> SiteEntry:
    quick: dict[str, Any] = {"connect": "2s", "first_byte": "2s", "total": "5s", "heartbeat": "10s"}
    made = SiteEntry(
        name=name, kind=kind, base_url=url, concurrency=1, settings={"max_server_time": "4s", "timeouts": quick}
    )
    return made.model_copy(update=changes)


async def own_blog(workshop: Workshop, **changes: Any) -> str:
    """The sandbox's blog, registered by the tenant; the site's name."""
    user, secret = (workshop.environ[f"SANDBOX_BLOG_{part}"] for part in ("USER", "PASSWORD"))
    name = workshop.name("own")
    await commands(workshop).put(entry(name, f"{workshop.sandbox.url}/blog", user=user, **changes), secret)
    return name


async def planned(workshop: Workshop, keyword: str, *names: str) -> tuple[Plan, Draft]:
    """An approved article for the named sites, in store and not begun."""
    before = workshop.catalog
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        workshop.catalog = await with_registered(scope, before, names)
    try:
        plan = await workshop.article(keyword, stages=STAGES, sites=names, monitor=MonitorPolicy(offsets=()))
    finally:
        workshop.catalog = before
    return plan, await approved(workshop, plan)


async def approved(workshop: Workshop, plan: Plan) -> Draft:
    draft = await workshop.draft(plan)
    await workshop.decided(plan, draft, Action.APPROVE)
    return draft


async def step_to(workshop: Workshop, name: str, keyword: str = "vector database") -> Step:
    plan, draft = await planned(workshop, keyword, name)
    return workshop.step(plan, Stage.PUBLISH, "own", draft_id=draft.id)


async def publish(workshop: Workshop, step: Step) -> Receipt | Waiting:
    told = await workshop.run(workshop.publishing().publish, step)
    assert isinstance(told, Receipt | Waiting)
    return told


async def test_an_article_is_published_on_a_site_that_only_the_registry_knows(workshop: Workshop) -> None:
    step = await step_to(workshop, await own_blog(workshop))
    told = await publish(workshop, step)
    assert isinstance(told, Receipt)
    assert told.state is PublicationState.PUBLISHED
    assert await workshop.posts() == (1, 0)


async def test_a_busy_site_is_waited_for_and_nothing_is_spent(workshop: Workshop) -> None:
    async def hang(peer: Peer) -> None:
        await peer.closed.wait()

    async with raw_server(hang) as server:
        name = workshop.name("own")
        await commands(workshop).put(entry(name, server.url, user="ann"), "secret")
        first, second = await step_to(workshop, name, "one"), await step_to(workshop, name, "two")
        running = asyncio.create_task(publish(workshop, first))
        while not server.peers:
            await asyncio.sleep(0.01)
        told = await publish(workshop, second)
        assert isinstance(told, Waiting)
        assert told.reason == f"site {name} is busy"
        assert len(server.peers) == 1
        left = await running
        assert isinstance(left, Receipt)
        assert left.state is PublicationState.RESERVED
        again = await publish(workshop, second)
    assert isinstance(again, Receipt), "the visit ended with its activity"


async def test_a_site_that_asks_for_a_pause_is_left_alone_by_every_article(workshop: Workshop) -> None:
    async def full(peer: Peer) -> None:
        await peer.reply(429, b"{}", Retry_After="60")

    async with raw_server(full) as server:
        name = workshop.name("own")
        await commands(workshop).put(entry(name, server.url, user="ann"), "secret")
        first, second = await step_to(workshop, name, "one"), await step_to(workshop, name, "two")
        told = await publish(workshop, first)
        asked = len(server.peers)
        waits = await publish(workshop, second)
        assert len(server.peers) == asked
    assert isinstance(told, Receipt)
    assert told.state is PublicationState.RESERVED
    assert isinstance(waits, Waiting)
    assert (waits.until - datetime.now(UTC)).total_seconds() > 50


async def test_a_site_that_is_paused_for_long_is_looked_at_more_seldom(workshop: Workshop) -> None:
    """Each look adds to the article's history, which the server ends at 51,200 events."""
    name = await own_blog(workshop, rate="0")
    step = await step_to(workshop, name)
    soon = await publish(workshop, step)
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        earlier = text("UPDATE registered_sites SET updated_at = updated_at - interval '40 min' WHERE name = :name")
        await scope.sql.execute(earlier, {"name": name})
    later = await publish(workshop, step)
    assert isinstance(soon, Waiting)
    assert isinstance(later, Waiting)
    assert round((soon.until - datetime.now(UTC)) / timedelta(minutes=1)) == 2
    assert round((later.until - datetime.now(UTC)) / timedelta(minutes=1)) == 20


async def test_a_paused_site_is_sent_nothing_and_waits(workshop: Workshop) -> None:
    name = await own_blog(workshop)
    step = await step_to(workshop, name)
    await commands(workshop).change(name, Changes(state=SiteState.PAUSED))
    assert isinstance(await publish(workshop, step), Waiting)
    await commands(workshop).change(name, Changes(state=SiteState.ACTIVE))
    assert isinstance(await publish(workshop, step), Receipt)


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        ("removed", "is not in channels.toml, nor registered"),
        ("shadowed", "is in channels.toml and in the registry; rename one of the two"),
        ("another key", "sealed under another key"),
        ("no key", "CITELOOP_SECRET_KEY is not set"),
    ],
)
async def test_a_site_that_cannot_be_reached_for_our_own_reasons_fails_and_says_why(
    workshop: Workshop, trouble: str, reason: str
) -> None:
    name = await own_blog(workshop)
    step = await step_to(workshop, name)
    match trouble:
        case "removed":
            await commands(workshop).remove(name)
        case "shadowed":
            there = workshop.catalog.sites
            twin = there[0].model_copy(update={"name": name})
            workshop.catalog = workshop.catalog.model_copy(update={"sites": (*there, twin)})
        case "another key":
            workshop.environ[sealing.VARIABLE] = sealing.new_key()
        case _:
            del workshop.environ[sealing.VARIABLE]
    told = await publish(workshop, step)
    assert isinstance(told, Receipt)
    assert told.state is PublicationState.FAILED
    assert reason in told.reason
    assert await workshop.posts() == (0, 0)


async def test_a_rotated_key_still_opens_what_the_old_one_sealed(workshop: Workshop) -> None:
    step = await step_to(workshop, await own_blog(workshop))
    workshop.environ[sealing.VARIABLE] = f"{sealing.new_key()},{KEY}"
    assert isinstance(told := await publish(workshop, step), Receipt)
    assert told.state is PublicationState.PUBLISHED


async def test_a_new_secret_reaches_a_worker_that_has_learned_the_old_one(workshop: Workshop) -> None:
    name = await own_blog(workshop)
    user, secret = (workshop.environ[f"SANDBOX_BLOG_{part}"] for part in ("USER", "PASSWORD"))
    hands = workshop.publishing()
    await commands(workshop).put(entry(name, f"{workshop.sandbox.url}/blog", user=user), "no longer right")
    bad = await workshop.run(hands.publish, await step_to(workshop, name, "one"))
    await commands(workshop).put(entry(name, f"{workshop.sandbox.url}/blog", user=user), secret)
    good = await workshop.run(hands.publish, await step_to(workshop, name, "two"))
    assert isinstance(bad, Receipt)
    assert isinstance(good, Receipt)
    assert (bad.state, good.state) == (PublicationState.FAILED, PublicationState.PUBLISHED)


async def test_a_secret_moved_to_another_row_or_address_is_not_opened(workshop: Workshop) -> None:
    name = await own_blog(workshop)
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        ((view, sealed),) = await sites.sealed(scope, [name])
    world = workshop.outside()
    for stolen in (
        world.knowing(ids.new_id(), view, sealed),
        world.knowing(workshop.tenant.id, view.model_copy(update={"base_url": "http://elsewhere.example"}), sealed),
    ):
        with pytest.raises(Exception, match="belongs to another site or address"):
            stolen.publisher(name)


async def test_a_name_that_means_two_sites_means_none_even_to_who_has_learned_one(workshop: Workshop) -> None:
    name = await own_blog(workshop)
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        ((view, sealed),) = await sites.sealed(scope, [name])
    twin = workshop.catalog.sites[0].model_copy(update={"name": name})
    workshop.catalog = workshop.catalog.model_copy(update={"sites": (twin,)})
    world = workshop.outside()
    assert world.publisher(name)
    with pytest.raises(ChannelGone, match="rename one of the two"):
        world.knowing(workshop.tenant.id, view, sealed).publisher(name)


# with a real worker


@dataclass
class Fleet:
    workshop: Workshop
    client: Client
    handles: list[WorkflowHandle[Any, Any]] = field(default_factory=list)

    async def start(self, plan: Plan, draft: Draft) -> WorkflowHandle[Any, Any]:
        progress = Progress(stage=Stage.REVIEW, done=(Stage.GENERATE, Stage.REVIEW), draft=draft)
        handle = await self.client.start_workflow(
            ArticleWorkflow.run,
            ArticleOrder(plan=plan, progress=progress),
            id=ids.workflow_id(plan.tenant_id, plan.article_id),
            task_queue=WORKFLOWS,
        )
        self.handles.append(handle)
        return handle


@asynccontextmanager
async def fleet(workshop: Workshop, client: Client) -> AsyncIterator[Fleet]:
    """The workers of worker.py for articles that are to be published."""
    hands = Hands(workshop.database, workshop.outside(), client, "")
    wanted = {"publisher.webhook", "publisher.wordpress", "citeloop.bookkeeping"}
    patience = timedelta(seconds=2)
    async with AsyncExitStack() as stack:
        for post in posts(workshop.catalog, [], hands):
            if post.queue in wanted:
                served = Worker(
                    client,
                    task_queue=post.queue,
                    activities=post.activities,
                    max_concurrent_activities=post.slots,
                    graceful_shutdown_timeout=patience,
                )
                await stack.enter_async_context(served)
        await stack.enter_async_context(_workflow_worker(client, hands, patience))
        made = Fleet(workshop, client)
        yield made
        for handle in made.handles:
            await handle.cancel()
        await asyncio.gather(*(handle.result() for handle in made.handles), return_exceptions=True)
    gc.collect()


async def test_every_kind_of_site_is_served_though_channels_toml_names_none(workshop: Workshop, client: Client) -> None:
    hands = Hands(workshop.database, workshop.outside(), client, "")
    served = {post.queue: post.slots for post in posts(workshop.catalog.model_copy(update={"sites": ()}), [], hands)}
    for kind in SiteKind:
        assert served[publisher_queue(kind)] >= 10 * MOST_AT_ONCE


@pytest.mark.timeout(120)
async def test_the_secret_is_in_no_history_log_span_or_row(
    workshop: Workshop, client: Client, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    provider = telemetry.configure("worker", home=tmp_path, otlp_endpoint=None)
    name = await own_blog(workshop)
    user, secret = (workshop.environ[f"SANDBOX_BLOG_{part}"] for part in ("USER", "PASSWORD"))
    wrong = workshop.name("wrong")
    stranger = "another password altogether"
    await commands(workshop).put(entry(wrong, f"{workshop.sandbox.url}/blog", user=user), stranger)
    plan, draft = await planned(workshop, "vector database", name, wrong)
    async with fleet(workshop, client) as working:
        handle = await working.start(plan, draft)
        await handle.result()
        history = await history_text(handle)
    provider.force_flush()
    telemetry.shutdown(provider)
    spans = "".join(file.read_text() for file in (tmp_path / "traces").glob("*"))
    assert "publishing.publish" in spans
    assert f'"route":"{name}"' in history
    assert await workshop.posts() == (1, 0)
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        rows = str(await sites.sealed(scope, [name, wrong]))
    for told in (history, caplog.text, spans, rows):
        for hidden in (secret, stranger, secret.replace(" ", ""), KEY):
            assert hidden not in told


@dataclass
class Site:
    """Takes a while, as sites do, and notes when each article came."""

    delay: float
    came: list[float] = field(default_factory=list)

    async def behave(self, peer: Peer) -> None:
        await asyncio.sleep(self.delay)
        if peer.head.startswith("POST"):
            self.came.append(time.monotonic())
            await peer.reply(202, b"", connection="close")
        else:
            await peer.reply(404, b"", connection="close")


async def lookups(working: Fleet, names: Sequence[str], found: Sequence[Site], label: str) -> list[float]:
    """Seconds from each article's start to its arrival: two for each site, one after the other."""
    seconds: list[float] = []
    for turn in range(2):
        ready = [await planned(working.workshop, f"{label} {turn} {name}", name) for name in names]
        begun: dict[int, float] = {}
        for number, (plan, draft) in enumerate(ready):
            begun[number] = time.monotonic()
            await working.start(plan, draft)
            await asyncio.sleep(0.1)
        async with asyncio.timeout(40):
            while not all(len(site.came) for site in found):
                await asyncio.sleep(0.02)
        seconds += [site.came.pop() - begun[number] for number, site in enumerate(found)]
    return seconds


def p95(seconds: list[float]) -> float:
    return statistics.quantiles(seconds, n=20)[-1]


@pytest.mark.journey
@pytest.mark.timeout(180)
async def test_one_site_that_hangs_slows_down_none_of_29_that_answer(workshop: Workshop, client: Client) -> None:
    async def hang(peer: Peer) -> None:
        hung.append(peer)
        await peer.closed.wait()

    hung: list[Peer] = []
    async with AsyncExitStack() as stack:
        found = [Site(delay=1.0) for _ in range(29)]
        servers: list[RawServer] = [await stack.enter_async_context(raw_server(site.behave)) for site in found]
        hanging = await stack.enter_async_context(raw_server(hang))
        names = [workshop.name(f"s{number}") for number in range(29)]
        registry = commands(workshop)
        for name, server in zip(names, servers, strict=True):
            await registry.put(entry(name, server.url, SiteKind.WEBHOOK, concurrency=4), SIGNING)
        slow = workshop.name("slow")
        patient = {"connect": "2s", "first_byte": "60s", "total": "60s", "heartbeat": "10s"}
        await registry.put(
            entry(slow, hanging.url, SiteKind.WEBHOOK, concurrency=4, settings={"timeouts": patient}), SIGNING
        )
        working = await stack.enter_async_context(fleet(workshop, client))
        await lookups(working, names[:5], found[:5], "warm")
        alone = p95(await lookups(working, names, found, "alone"))
        for number in range(40):
            await working.start(*await planned(workshop, f"hangs {number}", slow))
        await asyncio.sleep(1)
        beside = alone * 10
        for attempt in range(3):  # others may be at work on this machine
            beside = min(beside, p95(await lookups(working, names, found, f"beside {attempt}")))
            if beside <= 1.5 * alone:
                break
        print(f"p95 of 29 sites: alone {alone:.3f} s, beside one that hangs {beside:.3f} s")  # noqa: T201
        assert len([peer for peer in hung if not peer.closed.is_set()]) == 4, "no more than its own concurrency"
        assert beside <= 1.5 * alone
