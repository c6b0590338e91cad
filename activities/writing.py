"""Generate and rewrite: one paid, streamed call each."""

from temporalio import activity

from activities.heartbeat import beating
from activities.till import Sale, Till, is_last_resort, open_till, policy_of, purchase_id
from activities.turns import look
from citeloop.channels.outside import Outside
from citeloop.channels.ports import Call, Completion, Messages
from citeloop.models import ids
from citeloop.models.plan import Plan
from citeloop.models.work import Draft, Held, Step, Waiting
from citeloop.rules import duplicates, prompting, rendering
from citeloop.store.database import Database, Scope
from citeloop.store.repositories import brands, decisions, drafts, purchases
from citeloop.store.repositories.articles import Bought
from citeloop.store.repositories.purchases import Purchase
from workflows import stages


class WritingActivities(stages.Writing):
    def __init__(self, database: Database, outside: Outside) -> None:
        self._database = database
        self._outside = outside
        self._till = Till(database, outside)

    @activity.defn(name="writing.generate")
    async def generate(self, step: Step) -> Draft | Held | Waiting:
        return await self._write(step)

    @activity.defn(name="writing.rewrite")
    async def rewrite(self, step: Step) -> Draft | Held | Waiting:
        return await self._write(step)

    async def _write(self, step: Step) -> Draft | Held | Waiting:
        purchase = purchase_id(step)
        async with beating():
            async with self._database.tenant(step.tenant_id) as scope:
                plan = await open_till(scope, step, purchase, channel=step.route)
                if plan is Bought.BEFORE:
                    return (await drafts.get(scope, draft_id(step))).draft
                if not isinstance(plan, Plan):
                    return plan
                messages = await self._messages(scope, step, plan)
                slot = await look(scope, step.route)
            sale = await self._till.buy(
                lambda call: self._outside.writer(step.route).write(messages, call),
                Call(purchase_id=purchase, policy=policy_of(plan, step)),
                tenant_id=step.tenant_id,
                article_id=step.article_id,
                channel=step.route,
                last_resort=is_last_resort(plan, step),
                slot=slot,
                tokens=_size(messages),
            )
            if isinstance(sale, Waiting):
                return sale
            return await self._keep(step, purchase, sale, plan.keyword)

    async def _messages(self, scope: Scope, step: Step, plan: Plan) -> Messages:
        brand = await brands.get(scope, plan.brand_id)
        if step.draft_id is None:
            told = prompting.generate(plan.keyword, plan.locale, plan.kind, brand)
        else:
            earlier = await drafts.get(scope, step.draft_id)
            notes = await decisions.notes_on(scope, step.draft_id) if step.round else ""
            told = prompting.rewrite(
                plan.keyword, plan.locale, plan.kind, brand, draft=earlier.body, notes=notes, methods=plan.methods
            )
        return Messages(system=told.system, user=told.user, max_tokens=told.max_tokens)

    async def _keep(self, step: Step, purchase: str, sale: Sale[Completion], keyword: str) -> Draft:
        """The answer and its price in one transaction: bought once, kept once."""
        completion = sale.reply
        draft = Draft(
            id=draft_id(step),
            digest=ids.text_digest(completion.text),
            stage=step.stage,
            round=step.round,
            channel=step.route,
            title=rendering.split_title(completion.text)[0] or keyword,
            chars=len(completion.text),
        )

        sketch = duplicates.sketch(completion.text)

        async def write(scope: Scope) -> Draft:
            await purchases.put(
                scope,
                Purchase(
                    id=purchase,
                    channel=step.route,
                    stage=step.stage,
                    article_id=step.article_id,
                    model=completion.model,
                    request_id=completion.request_id,
                    reply={"draft": draft.id},
                    cost=completion.cost,
                    input_tokens=completion.input_tokens,
                    output_tokens=completion.output_tokens,
                    cached_tokens=completion.usage.cached_tokens,
                    searches=completion.usage.searches,
                ),
            )
            await drafts.add(scope, step.article_id, draft, completion.text, sketch=sketch)
            return draft

        return await self._till.keep(step.tenant_id, write, sale)


def _size(messages: Messages) -> int:
    """Tokens at most: a token holds two characters or more in most languages, one in Chinese."""
    return (len(messages.system) + len(messages.user)) * 3 // 4 + messages.max_tokens


def draft_id(step: Step) -> str:
    return ids.digest_id("draft", purchase_id(step))
