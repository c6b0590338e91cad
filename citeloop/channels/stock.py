"""Stock photographs, decoded: what a search found, and whom to thank for it."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta

from pydantic import JsonValue

from citeloop.channels.delays import next_hour, reset_delay
from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.foreign import items_at, text_at
from citeloop.channels.judging import garbled, judge, judged_json
from citeloop.channels.ports import PictureBrief
from citeloop.channels.reply import HttpReply, read_body

_WORDS = re.compile(r"[^\s,.;:!?，。；：！？、]+")
_LIMITED = re.compile(r"rate limit exceeded|too many requests", re.IGNORECASE)
_LIMIT_STATUSES = frozenset({403, 429})
UTM = "utm_source=citeloop&utm_medium=referral"
_MOST_WORDS, _FEWER_WORDS = 8, 2


@dataclass(frozen=True, slots=True)
class Photo:
    """`used` is the address to call when the photo is taken (Unsplash), empty where there is none."""

    url: str
    credit: str
    used: str = ""


def decode_unsplash(reply: HttpReply) -> tuple[Photo, ...]:
    """Nothing found is an empty tuple: normal for a Chinese query."""
    return _found(reply, "results", _unsplash)


def decode_pexels(reply: HttpReply) -> tuple[Photo, ...]:
    return _found(reply, "photos", _pexels)


async def first_photo(search: Callable[[str], Awaitable[tuple[Photo, ...]]], brief: PictureBrief) -> Photo:
    """By the article's title, then once by the first two words of it. Raises INVALID when nothing was found."""
    words = _WORDS.findall(brief.title or brief.prompt)
    for query in dict.fromkeys((" ".join(words[:_MOST_WORDS]), " ".join(words[:_FEWER_WORDS]))):
        if query and (photos := await search(query)):
            return photos[0]
    raise ChannelError(Fault.INVALID, f"no photograph was found for {' '.join(words[:_MOST_WORDS])!r}")


def _found(reply: HttpReply, name: str, read: Callable[[JsonValue], Photo | None]) -> tuple[Photo, ...]:
    if limit := _limit(reply):
        raise limit
    payload = judged_json(reply)
    if not isinstance(payload, dict) or not isinstance(payload.get(name), list):
        raise garbled(reply, f"the reply has no list of {name}")
    return tuple(photo for one in items_at(payload, name) if (photo := read(one)))


def _limit(reply: HttpReply) -> ChannelError | None:
    """Hourly limits come as plain text, as 403 as well as 429, without Retry-After; any other 403 is a bad key."""
    if reply.status not in _LIMIT_STATUSES:
        return None
    body = read_body(reply)
    spent = reply.headers.get("x-ratelimit-remaining", "").strip() == "0"
    error = judge(reply, body)
    if not spent and reply.status != 429 and not _LIMITED.search(body.text[:500]):  # noqa: PLR2004
        return error
    if error is not None and error.delay is not None:
        return error
    due = reset_delay(reply.headers, "", reply.received_at) or next_hour(reply.received_at)
    return ChannelError(
        Fault.RATE_LIMITED,
        f"HTTP {reply.status}: the hourly limit of {reply.headers.get('x-ratelimit-limit', '?')[:10]} is used up",
        delay=max(due.delay, timedelta(seconds=1)),
        until=due.named,
        status=reply.status,
    )


def _unsplash(photo: JsonValue) -> Photo | None:
    url = text_at(photo, "urls", "regular") or text_at(photo, "urls", "full")
    if not url:
        return None
    name = text_at(photo, "user", "name") or "unknown"
    page = text_at(photo, "user", "links", "html")
    author = f"{name} ({page}?{UTM})" if page else name
    return Photo(
        url,
        f"Photo by {author} on Unsplash (https://unsplash.com/?{UTM})"[:500],
        used=text_at(photo, "links", "download_location"),
    )


def _pexels(photo: JsonValue) -> Photo | None:
    url = text_at(photo, "src", "large2x") or text_at(photo, "src", "large") or text_at(photo, "src", "original")
    if not url:
        return None
    name = text_at(photo, "photographer") or "unknown"
    page = text_at(photo, "url")
    return Photo(url, (f"Photo by {name} on Pexels ({page})" if page else f"Photo by {name} on Pexels")[:500])
