"""A real WordPress: twenty articles through lost replies and late inserts, and the suite every publisher passes."""

import asyncio
import base64
import json
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
from temporalio.testing import ActivityEnvironment

from activities.inspecting import InspectingActivities
from activities.publishing import PublishingActivities
from citeloop.channels.illustrators.card import TitleCard
from citeloop.channels.outside import Outside
from citeloop.channels.ports import PictureBrief
from citeloop.channels.publishers.page_check import check_page
from citeloop.channels.publishers.wordpress import WordPress
from citeloop.channels.wire import Wire
from citeloop.models import ids
from citeloop.models.channel import Catalog, SiteKind, SiteSpec
from citeloop.models.plan import CallPolicy, Plan, Route, Stage
from citeloop.models.work import Action, Decision, Progress, PublicationState, Receipt, Step
from citeloop.rules import rendering
from citeloop.store.database import Database
from citeloop.store.repositories import articles, brands, decisions, drafts, pictures, publications
from citeloop.store.repositories.articles import NewArticle
from citeloop.store.repositories.tenants import TenantRow
from tests.channels.publishers.conformance import POST, Conformance, Subject
from tests.channels.publishers.proxy import Exchange, Proxy, proxied
from tests.channels.settings import call
from tests.store import material
from tests.wordpress import serve
from tests.wordpress.reader import Reader
from workflows.life import Life
from workflows.publication import publish_to
from workflows.stages import Inspecting, PageQuery, Publishing

pytestmark = [pytest.mark.journey, pytest.mark.timeout(420), pytest.mark.xdist_group("wordpress")]

ARTICLES = 20
POLICY = CallPolicy(
    connect=timedelta(seconds=3),
    first_byte=timedelta(seconds=7),
    between_chunks=timedelta(seconds=3),
    total=timedelta(seconds=8),
    heartbeat=timedelta(seconds=5),
    max_faults=100,
)
"""Shorter than the twenty seconds PHP sleeps. The faults are calls that never left while all of PHP was asleep."""
MAX_SERVER_TIME = timedelta(seconds=90)
"""Longer than PHP sleeps and than a request can wait before PHP takes it."""


@pytest.fixture(scope="module")
def wordpress() -> Iterator[serve.Site]:
    try:
        with serve.serve() as site:
            yield site
    except serve.CannotServe as reason:
        if os.geteuid() == 0:
            raise
        pytest.skip(str(reason))


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(trust_env=False, timeout=30) as client:
        yield client


@pytest.fixture
async def reader(wordpress: serve.Site, http: httpx.AsyncClient) -> Reader:
    made = Reader(wordpress, http)
    await made.clear()
    return made


def blog(url: str, login: serve.Login, http: httpx.AsyncClient) -> WordPress:
    site = SiteSpec(name="real", kind=SiteKind.WORDPRESS, base_url=url)
    coded = base64.b64encode(f"{login.user}:{login.password}".encode()).decode()
    return WordPress(site, login.user, login.password, Wire(http, "real", secrets=(login.password, coded)))


class Driver:
    """Stands in for a workflow run: `publish_to` asks it, and it runs the real activities, a few at a time."""

    def __init__(
        self,
        plan: Plan,
        draft_id: str,
        hands: PublishingActivities,
        looks: InspectingActivities,
        slots: asyncio.Semaphore,
    ) -> None:
        self.plan = plan
        self.progress = Progress(stage=Stage.PUBLISH)
        self.steering = SimpleNamespace(withdrawn=set(), callbacks=set(), guard=lambda: None)
        self.seen: list[PublicationState] = []
        self.sends = 0
        self._draft_id = draft_id
        self._slots = slots
        self._promises: dict[object, Callable[[Any], Awaitable[Any]]] = {
            Publishing.publish: hands.publish,
            Publishing.reconcile: hands.reconcile,
            Publishing.inbox: hands.inbox,
            Inspecting.page: looks.page,
        }

    async def publish(self, route: Route) -> Receipt:
        return await publish_to(cast(Life, self), route)

    async def gate(self, _stage: Stage) -> None:
        self.sends += 1

    async def call(self, promise: object, order: Step | PageQuery, _config: object) -> Any:
        environment = ActivityEnvironment()
        environment.info = replace(environment.info, heartbeat_timeout=POLICY.heartbeat)
        async with self._slots:
            answer = await environment.run(self._promises[promise], order)
        if isinstance(answer, Receipt):
            self.seen.append(answer.state)
        return answer

    ask = call

    async def wait(self, until: datetime | None, _reason: str, *, at_least: timedelta = timedelta(0)) -> None:
        left = until.timestamp() - time.time() if until is not None else 0.0
        await asyncio.sleep(max(0.0, left, at_least.total_seconds()))

    def set(self, **changes: object) -> None:
        self.progress = self.progress.model_copy(update=changes)

    def step(self, stage: Stage, route: Route) -> Step:
        return material.step(self.plan, stage, route.name).model_copy(update={"draft_id": self._draft_id})


async def approved(database: Database, tenant: TenantRow, number: int, route: Route) -> tuple[Plan, str, str]:
    """(plan, draft id, slug) of an article with its picture, approved by a person."""
    title = f"Cold brewed tea, part {number} 冷泡茶"
    body = f"# {title}\n\nPart {number} is about cold water.\n\n## Why cold water?\n\nIt draws less bitterness.\n"
    async with database.tenant(tenant.id) as scope:
        plan = material.plan(tenant.id, await brands.put(scope, material.brand()), keyword=f"cold tea {number}")
        plan = plan.model_copy(update={"routes": plan.routes | {Stage.PUBLISH: (route,)}})
        await articles.submit(scope, [NewArticle(plan=plan, position=number)])
        draft = material.draft(body).model_copy(update={"title": title})
        await drafts.add(scope, plan.article_id, draft, body)
        decided = Decision(action=Action.APPROVE, draft_id=draft.id, draft_digest=draft.digest, by="ann")
        await decisions.record(scope, plan.article_id, decided)
        card = TitleCard(brand="Tea").draw(PictureBrief(prompt="", title=title, alt=title))
        await pictures.put(
            scope,
            article_id=plan.article_id,
            digest=ids.text_digest(title),
            data=card.data,
            media_type=card.media_type,
            width=card.width,
            height=card.height,
            alt=f"a cup of tea, {number}",
            credit="Photo: A. Photographer",
            source="card",
        )
    return plan, draft.id, rendering.slug(title, plan.article_id, plan.locale)


def site_of(wordpress: serve.Site, url: str) -> tuple[SiteSpec, Route, dict[str, str]]:
    spec = SiteSpec(
        name="real",
        kind=SiteKind.WORDPRESS,
        base_url=url,
        user_env="USER",
        secret_env="PASSWORD",
        concurrency=serve.WORKERS,
        max_server_time=MAX_SERVER_TIME,
        policy=POLICY,
        tags=("tea",),
    )
    login = wordpress.logins["editor"]
    environ = {"USER": login.user, "PASSWORD": login.password}
    return spec, Route(name="real", queue=spec.queue, policy=POLICY), environ


async def test_twenty_articles_are_twenty_posts_whatever_happens_on_the_way(
    wordpress: serve.Site, reader: Reader, database: Database, tenant: TenantRow, tell: Callable[..., None]
) -> None:
    begun = time.monotonic()
    async with proxied(wordpress.url) as proxy:
        spec, route, environ = site_of(wordpress, proxy.url)
        outside = Outside(Catalog(sites=(spec,), allow_private_addresses=True), environ)
        hands, looks = PublishingActivities(database, outside, ""), InspectingActivities(database, outside)
        work = [await approved(database, tenant, number, route) for number in range(ARTICLES)]
        cut, slow = {slug for *_, slug in work[0::3]}, {slug for *_, slug in work[1::3]}
        (wordpress.content / "slow.txt").write_text("\n".join(slow))
        inserted = Counter[str]()
        proxy.loses = _once_each(cut, inserted)
        slots = asyncio.Semaphore(spec.concurrency)
        drivers = [Driver(plan, draft_id, hands, looks, slots) for plan, draft_id, _ in work]
        receipts = await asyncio.gather(*(driver.publish(route) for driver in drivers))
        seconds = time.monotonic() - begun

        assert {receipt.state for receipt in receipts} == {PublicationState.PUBLISHED}
        standing = {post["slug"]: post for post in await reader.posts()}
        assert len(await reader.posts()) == ARTICLES
        assert set(standing) == {slug for *_, slug in work}
        assert inserted == dict.fromkeys(standing, 1)
        assert proxy.lost == {"201 POST /wp-json/wp/v2/posts": len(cut)}
        await _illustrated(reader, standing)
        unknown = [driver for driver in drivers if PublicationState.UNKNOWN in driver.seen]
        assert len(unknown) >= len(cut) + len(slow)
        for plan, _, slug in work:
            await _found(database, outside, plan, slug, standing[slug])
        await outside.close()
    (wordpress.content / "slow.txt").unlink()
    tell(
        articles=ARTICLES,
        replies_lost=len(cut),
        timed_out_before_the_insert=len(slow),
        posts=len(standing),
        looked_up_after_doubt=len(unknown),
        seconds=round(seconds, 1),
    )


def _once_each(slugs: set[str], inserted: "Counter[str]") -> Callable[[Exchange], bool]:
    left = set(slugs)

    def loses(one: Exchange) -> bool:
        if one.method != "POST" or not one.target.endswith("/wp/v2/posts") or one.status != httpx.codes.CREATED:
            return False
        slug = json.loads(one.body)["slug"]
        inserted[slug] += 1
        lost = slug in left
        left.discard(slug)
        return lost

    return loses


async def _illustrated(reader: Reader, standing: dict[str, dict[str, Any]]) -> None:
    """Each post has a featured picture of its own, with alt text."""
    media = [await reader.media(post["featured_media"]) for post in standing.values()]
    assert len({one["id"] for one in media}) == ARTICLES
    assert {one["media_type"] for one in media} == {"image"}
    assert {one["alt_text"] for one in media} == {f"a cup of tea, {number}" for number in range(ARTICLES)}


async def _found(database: Database, outside: Outside, plan: Plan, slug: str, standing: dict[str, Any]) -> None:
    """The look-up and the row name the one post that stands."""
    marker = rendering.marker(plan.article_id)
    looked = POST.model_copy(update={"marker": marker, "slug": slug})
    found = await outside.publisher("real").look_up(looked, call())
    async with database.tenant(plan.tenant_id) as scope:
        row = await publications.get(scope, plan.article_id, "real")
    assert found is not None
    assert row is not None
    assert found.remote_id == row.remote_id == str(standing["id"])


async def test_a_page_of_the_real_site_can_be_read_by_answer_engines(
    wordpress: serve.Site, reader: Reader, http: httpx.AsyncClient
) -> None:
    publisher = blog(wordpress.url, wordpress.logins["editor"], http)
    post = POST.model_copy(
        update={
            "tags": ("Tea", "R&D"),
            "categories": ("Guides",),
            "json_ld": rendering.json_ld(
                "# Tea\n\nCold water.\n\n## Why </script>?\n\nSo.\n",
                locale="en",
                brand="Acme",
                homepage="https://a.example",
            ),
        }
    )
    placed = await publisher.publish(post, call())
    assert placed.notes == ()
    report = await check_page(Wire(http, "real"), placed.url, post, call())
    assert (report.problems, report.notes, report.barred) == ((), (), ())
    (page,) = await reader.pages()
    assert '"@type": "FAQPage"' in page
    assert "<br" not in page
    again = await publisher.publish(
        post.model_copy(update={"marker": "citeloop-another", "slug": "another-tea"}), call()
    )
    assert again.notes == ()
    first, second = await reader.posts()
    assert (sorted(first["tags"]), first["categories"]) == (sorted(second["tags"]), second["categories"])
    assert len(first["tags"]) == 2


async def test_an_account_without_unfiltered_html_is_told_what_it_lacks(
    wordpress: serve.Site, reader: Reader, http: httpx.AsyncClient
) -> None:
    publisher = blog(wordpress.url, wordpress.logins["author"], http)
    report = await publisher.check(call())
    assert report.ok
    assert any("unfiltered_html" in note for note in report.notes)
    ld = rendering.json_ld("# Tea\n\nCold.\n", locale="en", brand="Acme", homepage="https://a.example")
    placed = await publisher.publish(POST.model_copy(update={"json_ld": ld, "categories": ("never seen",)}), call())
    assert any("unfiltered_html" in note for note in placed.notes)
    assert any("never seen" in note for note in placed.notes)
    (page,) = await reader.pages()
    assert "schema.org" not in page


class TestConformance(Conformance):
    """The suite that the sandbox and the recorded-shape servers pass, before the real thing."""

    @pytest.fixture
    async def subject(self, wordpress: serve.Site, reader: Reader, http: httpx.AsyncClient) -> AsyncIterator[Subject]:
        login = wordpress.logins["editor"]
        wrong = serve.Login(login.user, "abcd efgh ijkl mnop qrst uvwx")
        async with proxied(wordpress.url) as proxy:
            yield Subject(
                publisher=blog(proxy.url, login, http),
                wrong=blog(proxy.url, wrong, http),
                shown=reader.pages,
                lossy=lambda: _losing_posts(proxy),
                secrets=(login.password, wrong.password),
                elsewhere=lambda url: blog(url, login, http),
            )


@contextmanager
def _losing_posts(proxy: Proxy) -> Iterator[None]:
    with proxy.losing(lambda one: one.method == "POST" and one.target.endswith("/wp/v2/posts")):
        yield
    assert proxy.lost
