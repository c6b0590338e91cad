"""Rules first; a person's decision is a row before it is anything else."""

import asyncio

from temporalio import activity

from activities.heartbeat import beating
from citeloop.models.work import Decision, Step, Verdict
from citeloop.rules import duplicates, reviewing
from citeloop.store.database import Database
from citeloop.store.repositories import articles, brands, decisions, drafts, verdicts
from workflows import stages
from workflows.stages import DecisionNote


class ReviewingActivities(stages.Reviewing):
    def __init__(self, database: Database) -> None:
        self._database = database

    @activity.defn(name="reviewing.judge")
    async def judge(self, step: Step) -> Verdict:
        assert step.draft_id is not None
        async with beating():
            async with self._database.tenant(step.tenant_id) as scope:
                plan = await articles.enter(scope, step, channel="rules", attempt=activity.info().attempt)
                brand = await brands.get(scope, plan.brand_id)
                draft = await drafts.get(scope, step.draft_id)
                others = duplicates.look_alikes(draft.body, await drafts.sketches_of_others(scope, step.article_id))
                alike = await drafts.bodies(scope, others)
            outcome, flags = await asyncio.to_thread(
                reviewing.judge,
                draft.body,
                title=draft.draft.title,
                brand=brand,
                locale=plan.locale,
                kind=plan.kind,
                others=alike,
                keyword=plan.keyword,
            )
            verdict = Verdict(
                draft_id=draft.draft.id, draft_digest=draft.draft.digest, outcome=outcome, flags=tuple(flags[:50])
            )
            async with self._database.tenant(step.tenant_id) as scope:
                await verdicts.put(scope, step.article_id, verdict)
            return verdict

    @activity.defn(name="reviewing.decide")
    async def decide(self, note: DecisionNote) -> Decision:
        async with self._database.tenant(note.tenant_id) as scope:
            return await decisions.record(scope, note.article_id, note.decision)
