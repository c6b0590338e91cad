"""WordPress by its REST API, with an application password. Tested against: real service (core 6.1), sandbox.

Every post ends with an empty `<span data-citeloop="…">` that carries our marker: WordPress keeps data attributes for
every role, needs no registered meta field for it, and finds it by its full-text search. A post is ours only if it
bears the marker, whatever its slug became. (Read from core 7.2-alpha, 2026-08.)
"""

import hashlib
import html
import json
import re
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.foreign import at, text_at
from citeloop.channels.patience import Patience
from citeloop.channels.ports import Ability, Call, PictureFile, Placed, Post, SiteReport
from citeloop.channels.publishers import markup
from citeloop.channels.publishers.doubt import in_doubt
from citeloop.channels.publishers.refusing import foreign, gone, refuse_more
from citeloop.channels.publishers.wordpress_check import check_wordpress
from citeloop.channels.publishers.wordpress_rest import (
    Ask,
    Rest,
    created,
    found,
    identity,
    listed,
    term,
    wordpress_json,
)
from citeloop.channels.wire import Wire
from citeloop.models.channel import SiteSpec

_STATUSES = "publish,future,draft,pending,private"
_PRE = re.compile(r"(<pre\b.*?</pre>)", re.DOTALL)
_JSON = {"Content-Type": "application/json"}
_NO_PICTURE = frozenset({Fault.INVALID, Fault.REFUSED, Fault.GARBLED})
_FORBIDDEN, _ALREADY_TRASHED, _NO_TRASH = 403, 410, 501
_NO_SCRIPTS = "without JSON-LD: the account lacks unfiltered_html, and WordPress strips scripts from its posts"


class WordPress:
    abilities = frozenset(Ability) - {Ability.CALLBACK, Ability.CANONICAL, Ability.AUTHOR}

    def __init__(self, site: SiteSpec, user: str, password: str, wire: Wire) -> None:
        self._site = site
        self._rest = Rest(site.base_url, user, password, wire)
        self._terms: dict[tuple[str, str], int] = {}
        self._keeps_scripts: bool | None = None

    async def publish(self, post: Post, call: Call) -> Placed:
        """Media and terms first, then the post, within the call's total. UNKNOWN only for the post itself.

        An article survives without its picture where the site refuses the picture for good, and says so in `notes`.
        """
        refuse_more(post, self.abilities, self._site.name)
        patience = Patience(call)
        fields, notes = await self._fields(post, patience)
        fields |= {"slug": post.slug, "status": "publish"}
        try:
            made = await self._create(fields, patience)
        except ChannelError as error:
            if "featured_media" not in fields or error.change != "drop_featured_media":
                raise
            del fields["featured_media"]
            notes.append(f"without its picture: {error.message}")
            made = await self._create(fields, patience)
        made = await self._without_lost_script(post, fields, made, notes, patience)
        placed = _placed(made, notes)
        if text_at(made, "slug") in {post.slug, ""}:
            return placed
        return await self._settle_double(post, placed, patience)

    async def look_up(self, post: Post, call: Call) -> Placed | None:
        """By slug in every status, then by a search for the marker (WordPress may have changed the slug)."""
        ours = await self._bearing(post, Patience(call))
        return _placed(ours[0]) if ours else None

    async def update(self, post: Post, remote_id: str, call: Call) -> Placed:
        """Text, picture and terms anew; slug, address and status stay."""
        refuse_more(post, self.abilities, self._site.name)
        patience = Patience(call)
        if await self._ours(post, remote_id, patience) is None:
            raise gone(self._site.name, remote_id)
        fields, notes = await self._fields(post, patience)
        changed = await self._rest.ask(_post(f"/wp/v2/posts/{remote_id}", fields), patience, created)
        return _placed(await self._without_lost_script(post, fields, changed, notes, patience), notes)

    async def withdraw(self, post: Post, remote_id: str, call: Call) -> None:
        """Into the trash, from which the site's people can fetch it; deleted where the site has no trash."""
        patience = Patience(call)
        if await self._ours(post, remote_id, patience) is None:
            return
        route = f"/wp/v2/posts/{remote_id}"
        try:
            await self._rest.ask(Ask("DELETE", route, {}), patience, wordpress_json)
        except ChannelError as error:
            if error.status == _NO_TRASH:
                await self._rest.ask(Ask("DELETE", route, {"force": "true"}), patience, wordpress_json)
            elif error.status != _ALREADY_TRASHED:
                raise

    async def check(self, call: Call) -> SiteReport:
        return await check_wordpress(self._rest, self._site.base_url, Patience(call))

    async def _fields(self, post: Post, patience: Patience) -> tuple[dict[str, JsonValue], list[str]]:
        """The post's fields but for slug and status, and what had to be left out.

        WordPress takes title and excerpt for HTML, and themes print them as they are.
        """
        notes: list[str] = []
        media, source = await self._picture(post, patience, notes)
        script = ""
        if post.json_ld and await self._may_script(patience, notes):
            script = markup.json_ld(post, image=source)
        fields: dict[str, JsonValue] = {
            "title": html.escape(post.title, quote=False),
            "content": f"{_on_one_line(post.html)}{markup.span(post.marker)}{script}",
            "excerpt": html.escape(post.excerpt, quote=False),
        }
        if media:
            fields["featured_media"] = media
        for taxonomy, names in (("tags", post.tags), ("categories", post.categories)):
            if names:
                ids = await self._term_ids(taxonomy, names, patience, notes)
                fields[taxonomy] = [*ids]
        return fields, notes

    async def _create(self, fields: dict[str, JsonValue], patience: Patience) -> JsonValue:
        try:
            return await self._rest.ask(_post("/wp/v2/posts", fields), patience, created)
        except ChannelError as error:
            raise in_doubt(error) from None

    async def _settle_double(self, post: Post, placed: Placed, patience: Patience) -> Placed:
        """Another slug than asked: if an earlier post of ours holds it, we posted twice, and the second one goes."""
        try:
            ours = await self._bearing(post, patience)
            earlier = [one for one in ours if text_at(one, "id") != placed.remote_id]
            if earlier:
                removal = Ask("DELETE", f"/wp/v2/posts/{placed.remote_id}", {"force": "true"})
                await self._rest.ask(removal, patience, wordpress_json)
                return _placed(earlier[0])
        except ChannelError:
            return placed
        return placed

    async def _bearing(self, post: Post, patience: Patience) -> list[JsonValue]:
        for query in ({"slug": post.slug}, {"search": post.marker}):
            asked = query | {"status": _STATUSES, "context": "edit", "per_page": "100"}
            posts = await self._rest.ask(Ask("GET", "/wp/v2/posts", asked), patience, listed)
            ours = [one for one in posts if _bears(one, post.marker)]
            if ours:
                return ours
        return []

    async def _ours(self, post: Post, remote_id: str, patience: Patience) -> JsonValue:
        """The post of this id, None where it is gone. Raises INVALID where it is no longer ours."""
        item = await self._rest.ask(Ask("GET", f"/wp/v2/posts/{remote_id}", {"context": "edit"}), patience, found)
        if item is None or text_at(item, "status") == "trash":
            return None
        if not _bears(item, post.marker):
            raise foreign(self._site.name, remote_id)
        return item

    async def _picture(self, post: Post, patience: Patience, notes: list[str]) -> tuple[int, str]:
        """Media id and address, 0 for none. The file's name is its digest, so that a repeat finds it."""
        if post.picture is None:
            return 0, ""
        name = f"citeloop-{hashlib.sha256(post.picture.data).hexdigest()[:16]}"
        try:
            known = await self._rest.ask(Ask("GET", "/wp/v2/media", {"slug": name}), patience, listed)
            known = [one for one in known if _is_whole(one)]
            if not known:
                known = [await self._rest.ask(_upload(name, post, post.picture), patience, created)]
        except ChannelError as error:
            if error.fault in _NO_PICTURE or error.status == _FORBIDDEN:
                notes.append(f"without its picture: {error.message}")
                return 0, ""
            raise
        return identity(known[0]), text_at(known[0], "source_url")

    async def _term_ids(self, taxonomy: str, names: Sequence[str], patience: Patience, notes: list[str]) -> list[int]:
        """Made where they do not exist. An account that may not make them leaves them out, and says so."""
        ids = []
        for name in names:
            try:
                if (taxonomy, name) not in self._terms:
                    self._terms[taxonomy, name] = await self._term_id(taxonomy, name, patience)
                ids.append(self._terms[taxonomy, name])
            except ChannelError as error:
                if error.fault not in {Fault.UNAUTHORIZED, Fault.INVALID}:
                    raise
                notes.append(f"without {taxonomy} {name!r}: {error.message}")
        return ids

    async def _term_id(self, taxonomy: str, name: str, patience: Patience) -> int:
        asked = {"search": name, "per_page": "100"}
        for item in await self._rest.ask(Ask("GET", f"/wp/v2/{taxonomy}", asked), patience, listed):
            if html.unescape(text_at(item, "name")).casefold() == name.casefold():
                return identity(item)
        return await self._rest.ask(_post(f"/wp/v2/{taxonomy}", {"name": name}), patience, term)

    async def _may_script(self, patience: Patience, notes: list[str]) -> bool:
        if self._keeps_scripts is None:
            asked = Ask("GET", "/wp/v2/users/me", {"context": "edit"})
            try:
                me = await self._rest.ask(asked, patience, wordpress_json)
            except ChannelError as error:
                notes.append(f"without JSON-LD: whether the account may keep scripts is not known ({error.message})")
                return False
            self._keeps_scripts = at(me, "capabilities", "unfiltered_html") is True
        if not self._keeps_scripts:
            notes.append(_NO_SCRIPTS)
        return self._keeps_scripts

    async def _without_lost_script(
        self, post: Post, fields: dict[str, JsonValue], made: JsonValue, notes: list[str], patience: Patience
    ) -> JsonValue:
        """A multisite strips scripts from administrators too and leaves their text behind: take it away again."""
        content = str(fields["content"])
        shown = text_at(made, "content", "raw")
        if "<script" not in content or not shown or "<script" in shown:
            return made
        self._keeps_scripts = False
        notes.append(_NO_SCRIPTS)
        bare = {"content": f"{_on_one_line(post.html)}{markup.span(post.marker)}"}
        try:
            return await self._rest.ask(_post(f"/wp/v2/posts/{text_at(made, 'id')}", bare), patience, created)
        except ChannelError as error:
            notes.append(f"its JSON-LD may stand on the page as text: {error.message}")
            return made


def _post(route: str, fields: Mapping[str, JsonValue]) -> Ask:
    return Ask("POST", route, {}, json.dumps(dict(fields), ensure_ascii=False).encode("utf-8", "replace"), _JSON)


def _upload(name: str, post: Post, picture: PictureFile) -> Ask:
    headers = {
        "Content-Type": picture.media_type,
        "Content-Disposition": f'attachment; filename="{name}.{markup.extension(picture.media_type)}"',
    }
    query = {"alt_text": post.picture_alt}
    if picture.credit:
        query["caption"] = picture.credit
    return Ask("POST", "/wp/v2/media", query, picture.data, headers)


def _on_one_line(text: str) -> str:
    """WordPress makes a <br> of every line break outside <pre>."""
    return "".join(part if part.startswith("<pre") else part.replace("\n", " ") for part in _PRE.split(text))


def _is_whole(media: JsonValue) -> bool:
    """An upload whose reply was lost may have been cut off before its sizes were made: no post takes it as picture."""
    details = at(media, "media_details")
    return details is None or bool(details)


def _bears(post: JsonValue, marker: str) -> bool:
    written = html.escape(marker, quote=True)
    return any(written in text_at(post, "content", form) for form in ("raw", "rendered"))


def _placed(post: JsonValue, notes: Sequence[str] = ()) -> Placed:
    """`confirmed` False for a post that is there but not public yet (future, pending, draft)."""
    return Placed(
        remote_id=text_at(post, "id"),
        url=text_at(post, "link"),
        confirmed=text_at(post, "status") in {"publish", ""},
        notes=tuple(notes),
    )
