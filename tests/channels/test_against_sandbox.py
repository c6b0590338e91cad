"""The dialects against the sandbox: another program, written from the providers' side."""

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import httpx
import pytest

from citeloop.channels.catalog import load
from citeloop.channels.errors import ChannelError, Fault
from citeloop.channels.illustrators.card import TitleCard
from citeloop.channels.outside import Outside
from citeloop.channels.ports import Messages, PictureBrief, Post
from tests.channels.settings import call

ROOT = Path(__file__).parents[2]
CHANNELS = """\
allow_private_addresses = true

[channels.deepseek]
roles = ["write"]
dialect = "openai_chat"
base_url = "{env:SANDBOX}/deepseek/v1"
model = "deepseek-flash"
key_env = "SANDBOX_KEY"
price = { input = 2.0, output = 8.0 }

[channels.qwen]
roles = ["write"]
dialect = "openai_chat"
base_url = "{env:SANDBOX}/qwen/v1"
model = "qwen-plus"
key_env = "SANDBOX_KEY"
stream = false

[channels.images]
roles = ["illustrate"]
dialect = "openai_images"
base_url = "{env:SANDBOX}/images/v1"
model = "gpt-image-2"
key_env = "SANDBOX_KEY"

[channels.perplexity]
roles = ["answer"]
dialect = "openai_chat"
base_url = "{env:SANDBOX}/perplexity"
model = "sonar"
key_env = "SANDBOX_KEY"

[channels.hunyuan]
roles = ["answer"]
dialect = "openai_chat"
base_url = "{env:SANDBOX}/hunyuan/v1"
model = "hunyuan-turbos-latest"
key_env = "SANDBOX_KEY"
extra = { enable_enhancement = true }

[sites.blog]
kind = "wordpress"
base_url = "{env:SANDBOX}/blog"
user_env = "BLOG_USER"
secret_env = "BLOG_PASSWORD"

[sites.hook]
kind = "webhook"
base_url = "{env:SANDBOX}/hook"
secret_env = "HOOK_SECRET"
"""
ENVIRON = {
    "SANDBOX_KEY": "sandbox-key",
    "BLOG_USER": "citeloop",
    "BLOG_PASSWORD": "sandbox app pass",
    "HOOK_SECRET": "whsec_Y2l0ZWxvb3Agc2FuZGJveCwgMzIgYnl0ZXMgbG9uZyE=",
}
PROMPT = Messages(
    system="You write articles. Use only the facts given.",
    user=(
        "Write an article about: columnar databases\nBrand: ClickHouse\nFacts:\n"
        "- ClickHouse is a column-oriented database. (https://clickhouse.com/docs)\n"
    ),
)


@pytest.fixture(scope="module")
async def sandbox(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    port_file = tmp_path_factory.mktemp("sandbox") / "port"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "sandbox", "--port", "0", "--config", "sandbox/quiet.toml",
        "--port-file", str(port_file), cwd=ROOT, stdout=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        for _ in range(200):
            if port_file.exists():
                break
            assert process.returncode is None
            await asyncio.sleep(0.1)
        yield f"http://127.0.0.1:{port_file.read_text().strip()}"
    finally:
        process.terminate()
        await process.wait()


@pytest.fixture
async def outside(sandbox: str, tmp_path: Path) -> AsyncIterator[Outside]:
    async with httpx.AsyncClient(base_url=sandbox, trust_env=False) as http:
        (await http.post("/_reset")).raise_for_status()
    path = tmp_path / "channels.toml"
    path.write_text(CHANNELS, encoding="utf-8")
    environ = {**ENVIRON, "SANDBOX": sandbox}
    opened = Outside(load(path, environ), environ)
    yield opened
    await opened.close()


async def configure(sandbox: str, **changes: Mapping[str, object]) -> None:
    async with httpx.AsyncClient(base_url=sandbox, trust_env=False) as http:
        (await http.post("/_config", json=changes)).raise_for_status()


async def ledger(sandbox: str) -> dict[str, dict[str, dict[str, int]]]:
    async with httpx.AsyncClient(base_url=sandbox, trust_env=False) as http:
        found: dict[str, dict[str, dict[str, int]]] = (await http.get("/_ledger")).json()
        return found


@pytest.mark.parametrize("name", ["deepseek", "qwen"])
async def test_a_writer_writes_streamed_and_whole(outside: Outside, name: str) -> None:
    done = await outside.writer(name).write(PROMPT, call())
    assert len(done.text) > 50
    assert done.input_tokens > 0
    assert done.output_tokens > 0


@pytest.mark.parametrize("name", ["deepseek", "qwen", "images", "perplexity", "hunyuan"])
async def test_every_channel_answers_its_probe(outside: Outside, name: str) -> None:
    assert (await outside.probe(name)).problem == ""


@pytest.mark.parametrize("name", ["perplexity", "hunyuan"])
async def test_an_engine_answers_with_sources(outside: Outside, name: str) -> None:
    answer = await outside.engine(name).ask("Which analytical database is fastest?", "en", call())
    assert answer.searched
    assert answer.retrieved
    assert answer.cited
    assert {one.url for one in answer.cited} <= {one.url for one in answer.retrieved}


@pytest.mark.parametrize("name", ["perplexity", "hunyuan"])
async def test_an_engine_that_did_not_search_is_told_apart(sandbox: str, outside: Outside, name: str) -> None:
    await configure(sandbox, **{name: {"not_searched": 1.0}})
    answer = await outside.engine(name).ask("Which analytical database is fastest?", "en", call())
    assert not answer.searched
    assert not answer.cited


async def test_an_illustrator_draws(outside: Outside) -> None:
    brief = PictureBrief(prompt="a column of data", title="Columns", alt="a column")
    picture = await outside.illustrator("images").illustrate(brief, call())
    assert (picture.width, picture.height) == (1200, 624)


@pytest.mark.parametrize(
    ("name", "change", "fault"),
    [
        ("deepseek", {"exhausted": True}, Fault.EXHAUSTED),
        ("deepseek", {"key": "another"}, Fault.UNAUTHORIZED),
        ("deepseek", {"refuse": ["columnar"]}, Fault.REFUSED),
        ("deepseek", {"http_500": 1.0}, Fault.UNAVAILABLE),
        ("deepseek", {"http_503": 1.0}, Fault.OVERLOADED),
        ("deepseek", {"reset": 1.0}, Fault.UNAVAILABLE),
        ("deepseek", {"truncated": 1.0}, Fault.GARBLED),
        ("deepseek", {"empty": 1.0}, Fault.GARBLED),
        ("deepseek", {"html": 1.0}, None),
        ("deepseek", {"hang": 1.0}, Fault.TIMED_OUT),
        ("qwen", {"exhausted": True}, Fault.EXHAUSTED),
        ("qwen", {"truncated": 1.0}, Fault.GARBLED),
        ("qwen", {"refuse": ["columnar"]}, Fault.REFUSED),
    ],
)
async def test_a_providers_fault_is_what_it_is(
    sandbox: str, outside: Outside, name: str, change: dict[str, object], fault: Fault | None
) -> None:
    await configure(sandbox, **{name: change})
    with pytest.raises(ChannelError) as raised:
        await outside.writer(name).write(PROMPT, call(first_byte=1, between_chunks=1, total=5))
    assert raised.value.fault is fault or (fault is None and not raised.value.fault.final), raised.value


@pytest.mark.parametrize("name", ["perplexity", "hunyuan"])
async def test_an_engine_without_money_is_exhausted(sandbox: str, outside: Outside, name: str) -> None:
    await configure(sandbox, **{name: {"exhausted": True}})
    with pytest.raises(ChannelError) as raised:
        await outside.engine(name).ask("Which?", "en", call())
    assert raised.value.fault is Fault.EXHAUSTED


@pytest.mark.parametrize("name", ["perplexity", "hunyuan"])
async def test_too_many_calls_name_the_delay(sandbox: str, outside: Outside, name: str) -> None:
    await configure(sandbox, **{name: {"rate": 0.1, "burst": 1, "retry_after": 9}})
    await outside.engine(name).ask("Which?", "en", call())
    with pytest.raises(ChannelError) as raised:
        await outside.engine(name).ask("Which?", "en", call())
    assert raised.value.fault is Fault.RATE_LIMITED
    assert raised.value.delay is not None
    assert raised.value.delay.total_seconds() == 9


async def test_comments_while_the_model_is_queued_are_no_text(sandbox: str, outside: Outside) -> None:
    await configure(sandbox, deepseek={"keep_alive": 1.0, "first_byte": [1.5, 1.5]})
    assert (await outside.writer("deepseek").write(PROMPT, call(first_byte=5, between_chunks=1))).text


def article(marker: str) -> Post:
    card = TitleCard(brand="ClickHouse").draw(PictureBrief(prompt="", title="Columns", alt=""))
    return Post(
        marker=marker,
        slug=f"columns-{marker[-6:]}",
        title=f"Columns {marker}",
        html="<p>ClickHouse stores columns.</p>",
        picture=card,
        picture_alt="the title",
    )


@pytest.mark.parametrize("site", ["blog", "hook"])
async def test_a_post_is_absent_before_it_is_published_and_found_after(
    sandbox: str, outside: Outside, site: str
) -> None:
    publisher, post = outside.publisher(site), article("m-0123456789ab")
    assert await publisher.look_up(post, call()) is None
    placed = await publisher.publish(post, call())
    assert placed.confirmed is (site == "blog")
    found = await publisher.look_up(post, call())
    assert found is not None
    assert found.remote_id == placed.remote_id
    assert found.url.startswith(sandbox)
    assert (await ledger(sandbox))["sites"][site]["posts"] == 1


@pytest.mark.parametrize("site", ["blog", "hook"])
async def test_a_post_whose_reply_was_lost_is_unknown_and_then_found(sandbox: str, outside: Outside, site: str) -> None:
    await configure(sandbox, **{site: {"lost_reply": 1.0}})
    publisher, post = outside.publisher(site), article("m-abcdef012345")
    with pytest.raises(ChannelError) as raised:
        await publisher.publish(post, call())
    assert raised.value.fault is Fault.UNKNOWN
    assert await publisher.look_up(post, call()) is not None
    assert (await ledger(sandbox))["sites"][site]["duplicate_posts"] == 0


async def test_a_firewall_before_the_blog_is_told_in_words(sandbox: str, outside: Outside) -> None:
    await configure(sandbox, blog={"html_403": 1.0})
    with pytest.raises(ChannelError, match="firewall"):
        await outside.publisher("blog").publish(article("m-ffffffffffff"), call())


async def test_a_wrong_password_of_the_blog_is_unauthorized(sandbox: str, outside: Outside) -> None:
    await configure(sandbox, blog={"password": "another"})
    with pytest.raises(ChannelError) as raised:
        await outside.publisher("blog").publish(article("m-eeeeeeeeeeee"), call())
    assert raised.value.fault is Fault.UNAUTHORIZED
