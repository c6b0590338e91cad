"""Whatever is sent, the API answers as its document says: no 5xx, no undocumented status, shape or type."""

import asyncio
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from temporalio.client import Client

from tests.starter.api.conftest import Door, serving
from tests.starter.api.test_isolation import furnished

SECONDS = 30
PATIENCE = timedelta(milliseconds=500)
"""For Temporal's answer to a signal, on a machine that is busy."""

SHORT = timedelta(milliseconds=100)
"""No worker answers here, and a stream that ends is one that can be judged."""
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "response_headers_conformance",
    "ignored_auth",
    "unsupported_method",
    "allow_header_conformance",
)


@pytest.fixture
async def url(door: Door, client: Client) -> AsyncIterator[str]:
    """With a real Temporal, so that no answer may be a 503."""
    there = door.app.state.wiring
    door.app.state.wiring = replace(there, client=client, patience=PATIENCE, stream=SHORT)
    async with serving(door.app) as address:
        yield address
    door.app.state.wiring = there


async def _known_ids(door: Door, folder: Path) -> None:
    """A configuration by which the paths lead to something."""
    campaign_id, article_id, draft_id = await furnished(door)
    known = {
        "path.campaign_id": campaign_id,
        "path.article_id": article_id,
        "path.draft_id": draft_id,
        "path.name": "deepseek",
        "path.brand": "milvus",
        "path.site": "blog",
    }
    lines = [f'"{name}" = "{value}"' for name, value in known.items()]
    (folder / "schemathesis.toml").write_text("\n".join(["[parameters]", *lines, ""]))


@pytest.mark.timeout(180)
async def test_the_running_api_keeps_what_its_document_promises(door: Door, url: str, tmp_path: Path) -> None:
    await _known_ids(door, tmp_path)
    process = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).parent / "schemathesis"),
        "run", f"{url}/openapi.json", "--header", f"Authorization: {door.http.headers['authorization']}",
        "--checks", ",".join(CHECKS), "--phases", "examples,coverage,fuzzing", "--max-time", str(SECONDS),
        "--request-timeout", "20", "--seed", "1", "--no-color",
        cwd=tmp_path, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    out, _ = await process.communicate()
    assert process.returncode == 0, out.decode()[-8000:]
