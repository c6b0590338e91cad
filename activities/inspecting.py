"""What an answer engine would find at a published address, and telling search engines that it is there."""

from datetime import UTC, datetime
from urllib.parse import urlsplit

from temporalio import activity

from activities.heartbeat import beating
from activities.sites import world_at
from citeloop.channels.errors import ChannelError
from citeloop.channels.outside import ChannelGone, Outside
from citeloop.channels.ports import Call, Post
from citeloop.models.channel import SiteKind
from citeloop.models.plan import CallPolicy
from citeloop.models.work import Reading
from citeloop.rules import rendering
from citeloop.store.database import Database
from citeloop.store.repositories import drafts, publications
from workflows import options, stages
from workflows.stages import PageQuery

POLICY = CallPolicy(total=options.INSPECTION / 2, first_byte=options.INSPECTION / 2)
_BUILT_LATER = "the site's generator builds the page after the text is in its folder: it is looked at before measuring"
_NO_PAGE = "a draft of the account has no public address until its people publish it"
_NO_ADDRESS = "the site has told no address"


class InspectingActivities(stages.Inspecting):
    def __init__(self, database: Database, outside: Outside) -> None:
        self._database = database
        self._outside = outside

    @activity.defn(name="inspecting.page")
    async def page(self, query: PageQuery) -> Reading:
        step = query.step
        assert step.draft_id is not None
        async with beating():
            async with self._database.tenant(step.tenant_id) as scope:
                row = await publications.get(scope, step.article_id, step.route)
                assert row is not None
                standing = await drafts.by_digest(scope, step.article_id, row.digest)
                stored = standing or await drafts.get(scope, step.draft_id)
                outside = await world_at(scope, self._outside, step.route)
            body = rendering.page(stored.body)
            post = Post(marker=row.marker, slug=row.slug, title=stored.draft.title, html=body.html)
            reading = await look(outside, step.route, row.url, post, late=query.late)
            if row.url and not query.late:
                reading = await told(outside, step.route, reading)
            async with self._database.tenant(step.tenant_id) as scope:
                await publications.read(scope, row.id, reading)
            return reading


async def look(outside: Outside, site: str, url: str, post: Post, *, late: bool = False) -> Reading:
    """Never raises: a page that cannot be fetched is what was to be found out."""
    now = datetime.now(UTC)
    if why := _too_early(outside, site, url, late=late):
        return Reading(url=url, readable=None, notes=(why,), checked_at=now)
    found = await outside.check_page(site, url, post, Call(purchase_id=f"page/{post.marker}", policy=POLICY))
    return Reading(url=url, readable=found.readable, problems=found.problems, notes=found.notes, checked_at=now)


async def told(outside: Outside, site: str, reading: Reading) -> Reading:
    """IndexNow is told of the page; `notes` say how that went."""
    return reading.model_copy(update={"notes": (*reading.notes, *await ping(outside, site, reading.url))})


def _too_early(outside: Outside, site: str, url: str, *, late: bool) -> str:
    try:
        kind = outside.site(site).kind
    except ChannelGone as gone:
        return str(gone)
    if kind is SiteKind.WECHAT:
        return _NO_PAGE
    if kind is SiteKind.FOLDER and not late:
        return _BUILT_LATER
    try:
        return "" if urlsplit(url).netloc else _NO_ADDRESS
    except ValueError:  # such as http://[
        return _NO_ADDRESS


async def ping(outside: Outside, site: str, url: str) -> tuple[str, ...]:
    """What is to be told of the ping; nothing where the site has no key. A ping that failed fails nothing else."""
    try:
        indexnow = outside.indexnow(site)
        if indexnow is None:
            return ()
        told = await indexnow.ping([url], Call(purchase_id=f"indexnow/{site}", policy=POLICY))
    except ChannelGone as error:
        return (f"IndexNow was not told: {error}",)
    except ChannelError as error:
        return (f"IndexNow was not told: {error.message}",)
    return (f"IndexNow: {told.note}" if told.note else "IndexNow was told",)
