"""Whether answer engines can read a page, judged from what the page, its headers and robots.txt say."""

from datetime import UTC, datetime

import httpx
import pytest

from citeloop.channels.publishers.page_check import READERS, PageCheck, Robots, check_page, judge_page
from citeloop.channels.reply import HttpReply
from citeloop.channels.wire import Wire
from tests.channels.publishers.conformance import POST
from tests.channels.publishers.scripted import Scripted
from tests.channels.settings import call

URL = "https://blog.example/tea/"
NO_ROBOTS = Robots(404)
HEAD = (
    '<link rel="canonical" href="https://blog.example/tea/">'
    '<script type="application/ld+json">{"headline":"x"}</script>'
)
BODY = "<body><h1>Green “tea”</h1><p>Cold water — draws less.</p></body>"
PAGE = f"<html><head><title>Tea</title>{HEAD}</head>{BODY}</html>"


def judged(page: str = PAGE, robots: Robots = NO_ROBOTS, status: int = 200, **headers: str) -> PageCheck:
    sent = {"content-type": "text/html", **{name.replace("_", "-"): value for name, value in headers.items()}}
    reply = HttpReply(status, sent, page.encode(), datetime.now(UTC))
    return judge_page(URL, reply, robots, 'Green "tea"', "Cold water - draws less.")


def test_a_page_in_order_is_readable() -> None:
    assert judged() == PageCheck(url=URL, status=200)
    assert judged().readable


@pytest.mark.parametrize("status", [404, 403, 410, 500, 503, 302])
def test_any_other_status_than_200_is_a_problem(status: int) -> None:
    assert judged(status=status).problems == (f"the page answers HTTP {status}",)


@pytest.mark.parametrize(
    "meta",
    [
        '<meta name="robots" content="noindex, follow">',
        "<META NAME=ROBOTS CONTENT=NOINDEX>",
        '<meta name="robots" content="none">',
        '<meta content="nofollow,noindex" name="GPTBot">',
    ],
)
def test_a_page_that_says_noindex_is_not_readable(meta: str) -> None:
    assert "leave it out" in judged(PAGE.replace("<title>", f"{meta}<title>")).problems[0]


@pytest.mark.parametrize(
    "meta",
    ['<meta name="robots" content="index,follow,max-snippet:-1">', '<meta name="description" content="noindex">'],
)
def test_a_page_that_says_nothing_of_the_kind_is(meta: str) -> None:
    assert judged(PAGE.replace("<title>", f"{meta}<title>")).readable


@pytest.mark.parametrize(
    ("header", "hides"),
    [
        ("noindex", True),
        ("nofollow, noindex", True),
        ("GPTBot: noindex", True),
        ("none", True),
        ("otherbot: noindex", False),
        ("otherbot: noindex, googlebot: nofollow", False),
        ("unavailable_after: 25 Jun 2030 15:00:00 PST", False),
        ("max-snippet: 20, noindex", True),
        ("nofollow", False),
    ],
)
def test_the_header_can_hide_a_page_too(header: str, hides: bool) -> None:
    assert judged(x_robots_tag=header).readable is not hides


def test_a_title_counts_whatever_the_theme_makes_of_its_quotation_marks() -> None:
    assert judged(PAGE.replace("“tea”", "&#8222;Tea&#8220;")).readable
    assert "title" in judged(PAGE.replace("Green “tea”", "Welcome")).problems[0]


def test_a_title_in_the_head_alone_is_no_title_of_the_text() -> None:
    page = '<html><head><title>Green "tea"</title></head><body><div id="app"></div></body></html>'
    problems = judged(page).problems
    assert len(problems) == 2
    assert "run no scripts" in problems[1]


@pytest.mark.parametrize("bot", ["GPTBot", "PerplexityBot", "ClaudeBot", "Bytespider"])
def test_a_robots_txt_that_bars_a_crawler_is_named(bot: str) -> None:
    found = judged(robots=Robots(200, f"User-agent: {bot}\nDisallow: /\n"))
    assert found.barred == (bot,)
    assert bot in found.problems[0]


def test_a_robots_txt_that_bars_all_bars_all() -> None:
    assert judged(robots=Robots(200, "User-agent: *\nDisallow: /")).barred == READERS


@pytest.mark.parametrize(
    "robots",
    [
        Robots(200, "User-agent: *\nDisallow: /wp-admin/\nAllow: /wp-admin/admin-ajax.php\n"),
        Robots(200, "User-agent: *\nDisallow:\n"),
        Robots(200, "\ufeffUser-agent: SomeBot\nDisallow: /\n"),
        Robots(200, "<html>Not what you think</html>"),
        Robots(200, ""),
        Robots(404),
        Robots(403),
        Robots(None),
    ],
)
def test_a_robots_txt_that_bars_nobody_from_the_page_is_no_problem(robots: Robots) -> None:
    assert judged(robots=robots).readable


def test_a_robots_txt_that_fails_keeps_crawlers_from_everything() -> None:
    assert "HTTP 503" in judged(robots=Robots(503)).problems[0]


def test_another_original_and_a_lack_of_json_ld_are_noted() -> None:
    other = PAGE.replace("https://blog.example/tea/", "https://elsewhere.example/tea/")
    assert "https://elsewhere.example/tea/" in judged(other).notes[0]
    assert "no JSON-LD" in judged(PAGE.replace(HEAD, "")).notes[0]
    assert judged(PAGE.replace("https://blog.example/tea/", "/tea#top")).notes == ()


def test_a_page_that_cannot_be_decoded_is_not_readable() -> None:
    packed = judged(content_encoding="br")
    cut = HttpReply(200, {"content-encoding": "gzip"}, b"\x1f\x8b\x08", datetime.now(UTC))
    assert packed.problems == ("the page cannot be decoded (content-encoding: br)",)
    assert "cannot be decoded" in judge_page(URL, cut, NO_ROBOTS, "t").problems[0]


@pytest.mark.parametrize("oddity", ["<![foo[", "<![ endif]-->", '<link rel=canonical href="https://[domain]/x">'])
def test_odd_markup_is_no_reason_to_fail(oddity: str) -> None:
    assert judged(PAGE.replace("</body>", f"{oddity}</body>")).readable


@pytest.mark.parametrize("oddity", ["Disallow: //[x", "Crawl-delay: ²", "Request-rate: ¹/²"])
def test_a_robots_line_that_is_no_rule_is_left_out_and_the_others_count(oddity: str) -> None:
    found = judged(robots=Robots(200, f"User-agent: *\n{oddity}\n\nUser-agent: GPTBot\nDisallow: /\n"))
    assert found.barred == ("GPTBot",)


async def fetched(site: Scripted) -> PageCheck:
    async with site.client() as http:
        return await check_page(Wire(http, "blog"), URL, POST, call())


async def test_the_fetcher_follows_redirects_and_reads_the_robots_txt_of_where_it_lands() -> None:
    page = f"<h1>{POST.title}</h1>{POST.html}"
    site = Scripted(
        [
            ("GET", "blog.example/tea/", [httpx.Response(301, headers={"location": "https://www.blog.example/tea"})]),
            ("GET", "www.blog.example/tea", [httpx.Response(200, html=page)]),
            ("GET", "www.blog.example/robots.txt", [httpx.Response(200, text="User-agent: GPTBot\nDisallow: /tea")]),
        ]
    )
    site.rules.insert(0, site.rules.pop(1))
    found = await fetched(site)
    assert (found.url, found.status, found.barred) == ("https://www.blog.example/tea", 200, ("GPTBot",))


async def test_a_page_that_cannot_be_reached_and_one_that_redirects_in_circles_are_problems() -> None:
    lost = await fetched(Scripted([("GET", "", [httpx.ConnectError("refused")])]))
    assert "cannot be reached" in lost.problems[0]
    circle = await fetched(Scripted([("GET", "", [httpx.Response(302, headers={"location": "/tea/"})])]))
    assert circle.problems[0] == "the page answers HTTP 302"


@pytest.mark.parametrize("location", ["http://[", "mailto:a@b.example", "javascript:alert(1)"])
async def test_a_redirect_to_no_address_is_a_problem(location: str) -> None:
    found = await fetched(Scripted([("GET", "", [httpx.Response(302, headers={"location": location})])]))
    assert "cannot be reached" in found.problems[0]


async def test_a_robots_txt_that_cannot_be_fetched_is_no_verdict_on_the_page() -> None:
    page = f"<h1>{POST.title}</h1>{POST.html}"
    site = Scripted(
        [("GET", "robots.txt", [httpx.ReadError("reset")]), ("GET", "tea", [httpx.Response(200, html=page)])]
    )
    assert (await fetched(site)).readable
