"""What the environment says. Constructed only by worker.py, starter/cli.py and starter/api/app.py."""

from pathlib import Path

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """CITELOOP_* variables; nothing set means the embedded stack under `.citeloop/`."""

    model_config = SettingsConfigDict(env_prefix="CITELOOP_", extra="ignore")

    home: Path = Path(".citeloop")
    """Data of the embedded stack, traces and the files that say where it listens."""
    channels: Path = Path("channels.toml")
    tenant: str = "default"
    database_url: SecretStr | None = None
    """The application role; without it the embedded Postgres is used."""
    database_owner_url: SecretStr | None = None
    """The owner role, for migrations only."""
    secret_key: SecretStr | None = None
    """Seals the secrets of registered sites; several, separated by commas, while keys are rotated."""
    callback_base_url: str | None = None
    """Where sites can reach the API, for publication callbacks."""
    window: int = Field(default=100, ge=1)
