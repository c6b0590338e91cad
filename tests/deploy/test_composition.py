"""docker-compose.yml against the code, without an engine: every name in it exists, and nothing leaks."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from temporalio.envconfig import ClientConfig

from citeloop.channels import catalog
from citeloop.settings import Settings
from citeloop.store.roles import APP, OWNER
from starter.embedded import temporal as embedded
from starter.embedded.postgres import DATABASE
from tests.deploy.composition import COMPOSE, ROOT, Composition, composition, example, variables
from tests.deploy.conftest import SETTINGS
from workflows import options, steering

OURS = ("worker", "api", "cli", "migrate")
SECRET = re.compile(r"PASSWORD|SECRET|TOKEN|KEY")
NAMESPACE_SCRIPT = (ROOT / "deploy" / "temporal" / "namespace.sh").read_text()


def test_every_variable_is_explained_in_the_example_and_the_example_has_no_other() -> None:
    assert {one.name for one in variables()} == set(example())


def test_nothing_that_is_required_or_secret_has_a_value_in_the_example() -> None:
    guarded = {one.name for one in variables() if one.kind == ":?"}
    assert guarded == set(SETTINGS)
    assert {name for name in example() if SECRET.search(name)} <= guarded
    assert {name: example()[name] for name in guarded} == dict.fromkeys(guarded, "")


def test_no_secret_has_a_default_and_every_required_variable_says_what_is_missing() -> None:
    for one in variables():
        if SECRET.search(one.name):
            assert one.kind == ":?", one.name
        if one.kind == ":?":
            assert one.rest.startswith(f"Set {one.name}, "), one.rest
            assert one.rest.endswith("."), one.rest


def test_the_example_shows_the_defaults_that_hold() -> None:
    defaults = {one.name: one.rest for one in variables() if one.kind == ":-"}
    assert {name: value for name, value in example().items() if value} == {
        name: value for name, value in defaults.items() if name != "CITELOOP_IMAGE"
    }


@pytest.mark.parametrize("missing", sorted(SETTINGS))
def test_without_a_required_variable_nothing_can_be_read(missing: str) -> None:
    with pytest.raises(KeyError, match=missing):
        composition({name: value for name, value in SETTINGS.items() if name != missing})


def test_every_image_has_an_exact_version(compose: Composition) -> None:
    for name, service in compose.services.items():
        assert re.fullmatch(r"[a-z0-9./-]+:v?\d+\.\d+(\.\d+)?(-[a-z0-9.]+)?", service.image), (name, service.image)


def test_our_image_bears_the_version_of_the_project(compose: Composition) -> None:
    version = re.search(r'(?m)^version = "(.+)"', (ROOT / "pyproject.toml").read_text())
    assert version is not None
    assert {compose.services[name].image for name in OURS} == {f"citeloop:{version[1]}"}


def test_every_service_is_watched_or_runs_once(compose: Composition) -> None:
    for name, service in compose.services.items():
        assert service.healthcheck.disable is service.once, name
        assert bool(service.healthcheck.test) is not service.once, name
        if not service.once:
            assert service.healthcheck.start_period, name
            assert service.restart == "unless-stopped", name


def test_every_job_that_runs_once_is_waited_for(compose: Composition) -> None:
    """`up --wait` would otherwise take its end for a failure."""
    waited = {
        name
        for service in compose.services.values()
        for name, dependency in service.depends_on.items()
        if dependency.condition == "service_completed_successfully"
    }
    assert {name for name, one in compose.services.items() if one.once and not one.profiles} == waited


def test_conditions_of_the_start_order_can_come_true(compose: Composition) -> None:
    for name, service in compose.services.items():
        for other, dependency in service.depends_on.items():
            once = compose.services[other].once
            assert once is (dependency.condition == "service_completed_successfully"), (name, other)


def test_our_services_start_after_schema_and_namespace(compose: Composition) -> None:
    def before(name: str) -> set[str]:
        direct = set(compose.services[name].depends_on)
        return direct.union(*(before(other) for other in direct))

    for name in ("worker", "api", "cli"):
        assert before(name) >= {"postgres", "roles", "migrate", "temporal-schema", "temporal", "temporal-namespace"}


def test_every_container_is_confined(compose: Composition) -> None:
    for name, service in compose.services.items():
        assert (service.read_only, name) in {(True, name), (False, "temporal-ui")}
        assert service.cap_drop == ["ALL"], name
        assert service.security_opt == ["no-new-privileges:true"], name
        assert service.mem_limit, name
        assert 0 < service.pids_limit <= 500, name
        assert service.logging["options"]["max-file"] == "5", name


def test_only_the_api_can_be_opened_to_the_outside(compose: Composition) -> None:
    opened = composition({**SETTINGS, "CITELOOP_API_BIND": "0.0.0.0"})
    published = {name: service.ports for name, service in opened.services.items() if service.ports}
    assert published == {
        "temporal-ui": ["127.0.0.1:8233:8080"],
        "api": ["0.0.0.0:8080:8080"],
        "jaeger": ["127.0.0.1:16686:16686"],
    }
    assert compose.services["api"].ports == ["127.0.0.1:8080:8080"]


def test_networks_keep_apart_what_need_not_meet(compose: Composition) -> None:
    members = {
        network: {name for name, one in compose.services.items() if network in one.networks}
        for network in compose.networks
    }
    assert {name for name, one in compose.networks.items() if one.get("internal")} == {"data", "engine", "traces"}
    assert members["data"] == {"postgres", "roles", "temporal-schema", "temporal", *OURS}
    assert members["engine"] == {"temporal", "temporal-namespace", "temporal-ui", "worker", "api", "cli"}
    assert members["traces"] == {"collector", "jaeger", "worker", "api", "cli"}
    assert members["outside"] == {"worker", "cli"}
    assert members["doors"] == {name for name, one in compose.services.items() if one.ports}


def test_a_service_reaches_every_host_that_its_variables_name(compose: Composition) -> None:
    for name, service in compose.services.items():
        text = " ".join(service.environment.values())
        for other, target in compose.services.items():
            if other != name and re.search(rf"(?<![\w.-]){re.escape(other)}:\d+", text):
                assert set(service.networks) & set(target.networks), (name, other)


def test_every_mounted_file_is_there(compose: Composition) -> None:
    written_by_the_operator = {"./channels.toml": "examples/channels.toml", "keys.env": "deploy/keys.env.example"}
    for name, service in compose.services.items():
        files = [source for source in service.mounts if source.startswith(".")]
        files += [one.path for one in service.env_file]
        for file in files:
            assert (ROOT / written_by_the_operator.get(file, file)).is_file(), (name, file)
        for volume in set(service.mounts) - set(files):
            assert volume in compose.volumes, (name, volume)


def test_mounted_configuration_cannot_be_changed_from_inside(compose: Composition) -> None:
    for name, service in compose.services.items():
        for mount in service.volumes:
            if isinstance(mount, dict):
                assert mount["read_only"] is True, name
                assert mount["bind"]["create_host_path"] is False, name
            elif mount.startswith("."):
                assert mount.endswith(":ro"), (name, mount)


def test_every_variable_of_our_services_is_one_that_the_code_reads(compose: Composition) -> None:
    read = {f"CITELOOP_{field.upper()}" for field in Settings.model_fields}
    profile = ClientConfig.load_client_connect_config(
        override_env_vars={"TEMPORAL_ADDRESS": "there:7233", "TEMPORAL_NAMESPACE": "n"}
    )
    assert (profile["target_host"], profile["namespace"]) == ("there:7233", "n")
    sources = [ROOT / "worker.py", *(ROOT / "starter").rglob("*.py")]
    assert any('"OTEL_EXPORTER_OTLP_ENDPOINT"' in source.read_text() for source in sources)
    read |= {"TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE", "OTEL_EXPORTER_OTLP_ENDPOINT"}
    for name in OURS:
        assert set(compose.services[name].environment) <= read, name


def test_settings_take_what_the_worker_is_given(compose: Composition, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in compose.services["cli"].environment.items():
        monkeypatch.setenv(name, value)
    taken = Settings()
    assert taken.channels == Path("/etc/citeloop/channels.toml")
    assert taken.callback_base_url == "https://citeloop.example.com"
    assert taken.database_owner_url is None
    assert (taken.tenant, taken.window) == ("default", 100)


def test_roles_and_databases_are_those_of_the_store_and_of_temporal(compose: Composition) -> None:
    app, owner = SETTINGS["CITELOOP_APP_PASSWORD"], SETTINGS["CITELOOP_OWNER_PASSWORD"]
    for name in ("worker", "api", "cli"):
        url = compose.services[name].environment["CITELOOP_DATABASE_URL"]
        assert url == f"postgresql://{APP}:{app}@postgres:5432/{DATABASE}"
        assert owner not in str(compose.services[name]), name
    assert compose.services["migrate"].environment == {
        "CITELOOP_DATABASE_OWNER_URL": f"postgresql://{OWNER}:{owner}@postgres:5432/{DATABASE}"
    }
    script = (ROOT / "deploy" / "postgres" / "roles.sql").read_text()
    assert set(re.findall(r"\\getenv \w+ (\w+)", script)) <= set(compose.services["roles"].environment)
    server = compose.services["temporal"].environment
    assert f"'{server['DBNAME']}', '{server['POSTGRES_USER']}'" in script
    assert f"'{server['VISIBILITY_DBNAME']}', '{server['POSTGRES_USER']}'" in script


def test_keys_of_channels_reach_only_those_who_call_them(compose: Composition) -> None:
    assert {name for name, one in compose.services.items() if one.env_file} == {"worker", "api", "cli"}


def test_the_example_of_keys_names_those_of_the_example_of_channels() -> None:
    known = catalog.load(ROOT / "examples" / "channels.toml", {})
    named = {channel.key_env for channel in known.channels}
    named |= {variable for site in known.sites for variable in (site.user_env, site.secret_env)}
    listed = re.findall(r"(?m)^(\w+)=(.*)$", (ROOT / "deploy" / "keys.env.example").read_text())
    assert dict(listed) == dict.fromkeys(filter(None, named), "")


def test_dynamic_configuration_is_that_of_the_embedded_server(compose: Composition) -> None:
    written = yaml.safe_load((ROOT / "deploy" / "temporal" / "dynamic-config.yaml").read_text())
    wanted = {}
    for line in embedded._DYNAMIC_CONFIG:
        key, _, value = line.partition("=")
        wanted[key] = [{"value": yaml.safe_load(value), "constraints": {}}]
    assert written == wanted
    assert written["matching.enableFairness"][0]["value"] is True
    server = compose.services["temporal"]
    inside = server.mounts["./deploy/temporal/dynamic-config.yaml"]
    assert inside == f"/etc/temporal/{server.environment['DYNAMIC_CONFIG_FILE_PATH']}"


def test_search_attributes_and_retention_are_those_of_the_workflows() -> None:
    made = dict(re.findall(r"(CiteLoop\w+)=(\w+)", NAMESPACE_SCRIPT))
    keys = [getattr(steering, name) for name in ("TENANT", "CAMPAIGN", "STAGE", "STATE", "CHANNEL", "PRIORITY")]
    assert made == {key.name: {"keyword": "Keyword", "int": "Int"}[key.indexed_value_type.name.lower()] for key in keys}
    assert set(made) == set(embedded.SEARCH_ATTRIBUTES)
    hours = re.search(r"(?m)^retention=(\d+)h$", NAMESPACE_SCRIPT)
    assert hours is not None
    assert int(hours[1]) == embedded.RETENTION.total_seconds() / 3600


def test_everybody_means_the_same_namespace_and_server(compose: Composition) -> None:
    names = ("worker", "api", "cli", "temporal-namespace")
    assert {compose.services[name].environment["TEMPORAL_NAMESPACE"] for name in names} == {"citeloop"}
    assert {compose.services[name].environment["TEMPORAL_ADDRESS"] for name in (*names, "temporal-ui")} == {
        "temporal:7233"
    }
    assert compose.services["temporal-ui"].environment["TEMPORAL_DEFAULT_NAMESPACE"] == "citeloop"


def test_spans_go_from_us_to_the_collector_to_the_viewer(compose: Composition) -> None:
    collector = yaml.safe_load((ROOT / "deploy" / "collector.yaml").read_text())
    viewer = yaml.safe_load((ROOT / "deploy" / "jaeger.yaml").read_text())
    received = collector["receivers"]["otlp"]["protocols"]["http"]["endpoint"].rpartition(":")[2]
    sent = {compose.services[name].environment["OTEL_EXPORTER_OTLP_ENDPOINT"] for name in ("worker", "api", "cli")}
    assert sent == {f"http://collector:{received}"}
    accepted = viewer["receivers"]["otlp"]["protocols"]["grpc"]["endpoint"].rpartition(":")[2]
    assert collector["exporters"]["otlp_grpc/jaeger"]["endpoint"] == f"jaeger:{accepted}"
    assert viewer["extensions"]["jaeger_query"]["http"]["endpoint"].endswith(":16686")
    for config in (collector, viewer):
        pipeline = config["service"]["pipelines"]["traces"]
        for kind in ("receivers", "processors", "exporters"):
            assert set(pipeline[kind]) == set(config[kind])
        assert set(config["service"]["extensions"]) == set(config["extensions"])


def test_health_checks_look_where_the_processes_listen(compose: Composition) -> None:
    assert compose.services["api"].healthcheck.test == ["CMD", "python", "/opt/citeloop/health.py", "api"]
    assert compose.services["worker"].healthcheck.test == ["CMD", "python", "/opt/citeloop/health.py", "worker"]
    script = (ROOT / "deploy" / "health.py").read_text()
    assert f'QUEUE = "{options.WORKFLOWS}"' in script
    assert 'ADDRESS = "http://127.0.0.1:8080"' in script
    assert "--port 8080" in (ROOT / "deploy" / "entrypoint.sh").read_text()
    health = yaml.safe_load((ROOT / "deploy" / "collector.yaml").read_text())["extensions"]["health_check"]["endpoint"]
    assert f"http://{health}/" in compose.services["collector"].healthcheck.test


@pytest.mark.parametrize("name", OURS)
def test_the_command_of_each_of_our_services_exists(compose: Composition, name: str) -> None:
    script = (ROOT / "deploy" / "entrypoint.sh").read_text()
    for word in compose.services[name].command:
        assert f"\n  {word}) exec " in script
    targets = {"python -m worker": "worker.py", "python -m starter.api": "starter/api/__main__.py"}
    for command, file in targets.items():
        assert f"exec {command} " in script
        assert (ROOT / file).is_file()


def _engine_free_compose() -> list[str] | None:
    """Docker Compose where this machine has it; reading a file needs no engine."""
    if shutil.which("docker-compose"):
        return ["docker-compose"]
    plugin = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False)
    return ["docker", "compose"] if plugin.returncode == 0 else None


@pytest.mark.skipif(not shutil.which("docker") and not shutil.which("docker-compose"), reason="no Docker Compose here")
def test_docker_compose_itself_takes_the_file(tmp_path: Path) -> None:
    command = _engine_free_compose()
    if command is None:
        pytest.skip("docker has no compose command here")
    shutil.copy(COMPOSE, tmp_path)
    shutil.copytree(ROOT / "deploy", tmp_path / "deploy")
    shutil.copy(ROOT / "examples" / "channels.toml", tmp_path / "channels.toml")
    (tmp_path / "keys.env").write_text('BLOG_PASSWORD=a $b "c"\n')
    environment = {"PATH": str(Path(shutil.which(command[0]) or "").parent), "HOME": str(tmp_path), **SETTINGS}
    read = subprocess.run(
        [*command, "config", "--format=json"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert read.returncode == 0, read.stderr
    worker = yaml.safe_load(read.stdout)["services"]["worker"]
    assert worker["environment"]["BLOG_PASSWORD"].replace("$$", "$") == 'a $b "c"'
    assert worker["deploy"]["replicas"] == 2
