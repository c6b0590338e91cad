"""The documents for users: what they link to is there, and what they tell to type exists, in both languages."""

import re
from pathlib import Path

import pytest
import typer.main
from typer.core import TyperGroup

from starter.cli import app
from tests.starter.cli import ROOT

READMES = ("README.md", "README.zh-CN.md")
DOCUMENTS = (*READMES, *(f"docs/{name}" for name in ("metrics.md", "metrics.zh-CN.md")))


def _blocks(name: str) -> list[str]:
    return re.findall(r"^```\n(.*?)^```", (ROOT / name).read_text(), re.DOTALL | re.MULTILINE)


def _typed(name: str) -> list[str]:
    """The command lines, without remarks, and without what is sent in them: that is in the reader's language."""
    lines = (line.partition(" #")[0].split() for line in "\n".join(_blocks(name)).splitlines())
    return [" ".join(words) for words in lines if words and re.fullmatch(r"[a-z]+|API=.*|auth=.*", words[0])]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_link_leads_somewhere(name: str) -> None:
    folder = (ROOT / name).parent
    links = re.findall(r"\]\((?!https?:)([^)#]+)", (ROOT / name).read_text())
    assert [link for link in links if not (folder / link).exists()] == []
    assert links


@pytest.mark.parametrize("name", READMES)
def test_every_command_that_is_named_exists(name: str) -> None:
    root = typer.main.get_command(app)
    assert isinstance(root, TyperGroup)
    named = set(re.findall(r"citeloop ([a-z][a-z-]+)", (ROOT / name).read_text()))
    assert named - set(root.commands) == set()
    assert {"up", "doctor", "campaign", "watch"} <= named


@pytest.mark.parametrize("name", READMES)
def test_what_is_said_to_print_json_can(name: str) -> None:
    root = typer.main.get_command(app)
    assert isinstance(root, TyperGroup)
    told = [line for line in (ROOT / name).read_text().splitlines() if line.startswith("| `") and "`--json`" in line]
    named = {command for line in told for command in re.findall(r"`citeloop ([a-z]+)", line)}
    able = {each for each, command in root.commands.items() if any("--json" in one.opts for one in command.params)}
    assert {"status", "campaigns"} <= named <= able


def test_both_languages_tell_to_type_the_same() -> None:
    english, chinese = map(_typed, READMES)
    assert english == chinese


def test_pictures_are_small_enough_for_a_page() -> None:
    sizes = {file.name: file.stat().st_size for file in Path(ROOT / "docs" / "pictures").glob("*.png")}
    assert 0 < len(sizes) <= 6
    assert max(sizes.values()) <= 200_000
