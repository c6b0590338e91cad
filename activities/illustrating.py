"""A picture from an image channel, or the built-in title card."""

import asyncio
import hashlib

from temporalio import activity

from activities.heartbeat import beating
from activities.till import Sale, Till, is_last_resort, open_till, policy_of, purchase_id
from activities.turns import look
from citeloop.channels.illustrators.card import TitleCard
from citeloop.channels.outside import Outside
from citeloop.channels.ports import Call, PictureBrief, PictureFile
from citeloop.models.brand import Brand
from citeloop.models.plan import Plan
from citeloop.models.work import Held, Picture, Step, Waiting
from citeloop.rules import prompting
from citeloop.store.database import Database, Scope
from citeloop.store.repositories import articles, brands, drafts, pictures, purchases
from citeloop.store.repositories.articles import Bought
from citeloop.store.repositories.purchases import Purchase
from workflows import stages

CARD = "card"


class IllustratingActivities(stages.Illustrating):
    def __init__(self, database: Database, outside: Outside) -> None:
        self._database = database
        self._outside = outside
        self._till = Till(database, outside)

    @activity.defn(name="illustrating.illustrate")
    async def illustrate(self, step: Step) -> Picture | Held | Waiting:
        purchase = purchase_id(step)
        async with beating():
            async with self._database.tenant(step.tenant_id) as scope:
                plan = await open_till(scope, step, purchase, channel=step.route)
                if plan is Bought.BEFORE:
                    return await pictures.of_article(scope, step.article_id)
                if not isinstance(plan, Plan):
                    return plan
                brand = await brands.get(scope, plan.brand_id)
                brief = await _brief(scope, step, plan, brand)
                slot = await look(scope, step.route)
            sale = await self._till.buy(
                lambda call: self._outside.illustrator(step.route).illustrate(brief, call),
                Call(purchase_id=purchase, policy=policy_of(plan, step)),
                tenant_id=step.tenant_id,
                article_id=step.article_id,
                channel=step.route,
                last_resort=is_last_resort(plan, step),
                slot=slot,
            )
            if isinstance(sale, Waiting):
                return sale
            return await self._keep(step, brief, sale.reply, sale)

    @activity.defn(name="illustrating.card")
    async def card(self, step: Step) -> Picture:
        async with beating():
            async with self._database.tenant(step.tenant_id) as scope:
                plan = await articles.enter(scope, step, channel=CARD, attempt=activity.info().attempt)
                brand = await brands.get(scope, plan.brand_id)
                brief = await _brief(scope, step, plan, brand)
            file = await asyncio.to_thread(TitleCard(brand=brand.entity.name).draw, brief)
            return await self._keep(step, brief, file, None)

    async def _keep(
        self, step: Step, brief: PictureBrief, file: PictureFile, sale: Sale[PictureFile] | None
    ) -> Picture:
        picture = Picture(
            digest=hashlib.sha256(file.data).hexdigest(),
            source=CARD if sale is None else step.route,
            alt=brief.alt,
            credit=file.credit,
        )

        async def write(scope: Scope) -> Picture:
            if sale is not None:
                await purchases.put(
                    scope,
                    Purchase(
                        id=purchase_id(step),
                        channel=step.route,
                        stage=step.stage,
                        article_id=step.article_id,
                        model="",
                        request_id=file.request_id,
                        reply={"picture": picture.digest},
                        cost=file.cost,
                    ),
                )
            await pictures.put(
                scope,
                article_id=step.article_id,
                digest=picture.digest,
                data=file.data,
                media_type=file.media_type,
                width=file.width,
                height=file.height,
                alt=picture.alt,
                credit=picture.credit,
                source=picture.source,
            )
            return picture

        return await self._till.keep(step.tenant_id, write, sale)


async def _brief(scope: Scope, step: Step, plan: Plan, brand: Brand) -> PictureBrief:
    title = plan.keyword if step.draft_id is None else (await drafts.get(scope, step.draft_id)).draft.title
    idea = prompting.picture_brief(title, plan.keyword, brand, plan.locale)
    return PictureBrief(prompt=idea.prompt, title=idea.title, alt=idea.alt)
