"""/docs: the OpenAPI document as a page that needs nothing from anywhere: no script, no font, no style of others."""

import json
from collections.abc import Iterator
from html import escape
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse

from starter.api.problems import KINDS

router = APIRouter(include_in_schema=False)

_METHODS = ("get", "post", "put", "patch", "delete")
_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;color:#1b1f24;background:#fff}
code,pre{font:13px/1.45 ui-monospace,monospace}pre{background:#f5f6f8;padding:.7rem;overflow:auto;border-radius:4px}
h2{margin-top:2.2rem;border-bottom:1px solid #d8dbe0}summary{cursor:pointer;padding:.25rem 0}
.m{display:inline-block;min-width:3.2rem;font-weight:600}.get{color:#0a5fa8}.post{color:#1c7a3d}.put,.patch{color:#8a5a00}
table{border-collapse:collapse}td,th{text-align:left;padding:.15rem .8rem .15rem 0;vertical-align:top}
@media(prefers-color-scheme:dark){body{color:#d9dde3;background:#14171b}pre{background:#1e2329}h2{border-color:#3a4048}
.get{color:#6bb3f0}.post{color:#6fd08c}.put,.patch{color:#e0b050}a{color:#8ab4f8}}
"""


@router.get("/docs")
async def docs(request: Request) -> HTMLResponse:
    app = request.app
    if not hasattr(app.state, "docs_page"):
        app.state.docs_page = page(app.openapi())
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return HTMLResponse(app.state.docs_page, headers={"Content-Security-Policy": policy})


def page(document: dict[str, Any]) -> str:
    """One self-contained HTML page of an OpenAPI 3.1 document."""
    return "".join(_lines(document))


def _lines(document: dict[str, Any]) -> Iterator[str]:
    info = document["info"]
    title = escape(f"{info['title']} API {info['version']}")
    yield f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
    yield f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style><h1>{title}</h1>'
    yield f'<p>{escape(info.get("description", ""))} Machines read <a href="/openapi.json">/openapi.json</a>.</p>'
    for tag, operations in _by_tag(document).items():
        yield f'<h2 id="{escape(tag.replace(" ", "-"))}">{escape(tag)}</h2>'
        for method, path, operation in operations:
            yield from _operation(method, path, operation)
    yield "<h2>Problems</h2><p>Every error is <code>application/problem+json</code> (RFC 9457).</p><table>"
    for status, (fragment, what, remedy) in KINDS.items():
        yield f'<tr id="{fragment}"><td>{status}<td>{escape(what)}<td>{escape(remedy)}'
    yield "</table></html>"


def _by_tag(document: dict[str, Any]) -> dict[str, list[tuple[str, str, dict[str, Any]]]]:
    found: dict[str, list[tuple[str, str, dict[str, Any]]]] = {}
    for path, item in document["paths"].items():
        for method in _METHODS:
            if method in item:
                tag = item[method].get("tags", ["other"])[-1]
                found.setdefault(tag, []).append((method, path, item[method]))
    return found


def _operation(method: str, path: str, operation: dict[str, Any]) -> Iterator[str]:
    name = escape(operation["operationId"])
    yield f'<details id="{name}"><summary><span class="m {method}">{method.upper()}</span> <code>{escape(path)}</code>'
    yield f" {escape(operation.get('summary', ''))}</summary><p>{escape(operation.get('description', ''))}</p>"
    parameters = operation.get("parameters", [])
    if parameters:
        yield "<table><tr><th>parameter<th>in<th>values<th>"
        for one in parameters:
            values = escape(_values(one["schema"]))
            yield f"<tr><td><code>{escape(one['name'])}</code>{'' if one.get('required') else '?'}<td>{one['in']}"
            yield f"<td><code>{values}</code><td>{escape(one.get('description', ''))}"
        yield "</table>"
    for media, content in operation.get("requestBody", {}).get("content", {}).items():
        yield f"<p>Body, <code>{escape(media)}</code>:</p>{_example(content)}"
    for status, answer in operation["responses"].items():
        good = status.startswith("2")
        for content in (answer.get("content") or {"": {}}).values():
            yield f"<p>{escape(status)} {escape(answer.get('description', ''))}</p>"
            yield _example(content) if good else ""
    yield "</details>"


def _values(schema: dict[str, Any]) -> str:
    kinds = schema.get("anyOf", [schema])
    shown = [str(kind.get("pattern") or " | ".join(kind.get("enum", [])) or kind.get("type") or _name(kind))
             for kind in kinds if kind.get("type") != "null"]  # fmt: skip
    return " | ".join(shown)


def _name(kind: dict[str, Any]) -> str:
    return str(kind.get("$ref", "")).rpartition("/")[2]


def _example(content: dict[str, Any]) -> str:
    if "example" not in content:
        return ""
    value = content["example"]
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
    return f"<pre>{escape(text)}</pre>"
