"""Providers as data: what a channel gets from its provider's row, what it must say itself, and what a probe tells."""

import re
from pathlib import Path

import httpx
import pytest

from citeloop.channels import engines, illustrators, writers
from citeloop.channels.catalog import CatalogError, load
from citeloop.channels.channel_entries import DIALECTS
from citeloop.channels.outside import Outside
from citeloop.channels.probing import Probe
from citeloop.channels.providers import PROVIDERS, search_fields
from citeloop.models.channel import Catalog, ChannelSpec, Price, Role, Trial

EXAMPLE = Path(__file__).parents[2] / "examples" / "channels.toml"
GUIDE = Path(__file__).parents[2] / "docs" / "adding-a-channel.md"


def loaded(tmp_path: Path, text: str) -> Catalog:
    path = tmp_path / "channels.toml"
    path.write_text(text, encoding="utf-8")
    return load(path, {})


def one(tmp_path: Path, *lines: str) -> ChannelSpec:
    (channel,) = loaded(tmp_path, "\n".join(["[channels.c]", *lines])).channels
    return channel


KEY = "secret-key-1"


async def probed(channel: ChannelSpec, response: httpx.Response) -> tuple[Probe, httpx.Request]:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return response

    catalog = Catalog(channels=(channel,))
    environ = {channel.key_env: KEY} if channel.key_env else {}
    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as http:
        return await Outside(catalog, environ, http).probe(channel.name), seen[0]


def test_every_row_is_of_a_dialect_that_exists_and_names_its_source() -> None:
    dialects = {*writers.DIALECTS, *engines.DIALECTS, *illustrators.DIALECTS}
    assert {row.dialect for row in PROVIDERS} == dialects
    assert all(row.source and re.fullmatch(r"https://\S+[^/]", row.base_url) for row in PROVIDERS)
    assert len({(row.name, row.dialect) for row in PROVIDERS}) == len(PROVIDERS)


def test_no_row_claims_more_than_was_tried() -> None:
    assert {row.tested for row in PROVIDERS} <= {Trial.DOCUMENTED_SHAPE, Trial.GUESS}


def test_a_named_provider_brings_address_key_quirks_prices_and_label(tmp_path: Path) -> None:
    channel = one(
        tmp_path, 'provider = "deepseek"', 'roles = ["write"]', 'dialect = "openai_chat"', 'model = "deepseek-flash"'
    )
    assert channel.base_url == "https://api.deepseek.com/v1"
    assert (channel.key_env, channel.provider) == ("DEEPSEEK_API_KEY", "deepseek")
    assert channel.tested_against is Trial.DOCUMENTED_SHAPE
    assert channel.price is None
    assert channel.tariffs[0].price.cached == 40_000


def test_what_the_channel_says_itself_counts_more(tmp_path: Path) -> None:
    channel = one(
        tmp_path, 'provider = "deepseek"', 'roles = ["write"]', 'dialect = "openai_chat"', 'model = "deepseek-flash"',
        'base_url = "https://proxy.example/v1"', 'key_env = "PROXY_KEY"',
        "price = { input = 1.5, cached = 0.1, search = 2 }", "calls_per_dispatch = 3",
    )  # fmt: skip
    assert (channel.base_url, channel.key_env) == ("https://proxy.example/v1", "PROXY_KEY")
    assert channel.price == Price(input=1_500_000, cached=100_000, search=2_000_000)
    assert channel.calls_per_dispatch == 3


def test_a_provider_is_recognised_by_its_host(tmp_path: Path) -> None:
    channel = one(
        tmp_path, 'roles = ["answer"]', 'dialect = "openai_chat"', 'model = "glm-5.3"',
        'base_url = "https://open.bigmodel.cn/api/paas/v4"',
    )  # fmt: skip
    assert (channel.provider, channel.tested_against) == ("zhipu", Trial.DOCUMENTED_SHAPE)
    assert channel.key_env is None
    assert search_fields(channel.provider, channel.dialect)["tools"]


def test_an_unknown_provider_of_the_openai_shape_needs_no_row(tmp_path: Path) -> None:
    channel = one(
        tmp_path, 'roles = ["write"]', 'dialect = "openai_chat"', 'model = "any"', 'base_url = "https://new.example/v1"'
    )
    assert (channel.provider, channel.tested_against, channel.tariffs) == ("", Trial.GUESS, ())


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (('provider = "deepsek"', 'dialect = "openai_chat"'), "did you mean deepseek"),
        (('provider = "deepseek"', 'dialect = "gemini"'), "set dialect to openai_chat or anthropic_messages"),
        (('dialect = "openai_chat"',), "base_url is missing"),
        (('dialect = "gemini"', "calls_per_dispatch = 0", 'base_url = "https://x.example"'), "from 1 to 20"),
    ],
)
def test_a_mistake_is_named_with_its_remedy(tmp_path: Path, lines: tuple[str, ...], words: str) -> None:
    with pytest.raises(CatalogError, match=words):
        one(tmp_path, 'roles = ["write"]', 'model = "m"', *lines)


def test_the_example_file_is_valid_and_every_channel_of_it_has_a_row() -> None:
    catalog = load(EXAMPLE, {})
    assert {Role.WRITE, Role.ILLUSTRATE, Role.ANSWER} == {role for one in catalog.channels for role in one.roles}
    assert all(one.provider for one in catalog.channels)
    assert all(one.price or one.tariffs or one.roles == {Role.ILLUSTRATE} for one in catalog.channels)


def test_the_guides_toml_is_valid(tmp_path: Path) -> None:
    blocks = re.findall(r"```toml\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        assert loaded(tmp_path, block).channels


@pytest.mark.parametrize(
    ("dialect", "path", "header", "value"),
    [
        ("openai_chat", "/v1/models", "authorization", "Bearer secret-key-1"),
        ("anthropic_messages", "/v1/models", "x-api-key", "secret-key-1"),
        ("gemini", "/v1/models", "x-goog-api-key", "secret-key-1"),
        ("unsplash", "/v1/photos", "authorization", "Client-ID secret-key-1"),
        ("pexels", "/v1/curated", "authorization", "secret-key-1"),
    ],
)
async def test_a_probe_shows_the_key_as_its_dialect_does(dialect: str, path: str, header: str, value: str) -> None:
    role = next(role for role, names in DIALECTS.items() if dialect in names)
    channel = ChannelSpec(
        name="c", roles=frozenset({role}), dialect=dialect, base_url="https://x.example/v1", model="m", key_env="K"
    )
    probe, request = await probed(channel, httpx.Response(200, json={"data": []}))
    assert probe.ok
    assert (request.url.path, request.headers[header]) == (path, value)


def deepseek(tmp_path: Path, model: str = "deepseek-flash") -> ChannelSpec:
    return one(tmp_path, 'provider = "deepseek"', 'roles = ["write"]', 'dialect = "openai_chat"', f'model = "{model}"')


LISTED = httpx.Response(200, json={"data": [{"id": "deepseek-flash"}, {"id": "deepseek-v4-pro"}]})


async def test_a_probe_finds_the_model_and_says_how_far_the_entry_was_tried(tmp_path: Path) -> None:
    probe, _ = await probed(deepseek(tmp_path), LISTED)
    assert probe.ok
    assert probe.said == "https://api.deepseek.com/v1 answers and takes the key; it knows deepseek-flash"
    assert probe.tested_against is Trial.DOCUMENTED_SHAPE


async def test_a_model_that_a_complete_list_lacks_is_a_failure_in_words(tmp_path: Path) -> None:
    probe, _ = await probed(deepseek(tmp_path, "deepseek-chat"), LISTED)
    assert not probe.ok
    assert "deepseek-chat is not among the models it lists; set model to one of them" in probe.problem


async def test_a_partial_list_makes_a_note_and_so_does_a_missing_price(tmp_path: Path) -> None:
    channel = one(
        tmp_path, 'roles = ["write"]', 'dialect = "openai_chat"', 'model = "any"', 'base_url = "https://new.example/v1"'
    )
    probe, _ = await probed(channel, LISTED)
    assert probe.ok
    assert probe.notes[0].startswith("no price is known for any")
    assert probe.notes[1] == "any is not among the models it lists"


async def test_where_there_is_nothing_to_ask_the_probe_says_so(tmp_path: Path) -> None:
    probe, _ = await probed(deepseek(tmp_path), httpx.Response(404))
    assert probe.ok
    assert probe.said.endswith("it offers nothing to try the key with")


async def test_a_refused_key_names_its_variable_and_not_itself(tmp_path: Path) -> None:
    refusal = httpx.Response(401, json={"error": {"message": "bad key secret-key-1"}})
    probe, _ = await probed(deepseek(tmp_path), refusal)
    assert not probe.ok
    assert "check DEEPSEEK_API_KEY" in probe.problem
    assert "secret-key-1" not in probe.problem
