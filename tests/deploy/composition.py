"""docker-compose.yml as records, its variables filled in."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict

ROOT = Path(__file__).resolve().parents[2]
COMPOSE = ROOT / "docker-compose.yml"
EXAMPLE = ROOT / ".env.example"
_VARIABLE = re.compile(r"\$\{(?P<name>[A-Z_]+)(?:(?P<kind>:-|:\?)(?P<rest>[^}]*))?\}")


Text = Annotated[str, BeforeValidator(str)]
"""A number in YAML is a text to the process."""


class Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Healthcheck(Part):
    test: list[str] = []
    interval: str = ""
    timeout: str = ""
    retries: int = 0
    start_period: str = ""
    disable: bool = False


class Dependency(Part):
    condition: str
    required: bool = True


class Build(Part):
    context: str
    dockerfile: str
    target: str


class EnvFile(Part):
    path: str
    format: str


class Service(Part):
    """What we use of a service; a key that is not listed here fails the tests, so that it gets looked at."""

    image: str
    build: Build | None = None
    entrypoint: list[str] = []
    command: list[str] = []
    environment: dict[str, Text] = {}
    env_file: list[EnvFile] = []
    ports: list[str] = []
    volumes: list[str | dict[str, Any]] = []
    tmpfs: list[str] = []
    networks: list[str]
    depends_on: dict[str, Dependency] = {}
    healthcheck: Healthcheck
    restart: str
    profiles: list[str] = []
    user: str = ""
    init: bool
    read_only: bool
    cap_drop: list[str]
    security_opt: list[str]
    logging: dict[str, Any]
    mem_limit: str
    pids_limit: int
    shm_size: str = ""
    stop_grace_period: str = ""
    deploy: dict[str, Any] = {}

    @property
    def once(self) -> bool:
        return self.restart == "no"

    @property
    def mounts(self) -> dict[str, str]:
        """Source → target, of files and volumes."""
        pairs = [
            (one["source"], one["target"]) if isinstance(one, dict) else tuple(one.split(":")[:2])
            for one in self.volumes
        ]
        return {str(source): str(target) for source, target in pairs}


class Composition(Part):
    name: str
    services: dict[str, Service]
    networks: dict[str, dict[str, bool]]
    volumes: dict[str, dict[str, str]]


class Variable(Part):
    """One `${NAME}`, `${NAME:-rest}` or `${NAME:?rest}`."""

    name: str
    kind: str
    rest: str


def variables() -> list[Variable]:
    found = _VARIABLE.finditer(_without_comments(COMPOSE.read_text()))
    return [Variable(name=one["name"], kind=one["kind"] or "", rest=one["rest"] or "") for one in found]


def example() -> dict[str, str]:
    """The variables of .env.example."""
    return dict(re.findall(r"(?m)^([A-Z_]+)=(.*)$", EXAMPLE.read_text()))


def composition(given: Mapping[str, str]) -> Composition:
    """With `given` in the place of the variables. KeyError when a required one is missing."""
    root = yaml.safe_load(_filled(COMPOSE.read_text(), given))
    return Composition.model_validate({key: value for key, value in root.items() if not key.startswith("x-")})


def _filled(text: str, given: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        if match["kind"] == ":-":
            return given.get(match["name"]) or match["rest"]
        return given[match["name"]]

    return _VARIABLE.sub(value, _without_comments(text))


def _without_comments(text: str) -> str:
    return re.sub(r"(?m)^\s*#.*\n", "", text)
