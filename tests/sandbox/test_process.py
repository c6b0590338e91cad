"""The sandbox as a process: start, stop, settings."""

import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.sandbox.running import ROOT, Sandbox, chat, running


def test_sigterm_ends_it_cleanly_even_while_a_call_hangs() -> None:
    with running() as sandbox:
        sandbox.set("qwen", first_byte_silence=60)
        with pytest.raises(httpx.TimeoutException):
            httpx.post(
                verify=False,
                url=f"{sandbox.url}/qwen/v1/chat/completions",
                json=chat("hi"),
                headers={"authorization": "Bearer sandbox-key"},
                timeout=0.3,
            )
        sandbox.process.send_signal(signal.SIGTERM)
        assert sandbox.process.wait(timeout=5) == 0


def test_the_demo_settings_are_valid() -> None:
    with running(ROOT / "sandbox" / "demo.toml") as sandbox:
        settings = httpx.get(verify=False, url=f"{sandbox.url}/_config").json()
    assert settings["deepseek"]["rate"] == 1.2
    assert settings["hook"]["doubled"] == 0.2
    assert settings["doubao"]["refuse"] == ["LangChain memory"]


def test_a_misspelt_key_in_the_file_stops_it_with_one_line(tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_text("[providers.deepseek]\nbrust = 2\n")
    done = subprocess.run(
        [sys.executable, "-m", "sandbox", "--config", str(file)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.strip().endswith("providers.deepseek.brust: Extra inputs are not permitted")


def test_a_bad_live_setting_changes_nothing(sandbox: Sandbox) -> None:
    reply = httpx.post(verify=False, url=f"{sandbox.url}/_config", json={"qwen": {"rate": 5}, "deepseek": {"rate": -1}})
    assert reply.status_code == 422
    assert httpx.get(verify=False, url=f"{sandbox.url}/_config").json()["qwen"]["rate"] is None


def test_another_site_and_another_provider_need_only_the_file(tmp_path: Path) -> None:
    file = tmp_path / "more.toml"
    file.write_text('[providers.kimi]\nkey = "k"\n[sites.news]\nkind = "wordpress"\n')
    with running(file) as sandbox:
        models = httpx.get(verify=False, url=f"{sandbox.url}/kimi/v1/models", headers={"authorization": "Bearer k"})
        index = httpx.get(verify=False, url=f"{sandbox.url}/news/wp-json/")
    assert models.json()["data"][0]["owned_by"] == "kimi"
    assert index.json()["home"] == f"{sandbox.url}/news"


def test_the_sandbox_knows_nothing_of_the_product_it_tests() -> None:
    program = (
        "import sys, sandbox.app; "
        "print([m for m in sys.modules if m.split('.')[0] in {'citeloop', 'workflows', 'activities', 'starter'}])"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_site_may_not_take_a_services_name(tmp_path: Path) -> None:
    file = tmp_path / "clash.toml"
    file.write_text('[sites.qwen]\nkind = "wordpress"\n')
    done = subprocess.run(
        [sys.executable, "-m", "sandbox", "--config", str(file)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "a site cannot be called 'qwen'" in done.stderr
