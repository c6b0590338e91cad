"""Bad input with everything running: one line that names field and remedy, a true exit code, nothing half-done."""

import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from citeloop.store.statements import text
from starter.connecting import tenant_of
from tests.installation import Installation
from tests.starter.cli import BRAND, KEYWORDS, Ran, citeloop

TWO_MEGABYTES = 2_000_000

BRAND_TEXT = Path(BRAND).read_text()
TENANT = "a tenant of bad input"
TABLES = ("brands", "manifests", "campaigns", "articles")
"""What a submission writes to."""


@pytest.fixture
async def nothing_done(installation: Installation) -> AsyncIterator[None]:
    """Fails when a row or a workflow is there afterwards."""
    yield
    tenant = await tenant_of(installation.database, TENANT)
    async with installation.database.tenant(tenant.id) as scope:
        rows = [(await scope.sql.execute(text(f"SELECT count(*) FROM {table}"))).scalar_one() for table in TABLES]
    started = await installation.client.count_workflows(f"CiteLoopTenant = '{tenant.id}'")
    assert (rows, started.count) == ([0] * len(TABLES), 0)


async def run(home: Path, *arguments: str, **environ: str) -> Ran:
    return await citeloop(*arguments, home=home, environ={"CITELOOP_TENANT": TENANT, **environ})


def refused(ran: Ran, *named: str, code: int = 2) -> None:
    """`named`: the field, the problem and the remedy, in that order."""
    assert ran.code == code, ran
    assert ran.out == ""
    assert re.fullmatch(r"error: [^\n]+\n", ran.err), ran.err
    assert len(ran.err) < 400
    places = [ran.err.find(part) for part in named]
    assert -1 not in places, (named, ran.err)
    assert places == sorted(places), ran.err


Write = Callable[[str, str], str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(name: str, content: str) -> str:
        file = tmp_path / name
        file.write_text(content)
        return str(file)

    return written


@pytest.mark.usefixtures("nothing_done")
class TestKeywords:
    async def test_an_empty_keyword(self, installation: Installation) -> None:
        ran = await run(installation.home, "submit", " ", "--brand", BRAND)
        refused(ran, "keyword", "is empty", "write the words people ask the engines")

    async def test_an_empty_keyword_in_a_list(self, installation: Installation, write: Write) -> None:
        keywords = write("k.csv", "keyword,locale\nvector database,en\n ,en\nlast,en\n")
        ran = await run(installation.home, "campaign", BRAND, keywords)
        refused(ran, "k.csv line 3, field keyword", "is empty", "remove the line")

    async def test_a_duplicate_keyword(self, installation: Installation, write: Write) -> None:
        keywords = write("k.csv", "keyword,locale\nVector  Database,en\nother,en\nｖector database,en\n")
        ran = await run(installation.home, "campaign", BRAND, keywords)
        refused(ran, "k.csv line 4, field keyword", "repeats line 2", "remove one of the two")

    async def test_a_keyword_of_two_megabytes(self, installation: Installation, write: Write) -> None:
        keywords = write("k.csv", f"keyword\n{'x' * TWO_MEGABYTES}\n")
        ran = await run(installation.home, "campaign", BRAND, keywords)
        refused(ran, "k.csv line 2", "characters", "200 are allowed")

    async def test_no_keyword_at_all(self, installation: Installation, write: Write) -> None:
        ran = await run(installation.home, "campaign", BRAND, write("k.csv", "keyword,locale\n"))
        refused(ran, "k.csv", "has no keywords", "write one keyword a line")


@pytest.mark.usefixtures("nothing_done")
class TestBrand:
    async def test_a_brand_without_facts(self, installation: Installation, write: Write) -> None:
        brand = write("brand.toml", BRAND_TEXT.partition("[[facts]]")[0])
        ran = await run(installation.home, "submit", "x", "--brand", brand)
        refused(ran, "brand.toml, field facts", "the brand has no facts", "source_url")

    async def test_a_malformed_line(self, installation: Installation, write: Write) -> None:
        brand = write("brand.toml", 'name = "Acme"\naliases = ["Acme"\n[[facts]]\n')
        ran = await run(installation.home, "submit", "x", "--brand", brand)
        refused(ran, "brand.toml line 3", "is no TOML", "correct the line")

    async def test_a_text_of_two_megabytes(self, installation: Installation, write: Write) -> None:
        long = re.sub(r'(?m)^description = ".*"$', f'description = "{"x" * TWO_MEGABYTES}"', BRAND_TEXT)
        ran = await run(installation.home, "campaign", write("brand.toml", long), KEYWORDS)
        refused(ran, "description", "characters", "allowed")

    async def test_a_file_that_is_no_text(self, installation: Installation, tmp_path: Path) -> None:
        file = tmp_path / "brand.toml"
        file.write_bytes(b"\x89PNG\r\n\x1a\n\x00\xff\xfe")
        ran = await run(installation.home, "submit", "x", "--brand", str(file))
        refused(ran, "brand.toml line 1", "is not UTF-8 text", "save it as UTF-8")


@pytest.mark.usefixtures("nothing_done")
class TestChannels:
    async def test_an_unknown_channel(self, installation: Installation) -> None:
        ran = await run(installation.home, "submit", "x", "--brand", BRAND, "--writers", "deepseak")
        refused(ran, "writers", "there is no channel 'deepseak'", "did you mean deepseek?")

    async def test_an_unknown_site_and_an_unknown_engine(self, installation: Installation) -> None:
        site = await run(installation.home, "submit", "x", "--brand", BRAND, "--sites", "blogg")
        engine = await run(installation.home, "submit", "x", "--brand", BRAND, "--engines", "google")
        refused(site, "sites", "there is no site 'blogg'", "did you mean blog?")
        refused(engine, "engines", "there is no channel 'google'", "perplexity")

    async def test_a_malformed_line_in_the_channels_file(self, installation: Installation, write: Write) -> None:
        file = write("channels.toml", '[channels.deepseek]\nroles = ["write"]\ndialect = openai_chat\n')
        ran = await run(installation.home, "--channels", file, "submit", "x", "--brand", BRAND)
        refused(ran, "channels.toml:3", "Invalid value", "correct the line")

    async def test_a_misspelt_field_in_the_channels_file(self, installation: Installation, write: Write) -> None:
        known = installation.stack.parts.channels.read_text()
        file = write("channels.toml", known.replace("concurrency = 8", "concurency = 8", 1))
        ran = await run(installation.home, "--channels", file, "submit", "x", "--brand", BRAND)
        refused(ran, "channels.toml:", "channels.deepseek.concurency", "unknown key", "did you mean concurrency?")

    async def test_a_wrong_key(self, installation: Installation) -> None:
        environ = {"SANDBOX_KEY": "sk-wrong-and-secret"}
        ran = await run(installation.home, "submit", "x", "--brand", BRAND, **environ)
        refused(ran, "channel ", "refuses the key (HTTP 401)", "check SANDBOX_KEY")
        assert "sk-wrong" not in ran.err

    async def test_a_wrong_key_for_a_campaign(self, installation: Installation) -> None:
        environ = {"SANDBOX_KEY": "sk-wrong-and-secret"}
        ran = await run(installation.home, "campaign", BRAND, KEYWORDS, **environ)
        refused(ran, "channel ", "refuses the key (HTTP 401)", "check SANDBOX_KEY")


@pytest.mark.usefixtures("nothing_done")
class TestNoServer:
    async def test_nothing_is_running_here(self, installation: Installation, tmp_path: Path) -> None:
        ran = await run(tmp_path, "submit", "x", "--brand", BRAND)
        refused(ran, "temporal", "no Temporal server is known in", "run `citeloop up`", code=3)

    async def test_the_database_is_up_and_temporal_is_not(self, installation: Installation, tmp_path: Path) -> None:
        environ = {"CITELOOP_DATABASE_URL": installation.stack.database_url, "TEMPORAL_ADDRESS": "127.0.0.1:9"}
        ran = await run(tmp_path, "campaign", BRAND, KEYWORDS, **environ)
        refused(ran, "temporal", "no Temporal server at 127.0.0.1:9", "set TEMPORAL_ADDRESS", code=3)

    async def test_temporal_is_up_and_the_database_is_not(self, installation: Installation, tmp_path: Path) -> None:
        environ = {
            "TEMPORAL_ADDRESS": installation.stack.temporal_address,
            "CITELOOP_DATABASE_URL": "postgresql://citeloop_app:hidden@127.0.0.1:9/citeloop",
            "CITELOOP_CHANNELS": str(installation.stack.parts.channels),
            "CITELOOP_SANDBOX_URL": str(installation.stack.sandbox_url),
        }
        ran = await run(tmp_path, "submit", "x", "--brand", BRAND, "--no-check", **environ)
        refused(ran, "database", "does not answer", "set CITELOOP_DATABASE_URL", code=3)
        assert "hidden" not in ran.err
