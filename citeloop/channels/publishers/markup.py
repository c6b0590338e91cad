"""What dialects put around an article's HTML: its marker, its picture with alt text and credit, its JSON-LD."""

import html
import json
import re

from citeloop.channels.ports import Post

_RISKY = re.compile(r"[<>&\u2028\u2029]")


def span(marker: str) -> str:
    """An empty element that carries our marker; sanitisers keep data attributes."""
    return f'<span data-citeloop="{html.escape(marker, quote=True)}"></span>'


def figure(source: str, post: Post) -> str:
    """The article's picture at `source`; empty without one."""
    if not source or post.picture is None:
        return ""
    credit = f"<figcaption>{html.escape(post.picture.credit)}</figcaption>" if post.picture.credit else ""
    size = f' width="{post.picture.width}" height="{post.picture.height}"' if post.picture.width else ""
    return f'<figure><img src="{html.escape(source)}" alt="{html.escape(post.picture_alt)}"{size}>{credit}</figure>\n'


def json_ld(post: Post, *, url: str = "", image: str = "") -> str:
    """The script element, with the page's own address and picture where they are known; empty without JSON-LD."""
    if not post.json_ld:
        return ""
    return f'<script type="application/ld+json">{_placed(post.json_ld, url, image)}</script>'


def _placed(text: str, url: str, image: str) -> str:
    graph = json.loads(text)
    for node in graph.get("@graph", []):
        if node.get("@type") == "Article":
            if url:
                node["mainEntityOfPage"] = {"@type": "WebPage", "@id": url}
            if image:
                node["image"] = [image]
    made = json.dumps(graph, ensure_ascii=False)
    return _RISKY.sub(lambda match: f"\\u{ord(match.group()):04x}", made)


def extension(media_type: str) -> str:
    return "png" if media_type == "image/png" else "jpg"
