"""What can be done to articles and campaigns: typed, without a user interface, the same for every door."""

from collections.abc import AsyncIterator, Callable, Iterable
from datetime import timedelta

from temporalio.client import Client

from citeloop.models.brand import Brand
from citeloop.models.channel import Catalog
from citeloop.models.plan import State
from citeloop.models.record import Record
from citeloop.models.request import CampaignRequest
from citeloop.models.work import Action, Decision, PublicationState
from citeloop.store.database import Database, Scope
from citeloop.store.repositories import articles, campaigns, decisions, draft_views, drafts
from citeloop.store.repositories.articles import ArticleView
from citeloop.store.repositories.campaigns import CampaignView
from citeloop.store.repositories.tenants import TenantRow
from starter.errors import CommandError, Conflict
from starter.finding import digest_of, find_article, find_campaign
from starter.launching import Launcher
from starter.preflight import Preflight
from starter.submission import Desk, Stored
from starter.telling import Effect, Teller, effect_on
from workflows.orders import Rank, Word

PATIENCE = timedelta(seconds=5)
_PAGE = 200


class Submitted(Record):
    campaign_id: str | None
    article_ids: tuple[str, ...]
    new: int
    """How many of them were not there before."""
    started: bool
    """False: recorded, and the sweeper starts it as soon as Temporal answers."""


class Commands:
    def __init__(
        self,
        client: Client,
        database: Database,
        catalog: Catalog,
        tenant: TenantRow,
        *,
        preflight: Preflight | None = None,
        by: str = "cli",
        patience: timedelta = PATIENCE,
    ) -> None:
        """`preflight` None: keys are not tried before a submission. `by` stands in the audit."""
        self._database = database
        self._tenant = tenant
        self._preflight = preflight
        self._by = by
        self._teller = Teller(client, tenant.id, patience)
        self._launcher = Launcher(client, database, tenant.id, self._teller)
        self._desk = Desk(database, catalog, tenant)

    # submitting

    async def submit_campaign(self, brand: Brand, request: CampaignRequest, *, key: str | None = None) -> Submitted:
        return await self.start(await self.accept_campaign(brand, request, key=key), request)

    async def submit_article(self, brand: Brand, request: CampaignRequest, *, key: str | None = None) -> Submitted:
        """`request.keywords` holds the one keyword; its name is not used."""
        return await self.start(await self.accept_article(brand, request, key=key), request)

    async def accept_campaign(
        self, brand: Brand | str, request: CampaignRequest, *, key: str | None = None, asked: str | None = None
    ) -> Submitted:
        """Committed, not started: that is left to `start`, and to the sweeper where `start` is never called.

        brand: itself, or the handle under which it stands.
        asked: the digest of what the caller sent, where that is not (brand, request) itself.
        """
        await self._check(brand, request, key)
        return _submitted(await self._desk.campaign(brand, request, key, asked))

    async def accept_article(
        self, brand: Brand | str, request: CampaignRequest, *, key: str | None = None, asked: str | None = None
    ) -> Submitted:
        if len(request.keywords) != 1:
            raise CommandError("one article has one keyword", "keywords", "submit a campaign for several")
        await self._check(brand, request, key)
        return _submitted(await self._desk.article(brand, request, key, asked))

    async def start(self, accepted: Submitted, request: CampaignRequest) -> Submitted:
        """The workflow of what was accepted, unless it was started, held or ended meanwhile."""
        if accepted.campaign_id is None:
            started = await self._launcher.article(accepted.article_ids[0])
        else:
            started = await self._launcher.campaign(accepted.campaign_id, request.window)
        return accepted.model_copy(update={"started": started})

    # steering an article

    async def pause(self, article_id: str, reason: str = "") -> Effect:
        article = await self._open(article_id)
        why = reason or f"paused by {self._by}"
        async with self._database.tenant(self._tenant.id) as scope:
            await articles.hold(scope, article_id, why)
        # Nothing goes on during a review until somebody decides, and then the pause holds.
        return await self._teller.tell(
            article, "pause", self._word(reason=why), lambda p: p.state in {State.PAUSED, State.REVIEW}
        )

    async def resume(self, article_id: str) -> Effect:
        article = await self._open(article_id)
        async with self._database.tenant(self._tenant.id) as scope:
            await articles.hold(scope, article_id, None)
        return await self._teller.tell(article, "resume", self._word(), lambda p: p.state is not State.PAUSED)

    async def cancel(self, article_id: str, reason: str) -> Effect:
        article = await self._open(article_id)
        why = reason or f"cancelled by {self._by}"
        async with self._database.tenant(self._tenant.id) as scope:
            await articles.hold(scope, article_id, why)
        effect = await self._teller.tell(article, "cancel", self._word(reason=why), lambda p: p.state.ended)
        if not effect.answered and (article.started_at is None or await self._teller.lost(article.id)):
            effect = await self._end_lost(article, why)
        standing = [site for site, _, state in article.urls if state == "published"]
        if standing:
            remedy = f"its page on {', '.join(standing)} stands; `citeloop unpublish {article_id}` takes it away"
            return effect.model_copy(update={"message": f"{effect.message}; {remedy}"})
        return effect

    async def prioritise(self, article_id: str, priority: int) -> Effect:
        article = await self._open(article_id)
        rank = self._rank(priority)
        async with self._database.tenant(self._tenant.id) as scope:
            await articles.prioritise(scope, article_id, rank.priority)
        return await self._teller.tell(article, "prioritise", rank, lambda p: p.priority == rank.priority)

    async def decide(self, article_id: str, action: Action, *, notes: str = "", seen: str | None = None) -> Effect:
        """`seen` is the digest of the text the person read, or its beginning; None means the one that waits now.

        The first decision on a text counts: a second, different one is a Conflict.
        """
        seen = digest_of(seen) if seen is not None else None
        article = await self.article(article_id)
        async with self._database.tenant(self._tenant.id) as scope:
            waits = article.state is State.REVIEW
            if not waits and await self._said_before(scope, article_id, action, seen):
                return effect_on(article, answered=True, message="decided before")
            stored = (await drafts.latest(scope, article_id)) if waits else None
            if stored is None:
                raise Conflict(f"{article.keyword!r} waits for no decision; it is {article.state}", "article", "")
            draft = stored.draft
            if seen is not None and not draft.digest.startswith(seen):
                raise Conflict("the text has changed since it was read", "draft", "read it again")
            word = Decision(action=action, draft_id=draft.id, draft_digest=draft.digest, by=self._by, notes=notes)
            counts = await decisions.record(scope, article_id, word)
        if counts.action is not action:
            raise Conflict(f"{counts.by} has already said {counts.action} to this text", "draft", "")
        argument = Word(by=self._by, notes=notes, draft_digest=draft.digest)
        return await self._teller.tell(article, action, argument, lambda p: p.state is not State.REVIEW)

    async def retry(self, article_id: str) -> Effect:
        """A parked stage is tried again; a failed or cancelled article gets a new run that keeps what is done.

        A published article is tried again on the sites that have no page of it. One whose run is gone, terminated by
        hand or ended by the server, gets a new run too.
        """
        article = await self.article(article_id)
        lost = await self._is_lost(article)
        if not lost and article.state is State.PUBLISHED and not _settled(state for *_, state in article.urls):
            return await self._teller.tell(
                article, "retry", self._word(), lambda p: _settled(receipt.state for receipt in p.receipts)
            )
        if not lost and article.state not in {State.PARKED, State.FAILED, State.CANCELLED}:
            raise Conflict(
                f"{article.keyword!r} is {article.state}",
                "article",
                "only a parked, failed or cancelled one is retried, and one that lacks a page on a site",
            )
        async with self._database.tenant(self._tenant.id) as scope:
            if article.campaign_id is not None:
                await campaigns.hand_hold_down(scope, article.campaign_id)
            await articles.hold(scope, article.id, None)
        if not lost and article.state is State.PARKED:
            effect = await self._teller.tell(article, "retry", self._word(), lambda p: p.state is not State.PARKED)
            if effect.answered:
                return effect
        if not await self._launcher.article_again(article.id, article.state):
            return effect_on(article, answered=False, message="recorded; it starts when Temporal answers")
        effect = await self._teller.observe(article, lambda p: p.state is not State.PARKED)
        if not lost:
            return effect
        return effect.model_copy(update={"message": f"its run was gone; begun anew: {effect.message}"})

    # steering a campaign: the row first, then one signal; the campaign pages it out to its articles

    async def pause_campaign(self, campaign_id: str, reason: str = "") -> Effect:
        campaign = await self._open_campaign(campaign_id)
        why = reason or f"paused by {self._by}"
        async with self._database.tenant(self._tenant.id) as scope:
            await campaigns.hold(scope, campaign.id, why)
            await campaigns.note(scope, campaign.id, "paused")
        return await self._tell_campaign(campaign, "pause", self._word(reason=why), _none(State.RUNNING))

    async def resume_campaign(self, campaign_id: str) -> Effect:
        campaign = await self._open_campaign(campaign_id)
        async with self._database.tenant(self._tenant.id) as scope:
            await campaigns.hold(scope, campaign.id, None)
            await campaigns.note(scope, campaign.id, "submitted")
        await self._launcher.campaign(campaign.id, campaign.request.window)  # it may have been paused before its start
        campaign = campaign.model_copy(update={"state": "running", "hold": None})
        return await self._tell_campaign(campaign, "resume", self._word(), _none(State.PAUSED))

    async def cancel_campaign(self, campaign_id: str, reason: str) -> Effect:
        campaign = await self._open_campaign(campaign_id)
        why = reason or f"cancelled by {self._by}"
        async with self._database.tenant(self._tenant.id) as scope:
            await campaigns.hold(scope, campaign.id, why)
            await campaigns.note(scope, campaign.id, "cancelled")
            await articles.cancel_unstarted(scope, campaign.id, why)
        open_states = tuple(state for state in State if not state.ended)
        return await self._tell_campaign(campaign, "cancel", self._word(reason=why), _none(*open_states))

    async def prioritise_campaign(self, campaign_id: str, priority: int) -> Effect:
        rank = self._rank(priority)
        campaign = await self._open_campaign(campaign_id)
        async with self._database.tenant(self._tenant.id) as scope:
            await campaigns.prioritise(scope, campaign.id, rank.priority)
        return await self._tell_campaign(campaign, "prioritise", rank, _none())

    async def retry_campaign(self, campaign_id: str) -> tuple[Effect, ...]:
        """Every parked or failed article of the campaign."""
        parked = [article async for article in self._articles(campaign_id, State.PARKED)]
        failed = [article async for article in self._articles(campaign_id, State.FAILED)]
        return tuple([await self.retry(article.id) for article in (*parked, *failed)])

    # finding

    async def article(self, ref: str) -> ArticleView:
        """By id, unique beginning of an id, or exact keyword. CommandError when nothing or several match."""
        async with self._database.tenant(self._tenant.id) as scope:
            return await find_article(scope, ref)

    async def campaign(self, ref: str) -> CampaignView:
        """By id, unique beginning of an id, or name. CommandError when nothing or several match."""
        async with self._database.tenant(self._tenant.id) as scope:
            return await find_campaign(scope, ref)

    # inside

    async def _tell_campaign(
        self, campaign: CampaignView, signal: str, argument: Word | Rank, until: Callable[[CampaignView], bool]
    ) -> Effect:
        async def look() -> CampaignView:
            return await self.campaign(campaign.id)

        return await self._teller.tell_campaign(campaign, signal, argument, look, until)

    async def _said_before(self, scope: Scope, article_id: str, action: Action, seen: str | None) -> bool:
        """Whether the same word stands on the text that was seen: the answer to it was lost on its way."""
        if seen is None:
            return False
        said = await draft_views.decisions_of(scope, article_id)
        return any(one.action is action and one.draft_digest.startswith(seen) and one.by == self._by for one in said)

    async def _is_lost(self, article: ArticleView) -> bool:
        """Whether its row is open and its run is not; its end is noted then."""
        if article.state.ended or article.started_at is None or not await self._teller.lost(article.id):
            return False
        async with self._database.tenant(self._tenant.id) as scope:
            return await articles.cancel_lost(scope, article.id, "its run was gone")

    async def _end_lost(self, article: ArticleView, why: str) -> Effect:
        """What a run that is not there cannot note itself; it may have ended by itself a moment ago."""
        async with self._database.tenant(self._tenant.id) as scope:
            ended = await articles.cancel_lost(scope, article.id, why)
        message = "cancelled" if article.started_at is None else "cancelled; its run was gone"
        now = await self.article(article.id)
        return effect_on(now, answered=True, message=message if ended else f"it has ended: {now.state}")

    async def _check(self, brand: Brand | str, request: CampaignRequest, key: str | None) -> None:
        """Before anything is written: RequestError or CommandError. For a brand by handle no keys are tried."""
        if self._preflight is not None and isinstance(brand, Brand) and not await self._desk.holds(key):
            await self._preflight.check(await self._desk.sketch(brand, request))

    async def _open(self, article_id: str) -> ArticleView:
        article = await self.article(article_id)
        if article.state.ended:
            raise Conflict(f"{article.keyword!r} has ended: {article.state}", "article", "")
        return article

    async def _open_campaign(self, campaign_id: str) -> CampaignView:
        campaign = await self.campaign(campaign_id)
        if campaign.state in {"cancelled", "done"}:
            raise Conflict(f"{campaign.name!r} has ended: {campaign.state}", "campaign", "")
        return campaign

    async def _articles(self, campaign_id: str, state: State) -> AsyncIterator[ArticleView]:
        after: str | None = None
        while True:
            async with self._database.tenant(self._tenant.id) as scope:
                page = await articles.list_(scope, campaign_id=campaign_id, state=state, after=after, limit=_PAGE)
            for article in page:
                yield article
            if len(page) < _PAGE:
                return
            after = page[-1].id

    def _word(self, reason: str = "") -> Word:
        return Word(by=self._by, reason=reason)

    def _rank(self, priority: int) -> Rank:
        if not 1 <= priority <= 5:  # noqa: PLR2004 - the plan's own range
            raise CommandError(f"{priority} is out of range", "priority", "1 is most urgent, 5 least")
        return Rank(priority=priority, by=self._by)


def _submitted(stored: Stored) -> Submitted:
    return Submitted(campaign_id=stored.campaign_id, article_ids=stored.article_ids, new=stored.new, started=False)


def _none(*states: State) -> Callable[[CampaignView], bool]:
    """Whether no article of the campaign is in one of the states."""
    return lambda campaign: not any(campaign.counts.get(state, 0) for state in states)


def _settled(states: Iterable[PublicationState]) -> bool:
    """Every site has its page, or had it until it was taken away."""
    return set(states) <= {PublicationState.PUBLISHED, PublicationState.WITHDRAWN}
