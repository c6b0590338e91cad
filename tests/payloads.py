"""What stands in a workflow's history, in plain text: payloads are base64 in its JSON."""

import base64
import json
from typing import Any

from temporalio.client import WorkflowHandle


async def history_text(handle: WorkflowHandle[Any, Any]) -> str:
    """The JSON of the history, and every payload of it decoded behind."""
    written = (await handle.fetch_history()).to_json()
    return "\n".join([written, *_payloads(json.loads(written))])


def _payloads(value: Any) -> list[str]:
    if isinstance(value, list):
        return [text for one in value for text in _payloads(one)]
    if not isinstance(value, dict):
        return []
    found = [text for one in value.values() for text in _payloads(one)]
    if isinstance(value.get("data"), str):
        found.append(base64.b64decode(value["data"]).decode("utf-8", "replace"))
    return found
