"""What can be done to pages that stand: correct them, take them away. Also weeks after their article has ended."""

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta

from temporalio.client import Client

from citeloop.channels import publishers
from citeloop.channels.ports import Ability
from citeloop.models import ids
from citeloop.models.channel import SiteKind
from citeloop.models.plan import Stage
from citeloop.models.record import Record
from citeloop.models.work import (
    Action,
    CorrectionKind,
    Decision,
    Draft,
    Flag,
    Outcome,
    PublicationState,
    Severity,
    Verdict,
)
from citeloop.rules import duplicates, rendering, reviewing
from citeloop.store.database import Database, Scope
from citeloop.store.errors import NotFound
from citeloop.store.repositories import articles, brands, corrections, decisions, drafts, publications, verdicts
from citeloop.store.repositories.articles import ArticleView
from citeloop.store.repositories.corrections import Correction, CorrectionState
from citeloop.store.repositories.publications import Publication
from citeloop.store.repositories.tenants import TenantRow
from starter.errors import CommandError, Conflict, Missing
from starter.finding import find_article
from starter.telling import UNANSWERED, Teller
from workflows.client import start_correction
from workflows.stages import PageRef

BY_HAND = "by hand"
"""Stands for the channel that wrote a draft."""

_ABLE = {CorrectionKind.CORRECT: Ability.UPDATE, CorrectionKind.WITHDRAW: Ability.WITHDRAW}
_VERBS = {CorrectionKind.CORRECT: "correct", CorrectionKind.WITHDRAW: "withdraw"}
_STANDS = {
    CorrectionKind.CORRECT: (PublicationState.PUBLISHED,),
    CorrectionKind.WITHDRAW: (PublicationState.PUBLISHED, PublicationState.SENT, PublicationState.PARKED),
}
_ON_ITS_WAY = (PublicationState.SENDING, PublicationState.UNKNOWN)
_AGAIN = 0.1
_DONE = "done"


class PageEffect(Record):
    """What came of a correction of one page."""

    correction_id: str
    site: str
    kind: CorrectionKind
    state: CorrectionState
    """asked: recorded, and carried out as soon as site and worker answer."""
    problem: str
    url: str


class Corrected(Record):
    id: str
    name: str
    """The keyword."""
    draft_id: str | None
    """The text the pages carry or will carry; null for a withdrawal."""
    flags: tuple[Flag, ...]
    """What the review rules said of that text."""
    pages: tuple[PageEffect, ...]
    message: str

    @property
    def ended(self) -> bool:
        return all(page.state is not CorrectionState.ASKED for page in self.pages)


class PageCommands:
    def __init__(
        self,
        client: Client,
        database: Database,
        tenant: TenantRow,
        *,
        by: str,
        patience: timedelta,
        abilities: Mapping[SiteKind, Collection[Ability]] = publishers.ABILITIES,
    ) -> None:
        """`by` stands in the audit; `patience` bounds the wait for an effect."""
        self._client = client
        self._database = database
        self._tenant = tenant
        self._by = by
        self._patience = patience.total_seconds()
        self._teller = Teller(client, tenant.id, patience)
        self._abilities = abilities

    async def unpublish(self, ref: str, *, site: str | None = None, reason: str = "") -> Corrected:
        """From one site, or from all on which it stands. Said twice it is done once."""
        async with self._database.tenant(self._tenant.id) as scope:
            article = await find_article(scope, ref)
            pages = await self._pages(scope, article, site, CorrectionKind.WITHDRAW)
            asked = [await self._ask(scope, page, CorrectionKind.WITHDRAW, reason) for page in pages]
        done = await self._carried_out(article, asked, draft_id=None, flags=())
        if done.message == _DONE and all(page.state is PublicationState.WITHDRAWN for page in pages):
            return done.model_copy(update={"message": "it had been withdrawn already; nothing was left to do"})
        return done

    async def correct(
        self,
        ref: str,
        *,
        text: str | None = None,
        draft_id: str | None = None,
        site: str | None = None,
        reason: str = "",
    ) -> Corrected:
        """The pages carry `text`, or a draft of this article, from now on.

        The text passes the review rules, and who asks for it approves it: a decision on this very text, as any other.
        """
        if (text is None) == (draft_id is None):
            raise CommandError("give the new text or the id of a draft, one of the two", "text", "")
        async with self._database.tenant(self._tenant.id) as scope:
            article = await find_article(scope, ref)
            pages = await self._pages(scope, article, site, CorrectionKind.CORRECT)
            draft, body = await self._draft(scope, article, text, draft_id)
            flags = await self._judged(scope, article, draft, body)
            await self._approve(scope, article, draft, reason)
            asked = [await self._ask(scope, page, CorrectionKind.CORRECT, reason, draft) for page in pages]
        return await self._carried_out(article, asked, draft_id=draft.id, flags=flags)

    async def history(self, ref: str) -> tuple[Correction, ...]:
        async with self._database.tenant(self._tenant.id) as scope:
            article = await find_article(scope, ref)
            return tuple(await corrections.of_article(scope, article.id))

    async def _pages(
        self, scope: Scope, article: ArticleView, site: str | None, kind: CorrectionKind
    ) -> list[Publication]:
        """Those that stand, all of a kind that can do what is asked. Missing, Conflict or CommandError before all."""
        rows = await publications.of_article(scope, article.id)
        if site is not None:
            rows = [row for row in rows if row.site == site]
            if not rows:
                raise Missing(
                    f"{article.keyword!r} was never sent to {site!r}", "site", "`citeloop status` lists its pages"
                )
        moving = [row.site for row in rows if row.state in _ON_ITS_WAY]
        if moving:
            remedy = "wait until it is known whether it is there"
            raise Conflict(f"{article.keyword!r} is still on its way to {', '.join(moving)}", "article", remedy)
        wanted = [row for row in rows if row.state in _STANDS[kind]]
        if kind is CorrectionKind.WITHDRAW:
            wanted = wanted or [row for row in rows if row.state is PublicationState.WITHDRAWN]
        if not wanted:
            states = ", ".join(f"{row.site}: {row.state}" for row in rows) or "it was not published"
            raise Conflict(
                f"no page of {article.keyword!r} stands that one could {_VERBS[kind]} ({states})", "article", ""
            )
        for row in wanted:
            if _ABLE[kind] not in self._abilities[SiteKind(row.kind)]:
                problem = f"{row.site} is a {row.kind} site: it can {_VERBS[kind]} nothing"
                raise CommandError(problem, "site", "do it on the site itself")
        return wanted

    async def _draft(
        self, scope: Scope, article: ArticleView, text: str | None, draft_id: str | None
    ) -> tuple[Draft, str]:
        if draft_id is not None:
            return await _kept(scope, article, draft_id)
        body = (text or "").strip()
        title, below = rendering.split_title(body)
        if not title or not below:
            raise CommandError("the text has no title or nothing below it", "text", "begin it with one `# ` heading")
        digest = ids.text_digest(body)
        draft = Draft(
            id=ids.digest_id("draft", self._tenant.id, article.id, BY_HAND, digest),
            digest=digest,
            stage=Stage.REWRITE,
            round=article.round,
            channel=BY_HAND,
            title=title,
            chars=len(body),
        )
        await drafts.add(scope, article.id, draft, body, sketch=duplicates.sketch(body))
        return draft, body

    async def _judged(self, scope: Scope, article: ArticleView, draft: Draft, body: str) -> tuple[Flag, ...]:
        """Flags are for the person who asks; what the rules block is corrected nowhere."""
        plan = await articles.plan(scope, article.id)
        alike = duplicates.look_alikes(body, await drafts.sketches_of_others(scope, article.id))
        outcome, flags = await asyncio.to_thread(
            reviewing.judge,
            body,
            title=draft.title,
            brand=await brands.get(scope, plan.brand_id),
            locale=plan.locale,
            kind=plan.kind,
            others=await drafts.bodies(scope, alike),
            keyword=plan.keyword,
        )
        if outcome is Outcome.BLOCKED:
            blocking = "; ".join(flag.message for flag in flags if flag.severity is Severity.BLOCK)
            raise CommandError(f"the review rules block it: {blocking}", "text", "change the text")
        verdict = Verdict(draft_id=draft.id, draft_digest=draft.digest, outcome=outcome, flags=flags)
        await verdicts.put(scope, article.id, verdict)
        return flags

    async def _approve(self, scope: Scope, article: ArticleView, draft: Draft, reason: str) -> None:
        notes = reason or "a correction"
        word = Decision(action=Action.APPROVE, draft_id=draft.id, draft_digest=draft.digest, by=self._by, notes=notes)
        counts = await decisions.record(scope, article.id, word)
        if counts.action is not Action.APPROVE:
            raise Conflict(f"{counts.by} has said {counts.action} to this text", "draft", "change the text")

    async def _ask(
        self, scope: Scope, page: Publication, kind: CorrectionKind, reason: str, draft: Draft | None = None
    ) -> Correction:
        return await corrections.ask(
            scope,
            publication_id=page.id,
            article_id=page.article_id,
            site=page.site,
            kind=kind,
            by=self._by,
            reason=reason,
            draft_id=draft.id if draft is not None else None,
            draft_digest=draft.digest if draft is not None else "",
        )

    async def _carried_out(
        self, article: ArticleView, asked: Sequence[Correction], *, draft_id: str | None, flags: tuple[Flag, ...]
    ) -> Corrected:
        """Recorded in any case; then a moment is waited for what comes of it."""
        deadline = time.monotonic() + self._patience
        for one in asked:
            page = PageRef(tenant_id=self._tenant.id, article_id=article.id, site=one.site)
            await self._teller.in_time(start_correction(self._client, page))
        while True:
            pages = await self._effects(article.id, asked)
            done = Corrected(
                id=article.id, name=article.keyword, draft_id=draft_id, flags=flags, pages=pages, message=_DONE
            )
            if done.ended or time.monotonic() >= deadline:
                break
            await asyncio.sleep(_AGAIN)
        if not done.ended:
            return done.model_copy(
                update={"message": f"recorded; {UNANSWERED.partition(', ')[2]} yet, it is tried again"}
            )
        failed = any(page.state is CorrectionState.FAILED for page in done.pages)
        return done.model_copy(update={"message": "failed"}) if failed else done

    async def _effects(self, article_id: str, asked: Sequence[Correction]) -> tuple[PageEffect, ...]:
        wanted = {one.id for one in asked}
        async with self._database.tenant(self._tenant.id) as scope:
            found = [one for one in await corrections.of_article(scope, article_id) if one.id in wanted]
            urls = {row.site: row.url for row in await publications.of_article(scope, article_id)}
        return tuple(
            PageEffect(
                correction_id=one.id,
                site=one.site,
                kind=one.kind,
                state=one.state,
                problem=one.problem,
                url=urls.get(one.site, ""),
            )
            for one in found
        )


async def _kept(scope: Scope, article: ArticleView, draft_id: str) -> tuple[Draft, str]:
    try:
        stored = await drafts.get(scope, draft_id)
    except NotFound:
        raise Missing(f"{draft_id!r} is no draft", "draft", "`citeloop status ARTICLE` shows the article") from None
    of_article = await drafts.article_of(scope, draft_id)
    if of_article != article.id:
        raise Missing(f"{draft_id!r} is no draft of {article.keyword!r}", "draft", "name one of its own drafts")
    return stored.draft, stored.body
