"""The examples are what they say: real input that loads, and scripts that reach a running workflow."""

import asyncio
import os
import sys
import sysconfig
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from temporalio import workflow
from temporalio.common import RawValue
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from citeloop.channels import catalog
from citeloop.models.channel import Role
from citeloop.rules.matching import Matcher
from starter.files import read_brand, read_keywords

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
WORKFLOW = "article/TENANT/ARTICLE"


def test_the_brand_has_facts_in_both_languages_each_with_a_public_source() -> None:
    brand = read_brand(EXAMPLES / "milvus/brand.toml")
    locales = Counter(fact.locale for fact in brand.facts)
    assert min(locales["en"], locales["zh-CN"]) >= 9
    assert all(fact.source_url.startswith("https://") for fact in brand.facts)
    assert len({fact.id for fact in brand.facts}) == len(brand.facts)
    assert len(brand.control_prompts) == 6


def test_no_fact_or_keyword_uses_a_word_that_the_brand_has_banned() -> None:
    brand = read_brand(EXAMPLES / "milvus/brand.toml")
    texts = [fact.text for fact in brand.facts]
    texts += [line.keyword for line in read_keywords(EXAMPLES / "milvus/keywords.csv")]
    assert not [word for word in brand.banned_words for text in texts if word in text]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("我们用 Milvus 存向量。", {"Milvus"}),
        ("Milvus migrans is a bird of prey.", set()),
        ("Chroma is an open embedding database.", {"Chroma"}),
        ("Chroma key needs a green screen.", set()),
        ("He came on a Vespa.", set()),
    ],
)
def test_ambiguous_names_count_only_where_they_mean_the_product(text: str, named: set[str]) -> None:
    brand = read_brand(EXAMPLES / "milvus/brand.toml")
    matcher = Matcher([brand.entity, *brand.rivals])
    assert {hit.entity for hit in matcher.find(text)} == named


def test_there_are_24_keywords_half_of_them_chinese_and_one_that_the_sandbox_refuses() -> None:
    lines = read_keywords(EXAMPLES / "milvus/keywords.csv")
    assert Counter(line.locale for line in lines) == {"zh-CN": 12, "en": 12}
    assert [line.locale for line in lines if "LangChain memory" in line.keyword] == ["en"]


@pytest.mark.parametrize("name", ["channels.toml", "channels.sandbox.toml"])
def test_the_channel_files_are_valid_and_have_every_role(name: str) -> None:
    known = catalog.load(EXAMPLES / name, {"CITELOOP_SANDBOX_URL": "http://127.0.0.1:1"})
    assert all(known.with_role(role) for role in Role)
    assert {site.kind for site in known.sites} == {"wordpress", "webhook"}
    assert known.allow_private_addresses == (name == "channels.sandbox.toml")
    assert all(channel.key_env for channel in known.channels)


@workflow.defn(name="Article")
class Listener:
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    @workflow.run
    async def run(self) -> None:
        await workflow.wait_condition(lambda: False)

    @workflow.signal(dynamic=True)
    def any_signal(self, name: str, args: Sequence[RawValue]) -> None:
        self.heard.append(name)

    @workflow.query
    def progress(self) -> list[str]:
        return self.heard


async def run(script: str, *arguments: str, address: str, home: Path) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(EXAMPLES / f"{script}.py"),
        *arguments,
        cwd=ROOT,
        env={**os.environ, "TEMPORAL_ADDRESS": address, "CITELOOP_HOME": str(home)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    return process.returncode or 0, output.decode()


async def test_every_script_says_its_word_to_the_article(tmp_path: Path) -> None:
    temporal = Path(sysconfig.get_path("scripts")) / "temporal"
    words = {
        "pause": (),
        "resume": (),
        "approve": ("Li Na", "checked"),
        "send_back": ("Li Na", "shorter"),
        "reject": ("Li Na", "off topic"),
        "prioritise": ("1",),
        "retry": (),
        "cancel": ("wrong product",),
    }
    async with await WorkflowEnvironment.start_local(
        dev_server_existing_path=str(temporal), data_converter=pydantic_data_converter
    ) as env:
        address = env.client.service_client.config.target_host
        async with Worker(
            env.client, task_queue="q", workflows=[Listener], workflow_runner=UnsandboxedWorkflowRunner()
        ):
            handle = await env.client.start_workflow("Article", id=WORKFLOW, task_queue="q")
            for script, arguments in words.items():
                assert (await run(script, WORKFLOW, *arguments, address=address, home=tmp_path)) == (0, "")
            assert await handle.query("progress", result_type=list[str]) == list(words)
            status, output = await run("progress", WORKFLOW, address=address, home=tmp_path)
            assert status == 0
            assert "cancel" in output
            await handle.terminate()
            for script, arguments in words.items():
                status, output = await run(script, WORKFLOW, *arguments, address=address, home=tmp_path)
                assert (status, output.count("\n")) == (1, 1)
                assert output.startswith("error: the workflow has ended; `citeloop status` shows how, ")
            for script in ("retry", "progress"):
                status, output = await run(script, "article/NO/BODY", address=address, home=tmp_path)
                assert (status, output.count("\n")) == (1, 1)
                assert output.startswith("error: there is no such workflow (")


async def test_a_script_without_a_server_or_an_argument_says_so_in_one_line(tmp_path: Path) -> None:
    status, output = await run("retry", WORKFLOW, address="127.0.0.1:9", home=tmp_path)
    remedy = "run `citeloop up` in another terminal or set TEMPORAL_ADDRESS"
    assert (status, output) == (1, f"error: temporal: no Temporal server at 127.0.0.1:9; {remedy}\n")
    status, output = await run(
        "start", str(EXAMPLES / "milvus/brand.toml"), "gone.csv", address="127.0.0.1:9", home=tmp_path
    )
    assert (status, output) == (
        1,
        "error: keywords: gone.csv: No such file or directory; name a file that can be read\n",
    )
    status, output = await run("cancel", WORKFLOW, address="127.0.0.1:9", home=tmp_path)
    assert (status, output.count("\n")) == (1, 1)
    assert "`python examples/cancel.py article/TENANT/ARTICLE REASON`" in output
