import hashlib

import pytest
from temporalio.exceptions import ApplicationError

from activities.failures import BROKEN, CHANNEL_GONE
from activities.till import purchase_id
from citeloop.models.plan import Stage
from citeloop.models.work import Held, Picture, Step
from citeloop.store.repositories import articles, pictures, purchases
from citeloop.store.repositories.pictures import StoredPicture
from tests.activities.workshop import Workshop

PNG = b"\x89PNG\r\n"
JPEG = b"\xff\xd8\xff"


async def kept(workshop: Workshop, picture: Picture) -> StoredPicture:
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        return await pictures.get(scope, picture.digest)


async def failure(workshop: Workshop, step: Step) -> ApplicationError:
    with pytest.raises(ApplicationError) as raised:
        await workshop.run(workshop.illustrating().illustrate, step)
    return raised.value


async def test_a_picture_is_kept_by_its_digest_and_bought_once(workshop: Workshop) -> None:
    plan = await workshop.article()
    draft = await workshop.draft(plan)
    step = workshop.step(plan, Stage.ILLUSTRATE, "images", draft_id=draft.id)
    picture = await workshop.run(workshop.illustrating().illustrate, step)
    assert isinstance(picture, Picture)
    stored = await kept(workshop, picture)
    assert hashlib.sha256(stored.data).hexdigest() == picture.digest
    assert stored.data.startswith((PNG, JPEG))
    assert (stored.source, stored.alt) == (step.route, picture.alt)
    assert draft.title in picture.alt or plan.keyword in picture.alt
    assert await workshop.run(workshop.illustrating().illustrate, step) == picture
    assert await workshop.calls("images") == 1
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        purchase = await purchases.get(scope, purchase_id(step))
    assert purchase is not None
    assert (purchase.reply, purchase.cost.micros) == ({"picture": picture.digest}, 100_000)


async def test_the_title_card_costs_nothing_and_is_kept_too(workshop: Workshop) -> None:
    plan = await workshop.article()
    step = workshop.step(plan, Stage.ILLUSTRATE, "images").model_copy(update={"route": "card"})
    picture = await workshop.run(workshop.illustrating().card, step)
    stored = await kept(workshop, picture)
    assert (picture.source, stored.media_type) == ("card", "image/png")
    assert (stored.width, stored.height) == (1200, 630)
    assert hashlib.sha256(stored.data).hexdigest() == picture.digest
    assert await workshop.run(workshop.illustrating().card, step) == picture
    assert (await workshop.sandbox.ledger())["totals"]["calls"] == 0


async def test_a_held_article_gets_no_picture(workshop: Workshop) -> None:
    plan = await workshop.article()
    async with workshop.database.tenant(workshop.tenant.id) as scope:
        await articles.hold(scope, plan.article_id, "wait")
    step = workshop.step(plan, Stage.ILLUSTRATE, "images")
    assert isinstance(await workshop.run(workshop.illustrating().illustrate, step), Held)
    assert await workshop.calls("images") == 0


async def test_faults_end_with_broken_and_a_vanished_channel_with_gone(workshop: Workshop) -> None:
    await workshop.sandbox.configure(images={"http_500": 1.0})
    step = workshop.step(await workshop.article(), Stage.ILLUSTRATE, "images")
    assert [(await failure(workshop, step)).type for _ in range(2)] == ["unavailable", BROKEN]
    await workshop.lose_channel("images")
    assert (await failure(workshop, step)).type == CHANNEL_GONE
