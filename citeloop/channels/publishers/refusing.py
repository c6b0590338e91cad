"""What a site cannot do is refused before anything is sent, never left out in silence."""

from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.ports import Ability, Post


def refuse_more(post: Post, abilities: frozenset[Ability], site: str) -> None:
    """Raises INVALID when the post asks for what is not among the abilities."""
    asked = {
        Ability.PICTURE: post.picture is not None,
        Ability.TAGS: bool(post.tags),
        Ability.CATEGORIES: bool(post.categories),
        Ability.AUTHOR: bool(post.author),
        Ability.CANONICAL: bool(post.canonical_url),
        Ability.JSON_LD: bool(post.json_ld),
        Ability.CALLBACK: bool(post.callback_url),
    }
    lacking = sorted(ability for ability, wanted in asked.items() if wanted and ability not in abilities)
    if lacking:
        raise ChannelError(Fault.INVALID, f"{site}: this kind of site takes no {', no '.join(lacking)}")
    if not post.html.strip() or not post.title.strip():
        raise ChannelError(Fault.INVALID, f"{site}: the article has no title or no text; nothing was sent")


def gone(site: str, remote_id: str) -> ChannelError:
    return ChannelError(Fault.INVALID, f"{site}: post {remote_id} is not there any more; publish it anew")


def foreign(site: str, remote_id: str) -> ChannelError:
    return ChannelError(
        Fault.INVALID, f"{site}: post {remote_id} does not bear our marker: somebody rewrote it; change it by hand"
    )
