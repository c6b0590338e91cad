"""Where the parts of this installation listen: what the stack wrote, and what the environment overrides."""

import json
from contextlib import suppress
from pathlib import Path

from pydantic import Field, ValidationError
from temporalio.envconfig import ClientConfig, ClientConnectConfig

from citeloop import sealing
from citeloop.models.record import Record
from citeloop.settings import Settings
from starter import lock
from starter.errors import CommandError, NotRunning

TEMPORAL_REMEDY = "run `citeloop up` in another terminal or set TEMPORAL_ADDRESS"
DATABASE_REMEDY = "run `citeloop up` in another terminal or set CITELOOP_DATABASE_URL"


class Endpoints(Record):
    """`endpoints.json` in the home folder. Database URLs hold passwords and stand in files of their own."""

    supervisor: int
    """Process id of the `citeloop up` or `demo` that keeps the parts alive."""
    ready: bool
    temporal: str
    namespace: str
    ui: str | None = None
    database_url_file: str
    database_owner_url_file: str | None = None
    sandbox: str | None = None
    api: str | None = None
    channels: str
    env: dict[str, str] = Field(default_factory=dict)
    """Variables of a sandbox's channels; never a real key."""
    pids: dict[str, int] = Field(default_factory=dict)


def file_of(home: Path) -> Path:
    return home / "endpoints.json"


def read(home: Path) -> Endpoints | None:
    """What the last stack on this home wrote; None when it was stopped or never ran."""
    with suppress(OSError, ValidationError):
        return Endpoints.model_validate_json(file_of(home).read_text())
    return None


def write(home: Path, endpoints: Endpoints) -> None:
    text = json.dumps(endpoints.model_dump(mode="json"), indent=1)
    private(file_of(home), text)


def private(file: Path, text: str) -> None:
    """Write a file that only its owner may read, all at once."""
    new = file.with_name(file.name + ".new")
    new.unlink(missing_ok=True)
    new.touch(mode=0o600)
    new.write_text(text)
    new.replace(file)


def database_url(settings: Settings) -> str:
    """The application role's URL. NotRunning when there is neither a setting nor a stack."""
    if settings.database_url is not None:
        return settings.database_url.get_secret_value()
    known = read(settings.home)
    if known is None:
        raise NotRunning(f"no database is known in {settings.home}", "database", database_remedy(settings))
    return _secret(known.database_url_file)


def database_owner_url(settings: Settings) -> str:
    """The owner role's URL, for migrations."""
    if settings.database_owner_url is not None:
        return settings.database_owner_url.get_secret_value()
    known = read(settings.home)
    if settings.database_url is not None or known is None or known.database_owner_url_file is None:
        raise NotRunning("no owner role is known", "database", "run `citeloop up` or set CITELOOP_DATABASE_OWNER_URL")
    return _secret(known.database_owner_url_file)


def secret_key(settings: Settings) -> str | None:
    """What seals the secrets of registered sites: the environment's, else the one that the stack of this home keeps."""
    if settings.secret_key is not None and (given := settings.secret_key.get_secret_value().strip()):
        return given
    with suppress(OSError):
        return secret_key_file(settings.home).read_text().strip() or None
    return None


def kept_secret_key(home: Path) -> str:
    """The key of this home, made on first use. Whoever loses it must give every site's secret again."""
    file = secret_key_file(home)
    if not file.exists():
        private(file, sealing.new_key())
    return file.read_text().strip()


def secret_key_file(home: Path) -> Path:
    return home / "secret.key"


def temporal(settings: Settings) -> tuple[str, str, str | None]:
    """Address, namespace and UI of Temporal: the environment or profile first, else the stack's."""
    profile = temporal_profile()
    known = read(settings.home)
    address = profile.get("target_host") or (known.temporal if known else None)
    if address is None:
        raise NotRunning(f"no Temporal server is known in {settings.home}", "temporal", temporal_remedy(settings))
    own = known if known is not None and known.temporal == address else None
    namespace = profile.get("namespace") or (own.namespace if own else "default")
    return address, namespace, own.ui if own else None


def temporal_profile() -> ClientConnectConfig:
    """What TEMPORAL_* variables and the client profile say of the server. CommandError when they cannot be read."""
    try:
        return ClientConfig.load_client_connect_config()
    except (OSError, RuntimeError, ValueError) as error:
        told = " ".join(str(error).split())[:200]
        remedy = "correct the TEMPORAL_ variables or the file they name"
        raise CommandError(f"the client profile cannot be read ({told})", "temporal", remedy) from None


def temporal_remedy(settings: Settings) -> str:
    named = temporal_profile().get("target_host")
    return TEMPORAL_REMEDY if named else _beside_a_demo(settings.home, TEMPORAL_REMEDY)


def database_remedy(settings: Settings) -> str:
    return DATABASE_REMEDY if settings.database_url is not None else _beside_a_demo(settings.home, DATABASE_REMEDY)


def channels_file(settings: Settings) -> Path:
    """channels.toml: the environment's, else the running stack's, else the one beside us."""
    if "channels" in settings.model_fields_set:
        return settings.channels
    known = read(settings.home)
    return Path(known.channels) if known else settings.channels


def _beside_a_demo(home: Path, remedy: str) -> str:
    """What runs below the home is easily taken for what runs in it."""
    demo = home / "demo"
    if lock.holder(demo) is None:
        return remedy
    return f"a demo runs in {demo}: `citeloop --home {demo} --tenant demo …` reaches it; else {remedy}"


def _secret(file: str) -> str:
    try:
        return Path(file).read_text().strip()
    except OSError as error:
        raise NotRunning(f"{file} cannot be read ({error.strerror})", "database", DATABASE_REMEDY) from None
