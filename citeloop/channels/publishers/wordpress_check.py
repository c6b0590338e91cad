"""Whether a WordPress site can be published to, with what hosting does to it told in words."""

import json
from urllib.parse import urlsplit

from pydantic import JsonValue

from citeloop.channels.errors import ChannelError
from citeloop.channels.foreign import at, items_at, text_at
from citeloop.channels.patience import Patience
from citeloop.channels.ports import SiteReport
from citeloop.channels.publishers.wordpress_rest import Ask, Rest, created, wordpress_json

_NEEDED = {"edit_posts": "write posts", "publish_posts": "publish posts"}
_WELCOME = {
    "upload_files": "may not upload files: articles appear without pictures",
    "unfiltered_html": "lacks unfiltered_html: articles appear without JSON-LD",
    "edit_published_posts": "may not edit published posts: corrections are refused",
    "delete_published_posts": "may not delete published posts: withdrawals are refused",
    "manage_categories": "may not make categories: only those that exist are used",
}
_DRAFT = json.dumps({"title": "CiteLoop connection test", "content": "May be deleted.", "status": "draft"}).encode()
_REDIRECTED = range(300, 400)


async def check_wordpress(rest: Rest, base_url: str, patience: Patience) -> SiteReport:
    """Reads the index and the account, then makes and deletes a draft: some firewalls let only reading pass."""
    problems: list[str] = []
    notes: list[str] = []
    try:
        index = await rest.ask(Ask("GET", "/", {}), patience, wordpress_json)
        _read_index(index, base_url, problems, notes)
        account = await rest.ask(Ask("GET", "/wp/v2/users/me", {"context": "edit"}), patience, wordpress_json)
        _read_account(account, problems, notes)
        if not problems:
            await _try_draft(rest, patience)
    except ChannelError as error:
        problems.append(_in_words(error, base_url))
    if rest.plain_permalinks:
        notes.append("plain permalinks: the REST API is reached by ?rest_route=; readable addresses are better cited")
    return SiteReport(problems=tuple(problems), notes=tuple(notes))


def _read_index(index: JsonValue, base_url: str, problems: list[str], notes: list[str]) -> None:
    if "wp/v2" not in [one for one in items_at(index, "namespaces") if isinstance(one, str)]:
        problems.append("the REST API answers without wp/v2: a plugin switches it off")
    if not at(index, "authentication", "application-passwords"):
        problems.append(
            "application passwords are switched off: they need https (or WP_ENVIRONMENT_TYPE local), "
            "and no plugin that forbids them"
        )
    home = text_at(index, "url")
    if home and urlsplit(home)[:2] != urlsplit(base_url)[:2]:
        notes.append(f"the site calls itself {home}: use that as base_url")


def _read_account(account: JsonValue, problems: list[str], notes: list[str]) -> None:
    for capability, words in _NEEDED.items():
        if at(account, "capabilities", capability) is not True:
            problems.append(f"the account may not {words}: give it the role Author or Editor")
    for capability, words in _WELCOME.items():
        if at(account, "capabilities", capability) is not True:
            notes.append(f"the account {words}")


async def _try_draft(rest: Rest, patience: Patience) -> None:
    headers = {"Content-Type": "application/json"}
    draft = await rest.ask(Ask("POST", "/wp/v2/posts", {}, _DRAFT, headers), patience, created)
    route = f"/wp/v2/posts/{text_at(draft, 'id')}"
    await rest.ask(Ask("DELETE", route, {"force": "true"}), patience, wordpress_json)


def _in_words(error: ChannelError, base_url: str) -> str:
    if error.status in _REDIRECTED and base_url.startswith("http://") and "https://" in error.message:
        return f"the site redirects http to https, which turns a POST into a GET: write {base_url} with https://"
    return error.message
