"""From an approved draft to the post a site receives, bound to the digest that was approved."""

from datetime import UTC, datetime, timedelta

from citeloop.channels.outside import ChannelGone, Outside
from citeloop.channels.ports import Ability, PictureFile, Post
from citeloop.models import ids
from citeloop.models.brand import Brand
from citeloop.models.plan import CallPolicy, Plan, Stage
from citeloop.models.record import Record
from citeloop.models.work import Action, PublicationState, Receipt, Step
from citeloop.rules import rendering
from citeloop.store.database import Scope
from citeloop.store.repositories import brands, decisions, drafts, pictures, publications
from citeloop.store.repositories.drafts import StoredDraft
from citeloop.store.repositories.pictures import StoredPicture
from citeloop.store.repositories.publications import Publication


class Prepared(Record):
    post: Post
    publication: Publication
    draft_digest: str
    policy: CallPolicy
    max_server_time: timedelta
    callback_deadline: timedelta


async def prepare(scope: Scope, step: Step, plan: Plan, outside: Outside, callback_base: str) -> Prepared | Receipt:
    """Reserve the article's one row on this site and render what was approved; a Receipt says why not."""
    assert step.draft_id is not None
    try:
        site = outside.site(step.route)
    except ChannelGone as gone:
        return _refused(step, str(gone))
    stored = await drafts.get(scope, step.draft_id)
    decision = await decisions.of_draft(scope, step.draft_id)
    if Stage.REVIEW in plan.stages:
        if decision is None or decision.action is not Action.APPROVE:
            return _refused(step, "the draft was not approved")
        if decision.draft_digest != ids.text_digest(stored.body):
            return _refused(step, "the text is not the one that was approved")
    marker = rendering.marker(step.article_id)
    publication = await publications.reserve(
        scope,
        article_id=step.article_id,
        site=site.name,
        kind=site.kind,
        marker=marker,
        digest=stored.draft.digest,
        slug=_slug(plan, stored),
    )
    post = _written(plan, await brands.get(scope, plan.brand_id), stored, publication)
    abilities = outside.abilities(step.route)
    if Ability.JSON_LD not in abilities:
        post = post.model_copy(update={"json_ld": ""})
    if callback_base and Ability.CALLBACK in abilities:
        post = post.model_copy(update={"callback_url": f"{callback_base}/v1/callbacks/{publication.token}"})
    post = _illustrated(post, await pictures.find(scope, step.article_id))
    post = post.model_copy(update={"tags": site.tags, "categories": site.categories, "author": site.author})
    return Prepared(
        post=post,
        publication=publication,
        draft_digest=stored.draft.digest,
        policy=plan.route(Stage.PUBLISH, step.route).policy,
        max_server_time=site.max_server_time,
        callback_deadline=site.callback_deadline,
    )


def _written(plan: Plan, brand: Brand, stored: StoredDraft, publication: Publication) -> Post:
    page = rendering.page(stored.body)
    first_sent = publication.sent_at or datetime.now(UTC)
    return Post(
        marker=publication.marker,
        slug=publication.slug or _slug(plan, stored),
        title=stored.draft.title,
        html=page.html,
        excerpt=page.excerpt,
        locale=plan.locale,
        json_ld=rendering.json_ld(
            stored.body,
            locale=plan.locale,
            brand=brand.entity.name,
            homepage=brand.homepage,
            published_at=first_sent,
            sources=tuple(dict.fromkeys(fact.source_url for fact in brand.facts if fact.source_url in stored.body)),
        ),
        published_at=first_sent,
    )


def _slug(plan: Plan, stored: StoredDraft) -> str:
    return rendering.slug(stored.draft.title, plan.article_id, plan.locale)


def _illustrated(post: Post, picture: StoredPicture | None) -> Post:
    if picture is None:
        return post
    file = PictureFile(
        data=picture.data,
        media_type=picture.media_type,
        width=picture.width,
        height=picture.height,
        credit=picture.credit,
    )
    return post.model_copy(update={"picture": file, "picture_alt": picture.alt})


def _refused(step: Step, reason: str) -> Receipt:
    return Receipt(publication_id="", site=step.route, state=PublicationState.FAILED, reason=reason)
