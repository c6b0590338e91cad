"""Drafts of a WeChat Official Account. Tested against: documented shape (developers.weixin.qq.com, 2026).

A draft is what the account's people see in their console; they publish it, or `release` does where the account may.
The marker stands as a data attribute on the outermost section. Pictures in the text must be WeChat's own, and a cover
is required. JSON goes out as plain UTF-8: escaped characters are shown as they are.
"""

import hashlib
import html
import re
from collections.abc import Callable
from datetime import UTC, datetime

from pydantic import JsonValue

from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.foreign import count_at, items_at, text_at
from citeloop.channels.patience import Patience
from citeloop.channels.ports import Ability, Call, PictureFile, Placed, Post, SiteReport, Undecidable
from citeloop.channels.publishers import markup
from citeloop.channels.publishers.doubt import in_doubt
from citeloop.channels.publishers.multipart import File, multipart
from citeloop.channels.publishers.refusing import foreign, gone, refuse_more
from citeloop.channels.publishers.wechat_account import Account, Upload, wechat_json
from citeloop.channels.reply import HttpReply
from citeloop.channels.wire import Wire
from citeloop.models.channel import SiteSpec

_PAGE, _DRAFT_PAGES, _PUBLISHED_PAGES = 20, 10, 3
_LONGEST_TITLE, _LONGEST_DIGEST, _LONGEST_CONTENT = 64, 120, 20_000
"""Characters; the text counts with its tags."""
_IMAGE = re.compile(r"<img\b[^>]*?src=\"([^\"]*)\"[^>]*>")
_OWN_HOSTS = re.compile(r"https?://mmbiz\.(qpic\.cn|qlogo\.cn)/")
_RELEASE_FAILED = {
    2: (Fault.INVALID, "the check for original content failed"),
    3: (Fault.INVALID, "publishing failed; WeChat gives no reason"),
    4: (Fault.REFUSED, "the platform's review refused it"),
    5: (Fault.INVALID, "all its articles were deleted by the account"),
    6: (Fault.INVALID, "all its articles were blocked by the platform"),
}


def _utc_now() -> datetime:
    return datetime.now(UTC)


class WeChat:
    abilities = frozenset({Ability.PICTURE, Ability.AUTHOR, Ability.CANONICAL, Ability.UPDATE, Ability.WITHDRAW})

    def __init__(
        self, site: SiteSpec, app_id: str, secret: str, wire: Wire, now: Callable[[], datetime] = _utc_now
    ) -> None:
        self._site = site
        self._account = Account(site.base_url, app_id, secret, wire, now)
        self._covers: dict[str, str] = {}
        """Permanent material by the picture's digest."""

    async def publish(self, post: Post, call: Call) -> Placed:
        """A draft; `confirmed`, since nothing more is to be expected from the site itself."""
        patience = Patience(call)
        article, notes = await self._article(post, patience)
        try:
            made = await self._add(post, article, patience)
        except ChannelError as error:
            raise in_doubt(error) from None
        return Placed(remote_id=made, notes=("a draft: the account's people publish it", *notes))

    async def look_up(self, post: Post, call: Call) -> Placed | None:
        """Among drafts, newest first, then among what was published from them. Raises Undecidable past 200 drafts."""
        patience = Patience(call)
        draft, complete = await self._search("draft/batchget", "media_id", post.marker, _DRAFT_PAGES, patience)
        if draft:
            return Placed(remote_id=draft)
        published = await self._published(post.marker, patience)
        if published is None and not complete:
            raise Undecidable(f"not among the {_PAGE * _DRAFT_PAGES} newest drafts, and the account holds more")
        return published

    async def update(self, post: Post, remote_id: str, call: Call) -> Placed:
        """Of a draft. What its people have published cannot be changed by the API, and is refused."""
        patience = Patience(call)
        if not await self._is_draft(post, remote_id, patience):
            if await self._published(post.marker, patience) is not None:
                raise ChannelError(
                    Fault.INVALID, f"{self._site.name}: WeChat lets nobody correct a published article; withdraw it"
                )
            raise gone(self._site.name, remote_id)
        article, notes = await self._article(post, patience)
        change: dict[str, JsonValue] = {"media_id": remote_id, "index": 0, "articles": article}
        await self._account.ask("draft/update", patience, wechat_json, change)
        return Placed(remote_id=remote_id, notes=notes)

    async def withdraw(self, post: Post, remote_id: str, call: Call) -> None:
        patience = Patience(call)
        if await self._is_draft(post, remote_id, patience):
            await self._account.ask("draft/delete", patience, wechat_json, {"media_id": remote_id})
        elif (published := await self._published(post.marker, patience)) is not None:
            await self._account.ask("freepublish/delete", patience, wechat_json, {"article_id": published.remote_id})

    async def check(self, call: Call) -> SiteReport:
        try:
            await self._account.ask("draft/count", Patience(call), wechat_json)
        except ChannelError as error:
            return SiteReport(problems=(error.message,))
        return SiteReport(notes=("links to other sites are removed by WeChat unless the account may keep them",))

    async def release(self, remote_id: str, call: Call) -> str:
        """Submit a draft for publication: the id under which `released` asks what became of it. A person's decision."""
        sent = await self._account.ask("freepublish/submit", Patience(call), wechat_json, {"media_id": remote_id})
        return text_at(sent, "publish_id")

    async def released(self, publish_id: str, call: Call) -> Placed | None:
        """None while it is being published. Raises INVALID or REFUSED when it failed for good."""
        return await self._account.ask("freepublish/get", Patience(call), decode_release, {"publish_id": publish_id})

    async def _article(self, post: Post, patience: Patience) -> tuple[dict[str, JsonValue], tuple[str, ...]]:
        refuse_more(post, self.abilities, self._site.name)
        if post.picture is None:
            raise ChannelError(Fault.INVALID, f"{self._site.name}: WeChat takes no article without a cover picture")
        if len(post.title) > _LONGEST_TITLE:
            raise ChannelError(
                Fault.INVALID, f"{self._site.name}: the title is longer than {_LONGEST_TITLE} characters"
            )
        upload = multipart(_file("media", post.picture), {})
        source = await self._account.ask("media/uploadimg", patience, _url, upload=Upload(*upload))
        text, foreign_pictures = _without_foreign_pictures(post.html)
        body = markup.figure(source, post) + text
        content = f'<section data-citeloop="{html.escape(post.marker, quote=True)}">{body}</section>'
        if len(content) > _LONGEST_CONTENT:
            raise ChannelError(
                Fault.INVALID, f"{self._site.name}: the text is longer than {_LONGEST_CONTENT} characters"
            )
        notes = (f"without {foreign_pictures} pictures of other sites",) if foreign_pictures else ()
        return {
            "title": post.title,
            "author": post.author,
            "digest": post.excerpt[:_LONGEST_DIGEST],
            "content": content,
            "content_source_url": post.canonical_url,
            "thumb_media_id": await self._cover(post.picture, patience),
            "need_open_comment": 0,
            "only_fans_can_comment": 0,
        }, notes

    async def _add(self, post: Post, article: dict[str, JsonValue], patience: Patience) -> str:
        try:
            return await self._account.ask("draft/add", patience, _media_id, {"articles": [article]})
        except ChannelError as error:
            if error.change != "reupload_cover":
                raise
        assert post.picture is not None
        self._covers.pop(_digest(post.picture), None)
        again = article | {"thumb_media_id": await self._cover(post.picture, patience)}
        return await self._account.ask("draft/add", patience, _media_id, {"articles": [again]})

    async def _cover(self, picture: PictureFile, patience: Patience) -> str:
        """Permanent material of this account, uploaded once per process."""
        digest = _digest(picture)
        if digest not in self._covers:
            upload = Upload(*multipart(_file("media", picture), {}))
            self._covers[digest] = await self._account.ask(
                "material/add_material?type=image", patience, _media_id, upload=upload
            )
        return self._covers[digest]

    async def _is_draft(self, post: Post, remote_id: str, patience: Patience) -> bool:
        """False where no such draft is left. Raises INVALID for a draft without our marker."""
        try:
            draft = await self._account.ask("draft/get", patience, wechat_json, {"media_id": remote_id})
        except ChannelError as error:
            if error.change == "reupload_cover":  # 40007: no such media_id
                return False
            raise
        if not _bears(draft, post.marker):
            raise foreign(self._site.name, remote_id)
        return True

    async def _published(self, marker: str, patience: Patience) -> Placed | None:
        """Accounts without the right to publish by API have no such list."""
        try:
            found, _ = await self._search("freepublish/batchget", "article_id", marker, _PUBLISHED_PAGES, patience)
        except ChannelError as error:
            if error.fault is Fault.UNAUTHORIZED:
                return None
            raise
        return Placed(remote_id=found) if found else None

    async def _search(self, path: str, key: str, marker: str, pages: int, patience: Patience) -> tuple[str, bool]:
        """The id of the item that bears the marker, and whether all items were seen."""
        seen = 0
        for _ in range(pages):
            asked: dict[str, JsonValue] = {"offset": seen, "count": _PAGE, "no_content": 0}
            page = await self._account.ask(path, patience, wechat_json, asked)
            items = list(items_at(page, "item"))
            for item in items:
                content = item.get("content") if isinstance(item, dict) else None
                if _bears(content, marker):
                    return text_at(item, key), True
            seen += len(items)
            if not items or seen >= count_at(page, "total_count"):
                return "", True
        return "", False


def decode_release(reply: HttpReply) -> Placed | None:
    state = wechat_json(reply)
    status = count_at(state, "publish_status")
    if status in _RELEASE_FAILED:
        kind, words = _RELEASE_FAILED[status]
        raise ChannelError(kind, f"not published: {words}", status=reply.status)
    if status:
        return None
    url = text_at(state, "article_detail", "item", 0, "article_url")
    return Placed(remote_id=text_at(state, "article_id"), url=url)


def _bears(content: JsonValue, marker: str) -> bool:
    written = f'data-citeloop="{html.escape(marker, quote=True)}"'
    return any(written in text_at(one, "content") for one in items_at(content, "news_item"))


def _without_foreign_pictures(text: str) -> tuple[str, int]:
    """WeChat drops them without a word; here they are counted."""
    found = [one for one in _IMAGE.finditer(text) if not _OWN_HOSTS.match(one[1])]
    for one in found:
        text = text.replace(one[0], "", 1)
    return text, len(found)


def _digest(picture: PictureFile) -> str:
    return hashlib.sha256(picture.data).hexdigest()[:16]


def _file(field: str, picture: PictureFile) -> File:
    name = f"citeloop-{_digest(picture)}.{markup.extension(picture.media_type)}"
    return File(field, name, picture.media_type, picture.data)


def _media_id(reply: HttpReply) -> str:
    return _told(reply, "media_id")


def _url(reply: HttpReply) -> str:
    return _told(reply, "url")


def _told(reply: HttpReply, key: str) -> str:
    value = text_at(wechat_json(reply), key)
    if not value:
        raise ChannelError(Fault.GARBLED, f"WeChat answered without {key}", status=reply.status)
    return value
