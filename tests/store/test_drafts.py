"""Drafts and what hangs on them: neighbours, decisions, verdicts, pictures."""

import pytest

from citeloop.models.plan import Stage
from citeloop.models.work import Action, Decision, Outcome, Verdict
from citeloop.store.database import Database
from citeloop.store.errors import NotFound
from citeloop.store.repositories import (
    articles,
    decisions,
    drafts,
    pictures,
    verdicts,
)
from citeloop.store.repositories.tenants import TenantRow
from tests.store.material import draft, one_article, one_campaign


async def test_a_draft_is_kept_once_and_the_latest_is_found(database: Database, tenant: TenantRow) -> None:
    first, second = draft("first"), draft("second", round_=1)
    async with database.tenant(tenant.id) as scope:
        plan = await one_article(scope)
        await drafts.add(scope, plan.article_id, first, "first")
        await drafts.add(scope, plan.article_id, second, "second")
        await drafts.add(scope, plan.article_id, first, "changed")
        latest = await drafts.latest(scope, plan.article_id)
        kept = await drafts.get(scope, first.id)
    assert latest is not None
    assert latest.draft == second
    assert (kept.draft, kept.body) == (first, "first")


async def test_neighbours_latest_rewrites_are_compared(database: Database, tenant: TenantRow) -> None:
    async with database.tenant(tenant.id) as scope:
        _, (mine, other, silent) = await one_campaign(scope, 3)
        stranger = await one_article(scope)
        for article, body in ((mine, "mine"), (other, "old"), (stranger, "stranger")):
            await drafts.add(scope, article.article_id, draft(body), body, sketch=(1,))
        await drafts.add(scope, silent.article_id, draft("raw", stage=Stage.GENERATE), "raw")
        new = draft("new", round_=1)
        await drafts.add(scope, other.article_id, new, "new", sketch=(2, 2**63 - 1))
        found = await drafts.sketches_of_others(scope, mine.article_id)
        bodies = await drafts.bodies(scope, list(found))
    assert found == {new.id: (2, 2**63 - 1)}
    assert bodies == ["new"]


async def test_the_first_decision_counts_and_every_one_is_on_record(database: Database, tenant: TenantRow) -> None:
    written = draft("text")
    async with database.tenant(tenant.id) as scope:
        plan = await one_article(scope)
        await drafts.add(scope, plan.article_id, written, "text")
        said = [
            Decision(action=action, draft_id=written.id, draft_digest=written.digest, by=by, notes="n")
            for action, by in ((Action.SEND_BACK, "ann"), (Action.APPROVE, "bob"), (Action.SEND_BACK, "ann"))
        ]
        counted = [await decisions.record(scope, plan.article_id, decision) for decision in said]
        happened = await articles.events(scope, plan.article_id)
        notes = await decisions.notes_on(scope, written.id)
        of_draft = await decisions.of_draft(scope, written.id)
    assert counted == [said[0]] * 3
    assert [(event.kind, event.detail) for event in happened] == [
        ("decision", "send_back by ann: n"),
        ("decision_ignored", "approve by bob: n"),
    ]
    assert notes == "n"
    assert of_draft == said[0]


async def test_the_first_verdict_on_a_draft_stays(database: Database, tenant: TenantRow) -> None:
    written = draft("text")
    clean = Verdict(draft_id=written.id, draft_digest=written.digest, outcome=Outcome.CLEAN)
    async with database.tenant(tenant.id) as scope:
        plan = await one_article(scope)
        await verdicts.put(scope, plan.article_id, clean)
        await verdicts.put(scope, plan.article_id, clean.model_copy(update={"outcome": Outcome.BLOCKED}))
        assert await verdicts.of_draft(scope, written.id) == clean


async def test_a_picture_comes_back_byte_for_byte(database: Database, tenant: TenantRow) -> None:
    data = bytes(range(256)) * 100
    async with database.tenant(tenant.id) as scope:
        plan = await one_article(scope)
        for _ in range(2):
            await pictures.put(
                scope,
                article_id=plan.article_id,
                digest="d1",
                data=data,
                media_type="image/png",
                width=1200,
                height=630,
                alt="a card",
                credit="",
                source="card",
            )
        stored = await pictures.get(scope, "d1")
        found = await pictures.of_article(scope, plan.article_id)
        with pytest.raises(NotFound, match="no picture d2"):
            await pictures.get(scope, "d2")
    assert stored.data == data
    assert (found.digest, found.alt, found.source) == ("d1", "a card", "card")
