"""Whether an answer engine can read a published page: a pure judgement, and the fetcher that feeds it.

A page that engines cannot read is reported, since asking them about it would be pointless.
"""

import contextlib
import re
from html.parser import HTMLParser
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit
from urllib.robotparser import RobotFileParser

from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.patience import Patience
from citeloop.channels.ports import Call, Post
from citeloop.channels.reply import HttpReply, read_body
from citeloop.channels.wire import HttpRequest, Wire
from citeloop.models.record import Record

READERS = (
    "GPTBot", "OAI-SearchBot", "ChatGPT-User", "PerplexityBot", "Perplexity-User", "ClaudeBot", "Claude-SearchBot",
    "Claude-User", "Google-Extended", "Googlebot", "Bingbot", "Applebot", "CCBot", "Bytespider", "Baiduspider",
    "Sogou web spider", "360Spider", "YisouSpider", "PetalBot",
)  # fmt: skip
"""Crawlers whose companies answer questions, or whose index those companies search."""
_OK, _SERVER_ERROR = 200, 500
_REDIRECTED = range(300, 400)
_HOPS = 3
_LIMIT = 4 * 1024 * 1024
_LETTERS = re.compile(r"[\W_]+")
_HIDING = re.compile(r"\b(noindex|none)\b", re.IGNORECASE)
_FOR_ONE = re.compile(r"^\s*([a-z][\w -]*):\s*(.*)$", re.IGNORECASE)
_NO_BOT = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})
_META = frozenset({"robots", *(name.lower() for name in READERS)})
_SNIPPET = 40
"""Letters of the text that must be found in the page as it comes, without a browser."""


class PageCheck(Record):
    """`problems` keep engines from the page; `notes` are worth knowing; `barred`: crawlers shut out by robots.txt."""

    url: str
    status: int | None = None
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    barred: tuple[str, ...] = ()

    @property
    def readable(self) -> bool:
        return not self.problems


class Robots(NamedTuple):
    """What `/robots.txt` answered; status None: nothing."""

    status: int | None
    text: str = ""


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.text: list[str] = []
        self.hidden: list[str] = []
        self.canonical = ""
        self.structured = False
        self._skipping = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "meta" and given.get("name", "").lower() in _META and _HIDING.search(given.get("content", "")):
            self.hidden.append(f"<meta name={given['name']!r} content={given['content']!r}>")
        if tag == "link" and "canonical" in given.get("rel", "").lower().split():
            self.canonical = self.canonical or given.get("href", "")
        if tag == "script" and given.get("type", "").lower() == "application/ld+json":
            self.structured = True
        if tag in {"script", "style", "title"}:
            self._skipping = tag

    def handle_endtag(self, tag: str) -> None:
        if tag == self._skipping:
            self._skipping = ""

    def handle_data(self, data: str) -> None:
        if not self._skipping:
            self.text.append(data)


def judge_page(url: str, reply: HttpReply, robots: Robots, title: str, text: str = "") -> PageCheck:
    """`url`: where the page was found in the end. `text`: running text of the article; its beginning must be there."""
    problems, notes = [], []
    if reply.status != _OK:
        problems.append(f"the page answers HTTP {reply.status}")
    elif (page := _read(reply)) is None:
        encoding = reply.headers.get("content-encoding", "")
        problems.append(f"the page cannot be decoded{f' (content-encoding: {encoding})' if encoding else ''}")
    else:
        problems += _missing(page, title, text)
        problems += [f"the page tells engines to leave it out: {where}" for where in page.hidden]
        if page.canonical and not _same(_joined(url, page.canonical), url):
            notes.append(f"the page names {page.canonical} as its original: engines cite that one")
        if not page.structured:
            notes.append("the page has no JSON-LD")
    problems += [f"the header X-Robots-Tag tells engines to leave it out: {rule}" for rule in _hiding_rules(reply)]
    barred = _barred(url, robots)
    if robots.status is not None and robots.status >= _SERVER_ERROR:
        problems.append(f"robots.txt answers HTTP {robots.status}: crawlers then read nothing of the site")
    elif barred:
        problems.append(f"robots.txt bars {', '.join(barred)}")
    return PageCheck(url=url, status=reply.status, problems=tuple(problems), notes=tuple(notes), barred=tuple(barred))


async def check_page(wire: Wire, url: str, post: Post, call: Call) -> PageCheck:
    """Fetches the page and its robots.txt as anyone would, redirects followed; never raises for what it finds."""
    patience = Patience(call)
    try:
        landed, reply = await _fetch(wire, url, patience)
    except ChannelError as error:
        return PageCheck(url=url, status=error.status, problems=(f"the page cannot be reached: {error.message}",))
    place = urlsplit(landed)
    try:
        _, found = await _fetch(wire, f"{place.scheme}://{place.netloc}/robots.txt", patience)
        robots = Robots(found.status, read_body(found, _LIMIT).text)
    except ChannelError:
        robots = Robots(None)
    text = re.sub(r"<[^>]*>", " ", post.html)
    return judge_page(landed, reply, robots, post.title, text)


async def _fetch(wire: Wire, url: str, patience: Patience) -> tuple[str, HttpReply]:
    for _ in range(_HOPS + 1):
        request = HttpRequest("GET", url, {"Accept": "text/html,text/plain,*/*"})
        reply = await wire.exchange(request, patience.call(), lambda reply: reply, limit=_LIMIT)
        if reply.status not in _REDIRECTED or not reply.headers.get("location"):
            break
        location = reply.headers["location"]
        url = _joined(url, location)
        if not _is_web(url):
            raise ChannelError(Fault.GARBLED, f"it redirects to {location[:100]!r}, which is no web address")
    return url, reply


def _is_web(url: str) -> bool:
    try:
        return urlsplit(url).scheme in {"http", "https"}
    except ValueError:
        return False


def _read(reply: HttpReply) -> _Reader | None:
    """None: its bytes are no text. Of a page that breaks off in mid-markup counts what was read until then."""
    page = _Reader()
    try:
        text = read_body(reply, _LIMIT).text
    except ChannelError:
        return None
    with contextlib.suppress(AssertionError):  # how the standard parser meets `<![foo[`
        page.feed(text)
    return page


def _joined(base: str, reference: str) -> str:
    """The reference as it stands where it is no address, such as `https://[domain]/x`."""
    try:
        return urljoin(base, reference)
    except ValueError:
        return reference


def _missing(page: _Reader, title: str, text: str) -> list[str]:
    """Themes change quotation marks and dashes, so only letters and digits are compared."""
    shown = _letters(" ".join(page.text))
    problems = []
    if _letters(title) not in shown:
        problems.append("the page does not carry the article's title")
    snippet = _letters(text)[:_SNIPPET]
    if snippet and snippet not in shown:
        problems.append("the article's text is not in the page as it comes: most crawlers run no scripts")
    return problems


def _letters(text: str) -> str:
    return _LETTERS.sub("", text).casefold()


def _same(one: str, other: str) -> bool:
    return one.partition("#")[0].rstrip("/") == other.partition("#")[0].rstrip("/")


def _hiding_rules(reply: HttpReply) -> list[str]:
    """The rules that hide the page from everyone or from a crawler we know."""
    hiding = []
    bot = ""
    for rule in reply.headers.get("x-robots-tag", "").split(","):
        named = _FOR_ONE.match(rule)
        if named and named[1].strip().lower() not in _NO_BOT:
            bot, rule = named[1].strip(), named[2]  # noqa: PLW2901 - the rule without the crawler it is for
        if _HIDING.search(rule) and (not bot or bot.lower() in _META):
            hiding.append(f"{bot}: {rule.strip()}" if bot else rule.strip())
    return hiding


def _barred(url: str, robots: Robots) -> list[str]:
    """By RFC 9309: no robots.txt (4xx) allows everything."""
    if robots.status != _OK:
        return []
    rules = _rules(robots.text.splitlines())
    return [name for name in READERS if not rules.can_fetch(name, url)]


def _rules(lines: list[str]) -> RobotFileParser:
    """Lines that are no rules, such as `Disallow: //[x`, are left out, as crawlers do."""
    parser = RobotFileParser()
    try:
        parser.parse(lines)
    except ValueError:
        sound = [line for line in lines if _is_sound(line)]
        parser = RobotFileParser()
        parser.parse(sound)
    return parser


def _is_sound(line: str) -> bool:
    try:
        RobotFileParser().parse(["User-agent: *", line])
    except ValueError:
        return False
    return True
