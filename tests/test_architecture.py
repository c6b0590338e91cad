"""What may not happen in this house."""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from importlinter import cli

ROOT = Path(__file__).resolve().parents[1]
HOUSE = ("citeloop", "workflows", "activities", "starter", "sandbox", "bench")
FILES = sorted([ROOT / "worker.py", *(file for room in HOUSE for file in (ROOT / room).rglob("*.py"))])
MAX_FILE = 350
MAX_FUNCTION = 60
SETTINGS_ARE_READ_IN = {"worker.py", "starter/api/app.py", "starter/cli/session.py"}
HELD_BY_NO_MODULE = {
    "AsyncClient",
    "Client",
    "create_engine",
    "create_async_engine",
    "async_sessionmaker",
    "Session",
    "AsyncSession",
    "Database",
    "Outside",
    "Settings",
}
"""Clients, engines and sessions come in through `__init__`."""


def name_of(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def called(call: ast.Call) -> str:
    """`httpx.AsyncClient(…)` → AsyncClient."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def calls(node: ast.AST) -> Iterator[ast.Call]:
    return (inner for inner in ast.walk(node) if isinstance(inner, ast.Call))


def at_import(module: ast.Module) -> Iterator[ast.AST]:
    """What runs when the module is imported: its statements and its classes' bodies, not the functions' bodies."""
    waiting: list[ast.AST] = list(module.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            waiting += [*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)]
        elif not isinstance(node, ast.Lambda):
            yield node
            waiting.extend(ast.iter_child_nodes(node))


def lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def test_every_import_contract_is_kept() -> None:
    assert cli.lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == 0


def test_there_is_something_to_look_at() -> None:
    assert len(FILES) > 100


def test_a_file_can_be_read_in_one_go() -> None:
    lengths = {name_of(file): len(file.read_text(encoding="utf-8").splitlines()) for file in FILES}
    assert {name: length for name, length in lengths.items() if length > MAX_FILE} == {}


def test_a_function_can_be_seen_at_once() -> None:
    long = [
        f"{name_of(file)}:{node.lineno} {node.name}: {lines(node)} lines"
        for file in FILES
        for node in ast.walk(tree(file))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and lines(node) > MAX_FUNCTION
    ]
    assert long == []


def test_no_module_holds_a_client_an_engine_or_settings() -> None:
    held = [
        f"{name_of(file)}:{node.lineno} {called(node)}"
        for file in FILES
        for node in at_import(tree(file))
        if isinstance(node, ast.Call) and called(node) in HELD_BY_NO_MODULE
    ]
    assert held == []


def test_settings_are_read_at_the_edges_only() -> None:
    readers = set()
    for file in FILES:
        module = tree(file)
        imported = any(
            isinstance(node, ast.ImportFrom)
            and node.module == "citeloop.settings"
            and "Settings" in {alias.name for alias in node.names}
            for node in ast.walk(module)
        )
        if imported and any(called(call) == "Settings" for call in calls(module)):
            readers.add(name_of(file))
    assert readers == SETTINGS_ARE_READ_IN


@pytest.mark.parametrize("name", ["article.py", "campaign.py", "publication.py", "life.py"])
def test_a_workflow_names_no_timeout_of_its_own(name: str) -> None:
    """Timeouts and retries come from the plan, by options.py."""
    for call in calls(tree(ROOT / "workflows" / name)):
        if called(call).startswith("execute_"):
            named = {keyword.arg for keyword in call.keywords if keyword.arg is not None}
            assert not named, f"line {call.lineno} sets {named}"
        assert called(call) != "RetryPolicy", f"line {call.lineno}"


def test_the_article_names_no_length_of_time() -> None:
    """`timedelta(0)` is none."""
    for call in calls(tree(ROOT / "workflows" / "article.py")):
        lengths = [arg for arg in call.args if not (isinstance(arg, ast.Constant) and arg.value == 0)]
        assert called(call) != "timedelta" or not (lengths or call.keywords), f"line {call.lineno}"
        assert called(call) != "sleep" or not any(isinstance(arg, ast.Constant) for arg in call.args)
        timeouts = [word.value for word in call.keywords if (word.arg or "").endswith("timeout")]
        assert not any(isinstance(value, ast.Constant) for value in timeouts), f"line {call.lineno}"


@pytest.mark.parametrize("module", ["workflows.article", "workflows.campaign", "workflows.options"])
def test_importing_a_workflow_loads_no_io(module: str) -> None:
    code = f"import json, sys, {module}; print(json.dumps(sorted(sys.modules)))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    roots = {name.partition(".")[0] for name in json.loads(loaded.stdout)}
    assert module.partition(".")[0] in roots
    assert not roots & {"httpx", "sqlmodel", "sqlalchemy", "asyncpg", "fastapi", "typer"}
