"""One question to one engine: asked, scored, kept with all its evidence."""

from datetime import UTC

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities import failures
from activities.heartbeat import beating
from activities.till import Sale, Till
from activities.turns import look
from citeloop.channels.outside import ChannelGone, Outside
from citeloop.channels.ports import Call
from citeloop.models.measure import Answer, Manifest, Reading
from citeloop.models.plan import Stage
from citeloop.models.work import Held, Sampled, SampleStatus, SampleStep, Waiting
from citeloop.rules import scoring
from citeloop.store.database import Database, Scope
from citeloop.store.repositories import articles, campaigns, manifests, purchases, samples
from citeloop.store.repositories.pacing import Closed, Slot
from citeloop.store.repositories.purchases import Purchase
from workflows import stages

MISSED = {"refused": SampleStatus.REFUSED}


class MonitoringActivities(stages.Monitoring):
    def __init__(self, database: Database, outside: Outside) -> None:
        self._database = database
        self._outside = outside
        self._till = Till(database, outside)

    @activity.defn(name="monitoring.sample")
    async def sample(self, step: SampleStep) -> Sampled | Held | Waiting:
        async with beating():
            async with self._database.tenant(step.tenant_id) as scope:
                held = await _hold(scope, step)
                if held is not None:
                    return held
                known = await samples.find(scope, step)
                if known is not None:
                    return _sampled(known)
                manifest = await manifests.with_prompt(scope, step.manifest_id, step.prompt_id)
                slot = await look(scope, step.engine)
            return await self._ask(step, manifest, slot)

    async def _ask(self, step: SampleStep, manifest: Manifest, slot: Slot | Closed) -> Sampled | Waiting:
        [prompt] = manifest.prompts
        try:
            policy = self._outside.channel(step.engine).policy_for(Stage.MONITOR)
        except ChannelGone as error:
            raise failures.gone(step.engine) from error
        try:
            sale = await self._till.buy(
                lambda call: self._outside.engine(step.engine).ask(prompt.text, prompt.locale, call),
                Call(purchase_id=purchase_id(step), policy=policy),
                tenant_id=step.tenant_id,
                article_id=step.article_id,
                channel=step.engine,
                last_resort=True,
                slot=slot,
            )
        except ApplicationError as error:
            if not error.non_retryable:
                raise
            missed = Reading(status=MISSED.get(error.type or "", SampleStatus.FAILED))
            return await self._keep(step, missed, None)
        if isinstance(sale, Waiting):
            return sale
        return await self._keep(step, scoring.read(sale.reply, manifest), sale)

    async def _keep(self, step: SampleStep, reading: Reading, sale: Sale[Answer] | None) -> Sampled:
        answer = sale.reply if sale is not None else None

        async def write(scope: Scope) -> Sampled:
            if answer is not None:
                await purchases.put(
                    scope,
                    Purchase(
                        id=purchase_id(step),
                        channel=step.engine,
                        stage=Stage.MONITOR,
                        article_id=step.article_id,
                        model=answer.model,
                        request_id=answer.request_id,
                        reply={},
                        cost=answer.cost,
                        input_tokens=answer.usage.input_tokens,
                        output_tokens=answer.usage.output_tokens,
                        cached_tokens=answer.usage.cached_tokens,
                        searches=answer.usage.searches,
                    ),
                )
            await samples.put(scope, step, reading, answer)
            return _sampled(reading)

        return await self._till.keep(step.tenant_id, write, sale)


def purchase_id(step: SampleStep) -> str:
    """One answer per manifest, window, prompt, engine and replicate, whoever asks first."""
    window = step.window_start.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    place = f"{step.window}-{window}/{step.prompt_id}/{step.engine}/{step.replicate}"
    return f"{step.tenant_id}/{step.manifest_id}/{Stage.MONITOR}/{place}"


async def _hold(scope: Scope, step: SampleStep) -> Held | None:
    if step.article_id is not None:
        return await articles.find_hold(scope, step.article_id)
    assert step.campaign_id is not None
    return await campaigns.find_hold(scope, step.campaign_id)


def _sampled(reading: Reading) -> Sampled:
    return Sampled(status=reading.status, named=reading.named, cited=reading.cited)
