"""The OpenAPI document: valid, complete, and every example is what its schema says."""

import re
from html.parser import HTMLParser
from typing import Any

import jsonschema_rs
import pytest
from fastapi import FastAPI

from starter.api.app import assemble
from tests.starter.api.conftest import Door

METHODS = {"get", "post", "put", "patch", "delete"}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return assemble().openapi()


def operations(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (method, path, operation)
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if method in METHODS
    ]


def contents(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    """(operation, media type, content) of every body, asked for or answered."""
    found: list[tuple[str, str, dict[str, Any]]] = []
    for _, _, operation in operations(document):
        bodies = [operation.get("requestBody", {}), *operation["responses"].values()]
        for one in bodies:
            found.extend(
                (operation["operationId"], media, content) for media, content in one.get("content", {}).items()
            )
    return found


def test_the_document_is_valid_openapi(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1")
    for name, schema in document["components"]["schemas"].items():
        assert jsonschema_rs.meta.is_valid(schema), name
    for reference in re.findall(r"'\$ref': '([^']+)'", str(document)):
        assert reference.removeprefix("#/components/schemas/") in document["components"]["schemas"]
    names = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(set(names)) == len(names)


def test_every_body_has_an_example_that_its_schema_accepts(document: dict[str, Any]) -> None:
    seen = 0
    for operation, media, content in contents(document):
        assert "example" in content, (operation, media)
        schema = {**content.get("schema", {"type": "string"}), "components": document["components"]}
        errors = [str(error) for error in jsonschema_rs.validator_for(schema).iter_errors(content["example"])]
        assert errors == [], (operation, media)
        seen += 1
    assert seen > 100


def test_everything_under_v1_but_callbacks_needs_a_key_and_says_what_happens_without(document: dict[str, Any]) -> None:
    for method, path, operation in operations(document):
        guarded = path.startswith("/v1/") and not path.startswith("/v1/callbacks/")
        assert bool(operation.get("security")) is guarded, path
        if guarded:
            assert {"401", "422", "503"} <= set(operation["responses"]), path
            assert ("403" in operation["responses"]) is (method != "get"), path


def test_every_operation_is_described_in_words(document: dict[str, Any]) -> None:
    for _, path, operation in operations(document):
        assert operation["summary"], path
        assert operation["tags"], path
        assert not operation["summary"].endswith("."), path


class Page(HTMLParser):
    """What a page holds that a browser would fetch or run, and where its links lead."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.ids: set[str] = set()
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        if tag in {"script", "link", "img", "iframe"} or "src" in known:
            self.fetched.append(tag)
        if known.get("id"):
            self.ids.add(str(known["id"]))


async def test_the_docs_page_needs_nothing_from_elsewhere(door: Door, document: dict[str, Any]) -> None:
    answer = await door.http.get("/docs", headers={"Authorization": ""})
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    page = Page(answer.text)
    assert page.fetched == []
    assert "http" not in re.sub(r"<pre>.*?</pre>", "", answer.text, flags=re.DOTALL)
    assert {operation["operationId"] for _, _, operation in operations(document)} <= page.ids


async def test_the_type_of_a_problem_leads_to_its_paragraph(door: Door) -> None:
    page = Page((await door.http.get("/docs")).text)
    told = (await door.http.get("/v1/articles/x")).json()
    where, _, fragment = told["type"].partition("#")
    assert (where, fragment in page.ids) == ("/docs", True)


async def test_the_document_is_served_without_a_key(door: Door, app: FastAPI) -> None:
    answer = await door.http.get("/openapi.json", headers={"Authorization": ""})
    assert answer.json() == app.openapi()
