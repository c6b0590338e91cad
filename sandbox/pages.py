"""Public pages of the sandbox's sites: plain HTML that says where it comes from."""

from html import escape

from starlette.responses import HTMLResponse

NOTICE = "This page stands on a CiteLoop sandbox site and is simulated. 本页面位于 CiteLoop 沙箱站点，内容为模拟。"


def page(*, title: str, content: str, locale: str = "en", canonical: str = "", excerpt: str = "") -> HTMLResponse:
    """`title` and `content` are HTML already; `excerpt` is text."""
    head = [f"<title>{title}</title>", '<meta charset="utf-8">']
    if canonical:
        head.append(f'<link rel="canonical" href="{escape(canonical)}">')
    if excerpt:
        head.append(f'<meta name="description" content="{escape(excerpt)}">')
    return HTMLResponse(
        f'<!DOCTYPE html>\n<html lang="{escape(locale)}">\n<head>{"".join(head)}</head>\n<body>\n'
        f"<article>\n<h1>{title}</h1>\n{content}\n</article>\n<footer>{NOTICE}</footer>\n</body>\n</html>\n"
    )


def challenge() -> HTMLResponse:
    """What a firewall answers instead of the site."""
    return HTMLResponse(
        '<!DOCTYPE HTML PUBLIC "-//IETF//DTD HTML 2.0//EN"><html><head><title>403 Forbidden</title></head><body>'
        "<h1>Forbidden</h1><p>You don't have permission to access this resource on this server.</p></body></html>",
        status_code=403,
    )


def missing() -> HTMLResponse:
    return HTMLResponse(
        "<!DOCTYPE html>\n<html><head><title>Page not found</title></head><body><h1>Page not found</h1>"
        "</body></html>\n",
        status_code=404,
    )


def listing(title: str, links: list[tuple[str, str]]) -> HTMLResponse:
    lines = "".join(f'<li><a href="{escape(url)}">{text}</a></li>' for url, text in links)
    return page(title=title, content=f"<ul>{lines}</ul>")
