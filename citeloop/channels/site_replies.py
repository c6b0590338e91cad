"""Replies of sites, judged as replies to a publication: what must never be repeated without a look is UNKNOWN.

One function per service, from a reply to a judgement; each raises ChannelError for what went wrong.
"""

import re
from collections.abc import Callable

from pydantic import JsonValue

from citeloop.channels.errors import ChannelError, Fault, Remedy
from citeloop.channels.foreign import at, text_at
from citeloop.channels.handling import Judgement, accepted, unfinished
from citeloop.channels.judging import fault, garbled, judge
from citeloop.channels.publishers.doubt import in_doubt
from citeloop.channels.publishers.ghost import ghost_json
from citeloop.channels.publishers.halo import halo_json
from citeloop.channels.publishers.indexnow import decode_ping
from citeloop.channels.publishers.wechat import decode_release
from citeloop.channels.publishers.wechat_account import wechat_json
from citeloop.channels.publishers.wordpress_rest import wordpress_json
from citeloop.channels.reply import HttpReply, Shape, read_body

_BAD, _FORBIDDEN, _CONFLICT, _GONE, _UNPROCESSABLE, _OK = 400, 403, 409, 410, 422, 200
_TAKEN = re.compile(r"(?i)has already been taken|already exists|must be unique|has to be unique|param is missing")
_DUPLICATE_NAME = re.compile(r"(?i)duplicate name|already exists|重复")
_SIGNATURE = re.compile(r"v1a?,\S+")
_PUBLISHING = 1
_XML = 20_000
_XML_FAULT = re.compile(r"(?s)<fault>.{0,400}?<int>(-?\d{1,6})</int>.{0,400}?<string>(.{0,200}?)</string>")


def judge_wordpress(reply: HttpReply) -> Judgement:
    """A list is what a POST gets that a redirect on the way turned into a GET."""
    code = text_at(read_body(reply).json, "code")
    if code == "term_exists":
        return accepted("the term is there already: use the id in data.term_id")
    if code == "rest_post_exists":
        raise fault(Fault.UNKNOWN, reply, "the post exists already: look it up")
    post = _published(reply, wordpress_json)
    if isinstance(post, list):
        raise fault(Fault.UNKNOWN, reply, "a list answers a look-up: a redirect may have made the POST a GET")
    status = text_at(post, "status")
    if status == "future" and reply.status == _OK:
        return unfinished(Remedy.POLL, "scheduled and not live yet: WordPress' cron may miss the date, so look again")
    if not text_at(post, "id") and not at(post, "namespaces"):
        raise fault(Fault.UNKNOWN, reply, "the site did not say what it created")
    return accepted(f"status {status or 'published'}, slug {text_at(post, 'slug') or '?'}")


def judge_wordpress_media(reply: HttpReply) -> Judgement:
    """A picture posted twice harms nobody, so a failed upload is simply tried again."""
    wordpress_json(reply)
    return accepted("the picture is in the library")


def judge_ghost(reply: HttpReply) -> Judgement:
    if reply.status == _CONFLICT:
        raise fault(Fault.UNKNOWN, reply, "somebody changed the post: fetch it, and send its updated_at again")
    _published(reply, ghost_json)
    return accepted("the site took it")


def judge_halo(reply: HttpReply) -> Judgement:
    problem = read_body(reply).json
    if reply.status == _BAD and _DUPLICATE_NAME.search(f"{text_at(problem, 'title')} {text_at(problem, 'detail')}"):
        return accepted("the name, which only we choose, is taken: our earlier attempt succeeded; go on to publish")
    if reply.status == _CONFLICT:
        raise fault(Fault.UNKNOWN, reply, "the post has changed: fetch it, and send its metadata.version again")
    _published(reply, halo_json)
    return accepted("the site took it")


def judge_wechat(reply: HttpReply) -> Judgement:
    """An `errcode` is a refusal in so many words, under HTTP 200: nothing is in doubt after it."""
    if text_at(read_body(reply).json, "errcode") in {"", "0"}:
        state = _published(reply, wechat_json)
        if at(state, "publish_status") == _PUBLISHING:
            return unfinished(Remedy.POLL, "still being published")
        if at(state, "publish_status") is not None:
            decode_release(reply)
        return accepted("WeChat took it")
    wechat_json(reply)
    return accepted("WeChat took it")


def judge_devto(reply: HttpReply) -> Judgement:
    message = text_at(read_body(reply).json, "error")
    if reply.status == _UNPROCESSABLE and _TAKEN.search(message):
        raise fault(Fault.UNKNOWN, reply, f"HTTP 422: {message}: an earlier attempt may hold it, list our own articles")
    _published(reply, _json_or_nothing)
    return accepted("the site took it")


def judge_typecho(reply: HttpReply) -> Judgement:
    """XML-RPC tells its faults under HTTP 200."""
    text = read_body(reply).text[:_XML]
    found = _XML_FAULT.search(text)
    if found:
        kind = Fault.UNAUTHORIZED if found[1] in {"401", "403"} else Fault.INVALID
        raise fault(kind, reply, f"fault {found[1]}: {found[2]}")
    if reply.ok and "<methodResponse" in text:
        return accepted("the site took it")
    _published(reply, _json_or_nothing)
    raise fault(Fault.UNKNOWN, reply, "the site did not say what it did")


def judge_strapi(reply: HttpReply, *, draft_wanted: bool = True) -> Judgement:
    """Strapi 5 publishes on POST and PUT unless the query says `status=draft`; the body's word for it is ignored."""
    message = text_at(read_body(reply).json, "error", "message")
    if reply.status == _BAD and _TAKEN.search(message):
        raise fault(Fault.UNKNOWN, reply, f"HTTP 400: {message}: our earlier attempt may hold it, filter by slug")
    entry = _published(reply, _json_or_nothing)
    if draft_wanted and at(entry, "data", "publishedAt"):
        raise fault(Fault.INVALID, reply, "published although a draft was wanted", change="?status=draft")
    return accepted("the site took it")


def judge_directus(reply: HttpReply) -> Judgement:
    """A 204 is a success without a body."""
    if text_at(read_body(reply).json, "errors", 0, "extensions", "code") == "RECORD_NOT_UNIQUE":
        raise fault(Fault.UNKNOWN, reply, "RECORD_NOT_UNIQUE: our earlier attempt holds the slug, filter by it")
    _published(reply, _json_or_nothing)
    return accepted("the site took it")


def judge_indexnow(reply: HttpReply) -> Judgement:
    pinged = decode_ping(reply, "/<key>.txt")
    return accepted(pinged.note or "the addresses were taken")


def judge_webhook(reply: HttpReply) -> Judgement:
    """Standard Webhooks 1.0: every failure may be delivered again under the same id, which the receiver knows."""
    if 300 <= reply.status < 400:  # noqa: PLR2004 - the redirect class
        raise fault(Fault.UNAVAILABLE, reply, f"HTTP {reply.status}: redirects are not followed; update the URL")
    if reply.status == _GONE:
        gone = "HTTP 410: the endpoint asks to be sent nothing more"
        raise fault(Fault.INVALID, reply, gone, remedy=Remedy.DISABLE_ENDPOINT)
    if reply.ok:
        return accepted("delivered")
    raise judge(reply, read_body(reply)) or fault(Fault.UNAVAILABLE, reply, f"HTTP {reply.status}")


def judge_callback(reply: HttpReply) -> Judgement:
    """A delivery to us, written as if it were a reply. Its signature needs the secret, so only its form is judged."""
    lacking = [name for name in ("webhook-id", "webhook-timestamp", "webhook-signature") if not reply.headers.get(name)]
    if lacking:
        raise fault(Fault.UNAUTHORIZED, reply, f"a delivery without {', '.join(lacking)} is not believed")
    if not any(_SIGNATURE.fullmatch(one) for one in reply.headers["webhook-signature"].split()):
        raise fault(Fault.UNAUTHORIZED, reply, "webhook-signature holds no signature of a known kind")
    if not text_at(read_body(reply).json, "type"):
        raise garbled(reply, "the delivery names no type")
    return accepted(f"delivery {reply.headers['webhook-id'][:60]}: repeats share the id, any one signature is enough")


def _published(reply: HttpReply, decode: Callable[[HttpReply], JsonValue]) -> JsonValue:
    """The reply to a mutation. A site sells nothing: what reads like a spent quota is its rate limit."""
    try:
        return decode(reply)
    except ChannelError as error:
        if error.fault is Fault.EXHAUSTED and error.delay is None:
            error.fault = Fault.RATE_LIMITED
        if error.change == "shorten_input":
            error.change = ""
        raise in_doubt(error) from None


def _json_or_nothing(reply: HttpReply) -> JsonValue:
    body = read_body(reply)
    if error := judge(reply, body):
        raise error
    if body.shape not in {Shape.JSON, Shape.EMPTY}:
        raise garbled(reply, f"expected JSON and got {body.shape}: {body.text[:120]}")
    return body.json
