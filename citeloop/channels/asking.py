"""Requests as bytes: what the dialects have in common when they ask."""

import json
from collections.abc import Mapping

from pydantic import JsonValue

from citeloop.channels.wire import HttpRequest


def post_json(
    url: str, body: Mapping[str, JsonValue], headers: Mapping[str, str], *, stream: bool = False
) -> HttpRequest:
    """Text that no encoding can carry (lone surrogates) is sent as `?`."""
    accept = "text/event-stream" if stream else "application/json"
    return HttpRequest(
        "POST",
        url,
        {"Content-Type": "application/json", "Accept": accept, **headers},
        json.dumps(body, ensure_ascii=False).encode("utf-8", "replace"),
    )


def get_json(url: str, headers: Mapping[str, str]) -> HttpRequest:
    return HttpRequest("GET", url, {"Accept": "application/json", **headers})


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}
