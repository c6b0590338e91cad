import asyncio

import pytest

from citeloop.models.plan import Plan, Stage
from citeloop.models.work import Action, Decision, Draft, Outcome, Severity, Verdict
from citeloop.store.repositories import articles, decisions, verdicts
from tests.activities.workshop import Workshop
from workflows.stages import DecisionNote


async def judge(workshop: Workshop, plan: Plan, draft: Draft) -> Verdict:
    step = workshop.step(plan, Stage.REVIEW, "rules", draft_id=draft.id)
    verdict: Verdict = await workshop.run(workshop.reviewing().judge, step)
    return verdict


def note(plan: Plan, draft: Draft, action: Action, by: str) -> DecisionNote:
    decision = Decision(action=action, draft_id=draft.id, draft_digest=draft.digest, by=by)
    return DecisionNote(tenant_id=plan.tenant_id, article_id=plan.article_id, decision=decision)


async def test_a_verdict_is_bound_to_the_text_and_stored(workshop: Workshop) -> None:
    plan = await workshop.article()
    draft = await workshop.draft(plan, "# Vectors\n\nAcmebase is the best in the world, 400% faster than all others.\n")
    verdict = await judge(workshop, plan, draft)
    assert (verdict.draft_id, verdict.draft_digest) == (draft.id, draft.digest)
    assert verdict.outcome is not Outcome.CLEAN
    assert any(flag.severity is not Severity.NOTE for flag in verdict.flags)
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        assert await verdicts.of_draft(scope, draft.id) == verdict
    assert await judge(workshop, plan, draft) == verdict


async def test_a_written_text_passes_the_rules_or_says_what_is_wrong(workshop: Workshop) -> None:
    plan = await workshop.article()
    first = await workshop.run(workshop.writing().generate, workshop.step(plan, Stage.GENERATE, "deepseek"))
    assert isinstance(first, Draft)
    verdict = await judge(workshop, plan, first)
    assert (verdict.outcome is Outcome.CLEAN) != any(flag.severity is not Severity.NOTE for flag in verdict.flags)


async def test_a_copy_of_a_neighbours_text_is_noticed(workshop: Workshop) -> None:
    _, plans = await workshop.campaign(("one", 3), ("two", 3))
    body = "# Vectors\n\n" + "Acmebase stores vectors in files, answers in 3 languages and runs offline. " * 20
    await workshop.draft(plans["one"], body)
    verdict = await judge(workshop, plans["two"], await workshop.draft(plans["two"], body))
    assert any("duplicate" in flag.rule for flag in verdict.flags), verdict.flags


@pytest.mark.parametrize("at_once", [False, True])
async def test_the_first_decision_wins_and_every_caller_is_told_it(workshop: Workshop, at_once: bool) -> None:
    plan = await workshop.article()
    draft = await workshop.draft(plan)
    notes = [note(plan, draft, Action.APPROVE, "ann"), note(plan, draft, Action.REJECT, "bob")]
    if at_once:
        told = list(await asyncio.gather(*(workshop.run(workshop.reviewing().decide, one) for one in notes)))
    else:
        told = [await workshop.run(workshop.reviewing().decide, one) for one in notes]
        assert told[0].by == "ann"
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        kept = await decisions.of_draft(scope, draft.id)
        events = await articles.events(scope, plan.article_id)
    assert told == [kept, kept]
    assert sorted(event.kind for event in events if event.kind.startswith("decision")) == [
        "decision",
        "decision_ignored",
    ]
