"""From an approved draft to the post a site receives, bound to the digest that was approved."""

from datetime import timedelta

from citeloop.channels.outside import ChannelGone, Outside
from citeloop.channels.ports import PictureFile, Post
from citeloop.models import ids
from citeloop.models.plan import CallPolicy, Stage
from citeloop.models.record import Record
from citeloop.models.work import Action, PublicationState, Receipt, Step
from citeloop.rules import rendering
from citeloop.store.database import Scope
from citeloop.store.repositories import articles, decisions, drafts, pictures, publications
from citeloop.store.repositories.publications import Publication


class Prepared(Record):
    post: Post
    publication: Publication
    policy: CallPolicy
    max_server_time: timedelta


async def prepare(scope: Scope, step: Step, outside: Outside, callback_base: str) -> Prepared | Receipt:
    """Reserve the article's one row on this site and render what was approved; a Receipt says why not."""
    assert step.draft_id is not None
    plan = await articles.plan(scope, step.article_id)
    try:
        site = outside.site(step.route)
    except ChannelGone:
        return _refused(step, f"site {step.route} is no longer in channels.toml")
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
    )
    page = rendering.page(stored.body)
    picture = await pictures.find(scope, step.article_id)
    post = Post(
        marker=marker,
        slug=rendering.slug(stored.draft.title, step.article_id, plan.locale),
        title=stored.draft.title,
        html=page.html,
        excerpt=page.excerpt,
        locale=plan.locale,
        picture=PictureFile(
            data=picture.data,
            media_type=picture.media_type,
            width=picture.width,
            height=picture.height,
            credit=picture.credit,
        )
        if picture is not None
        else None,
        picture_alt=picture.alt if picture is not None else "",
        callback_url=f"{callback_base}/v1/callbacks/{publication.token}" if callback_base else "",
    )
    return Prepared(
        post=post,
        publication=publication,
        policy=plan.route(Stage.PUBLISH, step.route).policy,
        max_server_time=site.max_server_time,
    )


def _refused(step: Step, reason: str) -> Receipt:
    return Receipt(publication_id="", site=step.route, state=PublicationState.FAILED, reason=reason)
