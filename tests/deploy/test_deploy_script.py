"""deploy.sh: what it says on a machine that is not ready, and what it calls on one that is. Docker is a stand-in."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from starter.embedded import ports
from tests.deploy.composition import ROOT
from tests.deploy.conftest import SETTINGS

TOOLS = ("bash", "ls", "sed", "grep", "sort", "head", "tail", "df", "awk", "cat", "dirname", "env")
DOCKER = """#!/bin/sh
echo "$*" >>"$CALLS"
case "$*" in
  info*) [ -z "$ENGINE_DOWN" ] || exit 1 ;;
  "compose version --short") [ -n "$COMPOSE" ] && echo "$COMPOSE" || exit 1 ;;
  "compose ps --quiet"*) echo "$RUNNING" ;;
  "compose up"*) exit "${UP:-0}" ;;
  "compose run --rm --no-deps --entrypoint python cli"*) echo "${CHANNELS:-ok: fine}"; [ -z "$CHANNELS" ] ;;
esac
"""


class Machine:
    """A checkout on a machine with Docker, or without."""

    def __init__(self, folder: Path) -> None:
        self.checkout = folder / "checkout"
        self.calls = folder / "calls"
        self.bin = folder / "bin"
        self.bin.mkdir(parents=True)
        for tool in TOOLS:
            (self.bin / tool).symlink_to(shutil.which(tool) or tool)
        shutil.copytree(ROOT / "deploy", self.checkout / "deploy")
        shutil.copy(ROOT / "docker-compose.yml", self.checkout)
        api, ui, traces = ports.free(3)
        self.ports = {"CITELOOP_API_PORT": str(api), "TEMPORAL_UI_PORT": str(ui), "TRACES_PORT": str(traces)}
        self.environ: dict[str, str] = {"COMPOSE": "2.40.3"}

    def install_docker(self) -> None:
        (self.bin / "docker").write_text(DOCKER)
        (self.bin / "docker").chmod(0o755)

    def settle(self, values: Mapping[str, str]) -> None:
        env = self.checkout / ".env"
        env.write_text("# ours\n" + "".join(f"{name}={value}\n" for name, value in values.items()))
        env.chmod(0o600)

    def fill_in(self, **changed: str) -> None:
        """All that a deployment needs."""
        self.install_docker()
        self.settle({**SETTINGS, **self.ports, **changed})
        shutil.copy(ROOT / "examples" / "channels.toml", self.checkout / "channels.toml")
        shutil.copy(ROOT / "deploy" / "keys.env.example", self.checkout / "keys.env")
        (self.checkout / "keys.env").chmod(0o600)

    def run(self, *arguments: str) -> tuple[int, str]:
        done = subprocess.run(
            [self.bin / "bash", self.checkout / "deploy" / "deploy.sh", *arguments],
            env={"PATH": str(self.bin), "CALLS": str(self.calls), "TMPDIR": str(self.checkout), **self.environ},
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
        )
        return done.returncode, done.stdout + done.stderr

    @property
    def called(self) -> list[str]:
        return self.calls.read_text().splitlines() if self.calls.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as listening:
        listening.bind((ports.LOOPBACK, 0))
        listening.listen()
        yield listening.getsockname()[1]


def test_a_bare_machine_hears_of_everything_that_is_missing_at_once(machine: Machine) -> None:
    status, said = machine.run("--check")
    assert status == 1
    assert "problem: docker is not installed" in said
    assert "problem: channels.toml is missing; copy examples/channels.toml to it" in said
    assert "problem: keys.env is missing; copy deploy/keys.env.example to it" in said
    for name in SETTINGS:
        assert f"problem: Set {name}, " in said
    assert "8 problems to solve first; nothing was started." in said


def test_a_machine_that_is_ready_passes(machine: Machine) -> None:
    machine.fill_in()
    status, said = machine.run("--check")
    assert "problem" not in said
    assert (status, said.splitlines()[-1]) == (0, "All is ready: deploy/deploy.sh starts it.")


def test_a_check_changes_nothing(machine: Machine) -> None:
    machine.fill_in()
    machine.run("--check")
    assert machine.called
    assert not [call for call in machine.called if call.split()[:2] in (["compose", "up"], ["compose", "pull"])]


@pytest.mark.parametrize(
    ("environ", "sentence"),
    [
        ({"ENGINE_DOWN": "1"}, "the Docker engine does not answer; start it"),
        ({"COMPOSE": ""}, "docker has no compose command; install"),
        ({"COMPOSE": "2.29.7"}, "Docker Compose is 2.29.7 and must be 2.30.0 or newer"),
    ],
)
def test_a_docker_that_will_not_do_is_told(machine: Machine, environ: dict[str, str], sentence: str) -> None:
    machine.fill_in()
    machine.environ |= environ
    status, said = machine.run("--check")
    assert (status, f"problem: {sentence}" in said) == (1, True), said


@pytest.mark.parametrize("version", ["2.30.0", "v2.30.1-desktop.1", "2.100.0", "5.6.1"])
def test_newer_versions_of_compose_will_do(machine: Machine, version: str) -> None:
    machine.fill_in()
    machine.environ["COMPOSE"] = version
    assert machine.run("--check")[0] == 0


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"POSTGRES_PASSWORD": "short"}, "POSTGRES_PASSWORD is too weak: it must have 24 or more"),
        ({"TEMPORAL_DB_PASSWORD": "with@an:address/0123456789"}, "TEMPORAL_DB_PASSWORD is too weak"),
        ({"CITELOOP_APP_PASSWORD": SETTINGS["CITELOOP_OWNER_PASSWORD"]}, "is the same as another password"),
        ({"CITELOOP_CALLBACK_BASE_URL": "citeloop.example.com"}, "must be an address that begins with https://"),
        ({"TRACES_PORT": "many"}, "TRACES_PORT is many and must be a port"),
    ],
)
def test_an_unfit_setting_is_told(machine: Machine, changed: dict[str, str], sentence: str) -> None:
    machine.fill_in(**changed)
    status, said = machine.run("--check")
    assert (status, sentence in said) == (1, True), said
    assert "One problem to solve first" in said


def test_no_password_is_ever_shown(machine: Machine) -> None:
    machine.fill_in(POSTGRES_PASSWORD="weak-but-secret")
    said = machine.run("--check")[1]
    assert not [
        value for name, value in {**SETTINGS, "x": "weak-but-secret"}.items() if "URL" not in name and value in said
    ]


def test_the_environment_goes_before_the_file_as_with_compose(machine: Machine) -> None:
    machine.fill_in(POSTGRES_PASSWORD="")
    assert machine.run("--check")[0] == 1
    machine.environ["POSTGRES_PASSWORD"] = "from-the-environment-0123456789"
    assert machine.run("--check")[0] == 0


def test_callbacks_without_tls_are_only_remarked_upon(machine: Machine) -> None:
    machine.fill_in(CITELOOP_CALLBACK_BASE_URL="http://10.0.0.1:8080")
    status, said = machine.run("--check")
    assert (status, "note: CITELOOP_CALLBACK_BASE_URL" in said) == (0, True)


def test_a_taken_port_is_told_with_its_variable(machine: Machine, taken: int) -> None:
    machine.fill_in(TEMPORAL_UI_PORT=str(taken))
    status, said = machine.run("--check")
    assert status == 1
    assert (
        f"port {taken}, wanted for temporal-ui, is taken by another program; choose another in TEMPORAL_UI_PORT" in said
    )


def test_a_port_that_is_ours_already_is_no_problem(machine: Machine, taken: int) -> None:
    machine.fill_in(TEMPORAL_UI_PORT=str(taken))
    machine.environ["RUNNING"] = "0f3c1d9e"
    assert machine.run("--check")[0] == 0


@pytest.mark.parametrize("name", [".env", "keys.env"])
def test_secrets_that_others_can_read_are_told(machine: Machine, name: str) -> None:
    machine.fill_in()
    (machine.checkout / name).chmod(0o644)
    status, said = machine.run("--check")
    assert (status, f"{name} can be read by others; run: chmod 600 {name}" in said) == (1, True)


def test_a_file_that_the_containers_cannot_read_is_told(machine: Machine) -> None:
    machine.fill_in()
    (machine.checkout / "deploy" / "jaeger.yaml").chmod(0o600)
    status, said = machine.run("--check")
    assert (status, "deploy/jaeger.yaml cannot be read by the users of the containers" in said) == (1, True)


def test_deploying_builds_migrates_starts_and_prints_the_addresses(machine: Machine) -> None:
    machine.fill_in()
    status, said = machine.run()
    assert status == 0, said
    assert f"API           http://127.0.0.1:{machine.ports['CITELOOP_API_PORT']}" in said
    assert f"Temporal UI   http://127.0.0.1:{machine.ports['TEMPORAL_UI_PORT']}" in said
    steps = ["config", "pull", "build", "run --rm --no-deps", "run --rm migrate", "up"]
    calls = [call.removeprefix("compose ") for call in machine.called]
    at = [next(number for number, call in enumerate(calls) if call.startswith(step)) for step in steps]
    assert at == sorted(at)
    assert "--wait" in calls[at[-1]]


def test_a_given_image_is_pulled_and_not_built(machine: Machine) -> None:
    machine.fill_in(CITELOOP_IMAGE="registry.example.com/citeloop:0.1.0")
    assert machine.run()[0] == 0
    assert "compose pull --quiet worker" in machine.called
    assert [call for call in machine.called if call.startswith("compose build")] == ["compose build --quiet collector"]


def test_wrong_channels_stop_a_deployment_before_it_migrates(machine: Machine) -> None:
    machine.fill_in()
    machine.environ["CHANNELS"] = "problem: channels.toml:3: rate: is no rate"
    status, said = machine.run()
    assert (status, "problem: channels.toml: channels.toml:3: rate" in said) == (1, True)
    assert not [call for call in machine.called if "migrate" in call or call.startswith("compose up")]


def test_an_unhealthy_start_is_a_failure(machine: Machine) -> None:
    machine.fill_in()
    machine.environ["UP"] = "1"
    status, said = machine.run()
    assert status == 1
    assert "not everything became healthy; docker compose logs SERVICE tells why" in said
    assert "API   " not in said


def test_an_unknown_option_does_nothing(machine: Machine) -> None:
    machine.fill_in()
    status, said = machine.run("--chekc")
    assert (status, "--chekc is no option" in said, machine.called) == (2, True, [])


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="no shellcheck here")
def test_shellcheck_finds_nothing() -> None:
    scripts = [str(file) for file in (ROOT / "deploy").rglob("*.sh")]
    done = subprocess.run(["shellcheck", *scripts], capture_output=True, text=True, check=False, env={**os.environ})
    assert done.returncode == 0, done.stdout
