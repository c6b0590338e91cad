"""The document is enough to make a typed client from, and that client works."""

import asyncio
import importlib.util
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from starter.api.app import assemble
from tests.starter.api.conftest import Door, serving
from tests.starter.api.generator import generate

USE = """
import generated

def right(client: generated.Client) -> str | None:
    client.put_brand("milvus", {"entity": {"name": "Milvus"}, "homepage": "https://milvus.io", "facts": []})
    accepted = client.submit_campaign({"name": "n", "brand": "milvus", "keywords": [{"keyword": "k"}]})
    page = client.list_articles(campaign=accepted["id"], state="parked", limit=5)
    return page["next"] or page["items"][0]["keyword"]
"""
WRONG = """
import generated

def wrong(client: generated.Client) -> int:
    client.submit_campaign({"name": "n", "keywords": [{"keyword": "k"}]})
    return client.list_articles(state="lost")["items"][0]["keyword"]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("client")
    (made / "generated.py").write_text(generate(assemble().openapi()))
    return made


async def checked(folder: Path, source: str) -> str:
    """What mypy --strict finds in `source` and in the client itself."""
    (folder / "use.py").write_text(source)
    (folder / "mypy.ini").write_text("[mypy]\nstrict = true\n")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "mypy", "--cache-dir", str(folder / "cache"), "use.py", "generated.py",
        cwd=folder, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, _ = await process.communicate()
    return out.decode()


async def test_the_generated_client_is_typed_and_finds_mistakes(folder: Path) -> None:
    assert "Success" in await checked(folder, USE)
    found = await checked(folder, WRONG)
    assert 'Missing key "brand" for TypedDict "CampaignSubmission"' in found
    assert 'Argument "state" to "list_articles"' in found
    assert 'Incompatible return value type (got "str", expected "int")' in found


async def test_the_generated_client_submits_and_reads(folder: Path, door: Door) -> None:
    spec = importlib.util.spec_from_file_location("generated", folder / "generated.py")
    assert spec is not None
    assert spec.loader is not None
    generated: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generated)

    def use(url: str) -> Any:
        with httpx.Client(base_url=url, headers=door.http.headers, trust_env=False) as http:
            client = generated.Client(http)
            fact = {"id": "f", "text": "It is.", "source_url": "https://example.com/f"}
            client.put_brand("acme", {"entity": {"name": "Acme"}, "homepage": "https://e.com", "facts": [fact]})
            client.put_rivals("acme", [{"name": "Other"}])
            accepted = client.submit_campaign({"name": "n", "brand": "acme", "keywords": [{"keyword": "typed"}]})
            page = client.list_articles(campaign=accepted["id"], limit=5)
            return client.show_brand("acme"), client.show_article(page["items"][0]["id"]), page

    async with serving(door.app) as url:
        brand, article, page = await asyncio.to_thread(use, url)
    assert (brand["brand"]["rivals"][0]["name"], article["keyword"], page["next"]) == ("Other", "typed", None)
    assert page["items"] == [article]
