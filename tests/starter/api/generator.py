"""The smallest typed client that an OpenAPI document gives: a TypedDict a schema, a method an operation."""

import keyword
from collections.abc import Iterator
from typing import Any

_PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_HEAD = '''"""Generated from openapi.json."""

from typing import Any, Literal, NotRequired, TypedDict, cast

import httpx


class Client:
    def __init__(self, http: httpx.Client) -> None:
        self._http = http

    def _call(self, method: str, path: str, query: dict[str, Any], body: object = None) -> Any:
        query = {name: value for name, value in query.items() if value is not None}
        json = {} if body is None else {"json": body}
        answer = self._http.request(method, path, params=query, **json)  # type: ignore[arg-type]
        answer.raise_for_status()
        return answer.json()
'''


def generate(document: dict[str, Any]) -> str:
    """Python source that mypy --strict accepts. Headers and streams are left out."""
    schemas = document["components"]["schemas"]
    methods = [
        line
        for path, item in document["paths"].items()
        for method, operation in item.items()
        for line in _method(method, path, operation)
    ]
    types = [line for name, schema in schemas.items() for line in _type(name, schema)]
    return "\n".join([_HEAD, *methods, "", *types, ""])


def _type(name: str, schema: dict[str, Any]) -> Iterator[str]:
    if "properties" not in schema:
        yield f"{name} = {written(schema)}"
        return
    required = set(schema.get("required", ()))
    fields = ", ".join(
        f'"{field}": {_field(each, needed=field in required)}' for field, each in schema["properties"].items()
    )
    yield f'{name} = TypedDict("{name}", {{{fields}}})'


def _field(schema: dict[str, Any], *, needed: bool) -> str:
    kind = f'"{written(schema)}"'
    return kind if needed else f"NotRequired[{kind}]"


def written(schema: dict[str, Any]) -> str:
    """The Python type of a schema."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " | ".join(written(one) for one in schema["anyOf"])
    if values := [schema["const"]] if "const" in schema else schema.get("enum"):
        return f"Literal[{', '.join(repr(value) for value in values)}]"
    if schema.get("type") == "array":
        return f"list[{written(schema['items'])}]"
    if schema.get("type") == "object":
        return f"dict[str, {written(schema['additionalProperties'])}]"
    return _PLAIN[schema["type"]] if "type" in schema else "Any"


def _method(method: str, path: str, operation: dict[str, Any]) -> Iterator[str]:
    good = next(answer for status, answer in operation["responses"].items() if status.startswith("2"))
    content = good.get("content", {}).get("application/json", {})
    if "schema" not in content:
        return
    result = written(content["schema"])
    parts = ["self", *(f"{_safe(one['name'])}: str" for one in operation.get("parameters", ()) if one["in"] == "path")]
    query = []
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    if body is not None:
        optional = "" if operation["requestBody"].get("required") else " | None"
        parts.append(f'body: "{written(body)}{optional}"' + (" = None" if optional else ""))
    for one in operation.get("parameters", ()):
        if one["in"] == "query":
            query.append(one["name"])
            parts.append(f'{_safe(one["name"])}: "{written(one["schema"])} | None" = None')
    given = ", ".join(f'"{name}": {_safe(name)}' for name in query)
    yield f'    def {operation["operationId"]}({", ".join(parts)}) -> "{result}":'
    yield (
        f'        return cast("{result}", self._call("{method.upper()}", f"{path}", {{{given}}}'
        f"{', body' if body is not None else ''}))"
    )
    yield ""


def _safe(name: str) -> str:
    return f"{name}_" if keyword.iskeyword(name) else name
